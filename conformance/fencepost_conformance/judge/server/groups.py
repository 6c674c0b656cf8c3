"""A few requests about groups and connections; ``fencepost diff`` and the sweep test these in depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .script import OWN, Move
from .world import World

_GROUPS: Final = (f"{OWN}g0", f"{OWN}g1", f"{OWN}g2")
_IDS: Final = (f"{OWN}x0", f"{OWN}x1")
_SOFTWARE: Final = ("a", "a-b.c", "1.0", "", " a", "1 0", "a-", ".a", "ä", "a_b")
_NOBODY: Final = {"member_id": "nobody", "generation_id": 3}


def commit(world: World) -> Iterator[Move]:
    topics = [
        {
            "name": name,
            "topic_id": world.topic_id(name),
            "partitions": [
                {"partition_index": index, "committed_offset": world.rng.randrange(9), "committed_metadata": "m"}
                for index in indexes
            ],
        }
        for name, indexes in world.partitions(3).items()
    ]
    member: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": ""}
    if world.chance(0.1):
        member = {"generation_id_or_member_epoch": 3, "member_id": "nobody"}
    yield world.move("offset_commit", {"group_id": world.choice(_GROUPS), **member, "topics": topics})


def delete_offsets(world: World) -> Iterator[Move]:
    topics = [
        {"name": name, "partitions": [{"partition_index": index} for index in indexes]}
        for name, indexes in world.partitions(2).items()
    ]
    yield world.move("offset_delete", {"group_id": world.choice(_GROUPS), "topics": topics})


def delete(world: World) -> Iterator[Move]:
    yield world.move("delete_groups", {"groups_names": world.some(_GROUPS, 2)})


def look(world: World) -> Iterator[Move]:
    groups, ids = world.some(_GROUPS, 2), world.some(_IDS, 2)
    choices: tuple[tuple[str, dict[str, Any]], ...] = (
            ("describe_groups", {"groups": groups, "include_authorized_operations": world.chance(0.5)}),
            ("consumer_group_describe", {"group_ids": groups, "include_authorized_operations": world.chance(0.5)}),
            ("list_groups", {"states_filter": [], "types_filter": []}),
            ("api_versions", {"client_software_name": world.choice(_SOFTWARE),
                              "client_software_version": world.choice(_SOFTWARE)}),
            ("find_coordinator", {"key": groups[0], "coordinator_keys": groups, "key_type": 0}),
            ("find_coordinator", {"key": ids[0], "coordinator_keys": ids, "key_type": 1}),
            ("heartbeat", {"group_id": groups[0], **_NOBODY}),
            ("sync_group", {"group_id": groups[0], **_NOBODY}),
            ("leave_group", {"group_id": groups[0], **_NOBODY, "members": [{"member_id": "nobody"}]}),
            ("join_group", {"group_id": groups[0], "session_timeout": 10_000, "rebalance_timeout": 10_000,
                            "member_id": "nobody", "protocol_type": "consumer",
                            "protocols": [{"name": "range", "metadata": b""}]}),
            ("consumer_group_heartbeat", {"group_id": groups[0], "member_id": "nobody", "member_epoch": 7,
                                          "rebalance_timeout": -1}),
    )  # fmt: skip
    api, asked = world.choice(choices)
    yield world.move(api, asked)


MOVES: Final = ((commit, 3), (delete_offsets, 1), (delete, 1), (look, 2))
