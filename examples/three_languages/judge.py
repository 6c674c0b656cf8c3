"""The checks of a finished scene, whatever was killed in it. Pure functions: nothing here talks to a server."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

#: a line that a worker reported
Line: TypeAlias = Mapping[str, Any]
#: the values of each partition, by offset
Log: TypeAlias = Mapping[int, Mapping[int, str]]
#: the committed offset of each partition, by group
Committed: TypeAlias = Mapping[str, Mapping[int, int]]


def faults(lines: Sequence[Line], log: Log, committed: Committed) -> list[str]:
    """Return the faults found, one text each. ``log`` is the whole topic at the end, and ``committed`` the committed
    offsets at the end."""
    return [
        *_lost(lines, log),
        *_twice_or_in_another_order(log),
        *_read_otherwise(lines, log),
        *_unread(lines, log, committed),
        *_again(lines),
        *_forgotten(lines, log, committed),
    ]


def _lost(lines: Sequence[Line], log: Log) -> list[str]:
    """Find acknowledged values that are lost."""
    there = {value for rows in log.values() for value in rows.values()}
    return [
        f"{line['value']} was acknowledged, but is not in the topic"
        for line in lines
        if line["event"] == "acked" and line["value"] not in there
    ]


def _twice_or_in_another_order(log: Log) -> list[str]:
    """Find duplicates and values out of order. Producers are idempotent, so a retry must add neither."""
    found = []
    for partition, rows in log.items():
        last: dict[str, int] = {}
        for offset in sorted(rows):
            name, _, number = rows[offset].rpartition("-")
            if int(number) <= last.get(name, -1):
                found.append(f"{rows[offset]} is in partition {partition} after {name}-{last[name]}")
            last[name] = int(number)
    return found


def _read_otherwise(lines: Sequence[Line], log: Log) -> list[str]:
    """Find records that were read with another value than the topic has at the end."""
    return [
        f"{line['worker']} in {line['group']} read {value} at {partition}@{offset}, but the topic has "
        f"{log.get(partition, {}).get(offset, 'nothing')} there"
        for line in lines
        if line["event"] == "read"
        for partition, offset, value in line["records"]
        if log.get(partition, {}).get(offset) != value
    ]


def _unread(lines: Sequence[Line], log: Log, committed: Committed) -> list[str]:
    """Find values that a group has not read."""
    read: dict[str, set[str]] = {group: set() for group in committed}
    for line in lines:
        if line["event"] == "read":
            read[line["group"]].update(value for _, _, value in line["records"])
    there = {value for rows in log.values() for value in rows.values()}
    return [f"{group} has not read {value}" for group, found in read.items() for value in sorted(there - found)]


def _again(lines: Sequence[Line]) -> list[str]:
    """Find records that were delivered to a group again after it had committed them."""
    found = []
    up_to: dict[tuple[str, int], int] = defaultdict(int)
    for line in sorted(lines, key=lambda row: (row["at"], row["event"] == "committed")):
        if line["event"] == "committed":
            for partition, offset in line["offsets"]:
                place = line["group"], partition
                up_to[place] = max(up_to[place], offset)
        elif line["event"] == "read":
            for partition, offset, value in line["records"]:
                if offset < up_to[line["group"], partition]:
                    found.append(
                        f"{line['worker']} got {value} at {partition}@{offset} after {line['group']} had "
                        f"committed {up_to[line['group'], partition]}"
                    )
    return found


def _forgotten(lines: Sequence[Line], log: Log, committed: Committed) -> list[str]:
    """Find acknowledged commits that are lost, and groups that are not at the end of a partition."""
    found = []
    acknowledged: dict[tuple[str, int], int] = {}
    for line in lines:
        if line["event"] == "committed":
            for partition, offset in line["offsets"]:
                acknowledged[line["group"], partition] = max(acknowledged.get((line["group"], partition), 0), offset)
    for (group, partition), offset in acknowledged.items():
        if committed[group].get(partition, -1) < offset:
            at = committed[group].get(partition, "nothing")
            found.append(f"{group} had committed {partition}@{offset}, but the server has {at}")
    for group, places in committed.items():
        for partition, rows in log.items():
            end = max(rows, default=-1) + 1
            if end and places.get(partition) != end:
                found.append(f"{group} ends at {partition}@{places.get(partition)}, but the partition ends at {end}")
    return found
