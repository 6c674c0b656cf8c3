"""What an administrator does: ``python -m fencepost_conformance.corpus.admin BOOTSTRAP WORD…``.

remove GROUP INSTANCE    remove a static member by its instance id
delete GROUP             delete the group; refused while it has members
grow TOPIC COUNT         give a topic so many partitions
"""

from __future__ import annotations

import sys


def administer(bootstrap: str, words: list[str]) -> None:
    from kafka.admin import KafkaAdminClient, MemberToRemove  # noqa: PLC0415
    from kafka.errors import KafkaError  # noqa: PLC0415

    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="admin")
    try:
        if words[0] == "remove":
            admin.remove_group_members(words[1], [MemberToRemove(group_instance_id=words[2])])
        elif words[0] == "delete":
            admin.delete_groups([words[1]])
        elif words[0] == "grow":
            admin.create_partitions({words[1]: int(words[2])})
        else:
            raise SystemExit(f"no such word: {words[0]}")
    except KafkaError as refused:
        print(refused)
    finally:
        admin.close()


if __name__ == "__main__":
    administer(sys.argv[1], sys.argv[2:])
