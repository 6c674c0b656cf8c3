"""The rows of the status page: groups with their members, assignments and committed offsets."""

from __future__ import annotations

from typing import Final, TypedDict

from fencepost.protocol.embedded import SchemaError, decode_assignment

MISSING: Final = "the partition does not exist"
#: The flag of a committed offset that no consumer can have reached, so its lag of 0 is wrong.
BEYOND: Final = "beyond the partition's end"


class OffsetRow(TypedDict):
    """A committed offset. ``flag``: why its lag is wrong."""

    topic: str
    partition: int
    committed: int
    end: int
    lag: int
    flag: str | None


class MemberRow(TypedDict, total=False):
    """A member; ``epoch`` and ``target``: of a consumer group's member. Partitions are by topic."""

    member: str
    instance: str | None
    client: str
    host: str
    epoch: int
    assignment: dict[str, list[int]]
    target: dict[str, list[int]]


class MembersRow(TypedDict, total=False):
    """The members of a group, and what a description adds to its name and state."""

    assignor: str
    generation: int
    leader: str | None
    epoch: int
    members: list[MemberRow]


class GroupRow(MembersRow, total=False):
    """A group. ``generation`` and ``leader`` are of a classic group, ``epoch`` is of a consumer group."""

    group: str
    type: str
    state: str
    protocol: str
    offsets: list[OffsetRow]
    lag: int


def offset_row(topic: str, partition: int, committed: int, end: int | None = None) -> OffsetRow:
    """Return the row of a committed offset. ``end`` None: the partition does not exist."""
    flag = MISSING if end is None else BEYOND if committed > end else None
    end = committed if end is None else end
    return {
        "topic": topic,
        "partition": partition,
        "committed": committed,
        "end": end,
        "lag": max(end - committed, 0),
        "flag": flag,
    }


def assigned(data: bytes) -> dict[str, list[int]]:
    """Return the partitions of an assignment by topic; empty if the bytes are not a consumer assignment."""
    found: dict[str, list[int]] = {}
    try:
        for each in decode_assignment(data).partitions if data else ():
            found.setdefault(each.topic, []).append(each.partition)
    except SchemaError:
        return {}
    return {name: sorted(partitions) for name, partitions in sorted(found.items())}
