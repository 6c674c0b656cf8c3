"""Actions of an administrator: ``python -m tools.corpus.admin BOOTSTRAP WORD…``.

remove GROUP INSTANCE    remove a static member by its instance id
delete GROUP             delete the group; fails while it has members
grow TOPIC COUNT         give a topic so many partitions
fill TOPIC N COUNT       write so many records to each of the topic's N partitions
alter GROUP TOPIC N O    commit the offset O for each of the topic's N partitions, without a member
forget GROUP TOPIC N     delete the committed offsets of each of the topic's N partitions
drop TOPIC               delete the topic
"""

from __future__ import annotations

import sys


def administer(bootstrap: str, words: list[str]) -> None:
    from kafka.admin import KafkaAdminClient, MemberToRemove  # noqa: PLC0415
    from kafka.errors import KafkaError  # noqa: PLC0415
    from kafka.structs import OffsetAndMetadata, TopicPartition  # noqa: PLC0415

    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="admin")
    try:
        if words[0] == "remove":
            admin.remove_group_members(words[1], [MemberToRemove(group_instance_id=words[2])])
        elif words[0] == "delete":
            admin.delete_groups([words[1]])
        elif words[0] == "grow":
            admin.create_partitions({words[1]: int(words[2])})
        elif words[0] == "alter":
            offset = OffsetAndMetadata(int(words[4]), "altered", -1)
            admin.alter_group_offsets(words[1], {TopicPartition(words[2], n): offset for n in range(int(words[3]))})
        elif words[0] == "forget":
            admin.delete_group_offsets(words[1], [TopicPartition(words[2], n) for n in range(int(words[3]))])
        elif words[0] == "drop":
            admin.delete_topics([words[1]])
        elif words[0] == "fill":
            fill(bootstrap, words[1], int(words[2]), int(words[3]))
        else:
            raise SystemExit(f"unknown action: {words[0]}")
    except KafkaError as refused:
        print(refused)
    finally:
        admin.close()


def fill(bootstrap: str, topic: str, partitions: int, count: int) -> None:
    from kafka import KafkaProducer  # noqa: PLC0415

    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="admin")
    for number in range(partitions):
        for _ in range(count):
            producer.send(topic, b"a record", partition=number)
    producer.flush()
    producer.close()


if __name__ == "__main__":
    administer(sys.argv[1], sys.argv[2:])
