"""What must hold of a scene, whatever was killed in it. Nothing here speaks to a server."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

#: a line of a worker, as it told it
Line: TypeAlias = Mapping[str, Any]
#: the values of each partition, by offset
Log: TypeAlias = Mapping[int, Mapping[int, str]]
#: for each group, where it goes on in each partition
Committed: TypeAlias = Mapping[str, Mapping[int, int]]


def faults(lines: Sequence[Line], log: Log, committed: Committed) -> list[str]:
    """What does not hold, each in a line. ``log``: all that is in the topic in the end; ``committed``: where each group
    goes on in the end."""
    return [
        *_lost(lines, log),
        *_twice_or_in_another_order(log),
        *_read_otherwise(lines, log),
        *_unread(lines, log, committed),
        *_again(lines),
        *_forgotten(lines, log, committed),
    ]


def _lost(lines: Sequence[Line], log: Log) -> list[str]:
    """Nothing acknowledged is lost."""
    there = {value for rows in log.values() for value in rows.values()}
    return [
        f"{line['value']} was acknowledged, and is not in the topic"
        for line in lines
        if line["event"] == "acked" and line["value"] not in there
    ]


def _twice_or_in_another_order(log: Log) -> list[str]:
    """Producers are idempotent: what they send again is there once, and in the order of their numbers."""
    found = []
    for partition, rows in log.items():
        last: dict[str, int] = {}
        for offset in sorted(rows):
            name, _, number = rows[offset].rpartition("-")
            if int(number) <= last.get(name, -1):
                found.append(f"{rows[offset]} stands in partition {partition} behind {name}-{last[name]}")
            last[name] = int(number)
    return found


def _read_otherwise(lines: Sequence[Line], log: Log) -> list[str]:
    """What was read once at an offset is there in the end."""
    return [
        f"{line['worker']} in {line['group']} has read {value} at {partition}@{offset}, where "
        f"{log.get(partition, {}).get(offset, 'nothing')} is"
        for line in lines
        if line["event"] == "read"
        for partition, offset, value in line["records"]
        if log.get(partition, {}).get(offset) != value
    ]


def _unread(lines: Sequence[Line], log: Log, committed: Committed) -> list[str]:
    """Each group has read all of the topic in the end."""
    read: dict[str, set[str]] = {group: set() for group in committed}
    for line in lines:
        if line["event"] == "read":
            read[line["group"]].update(value for _, _, value in line["records"])
    there = {value for rows in log.values() for value in rows.values()}
    return [f"{group} has not read {value}" for group, found in read.items() for value in sorted(there - found)]


def _again(lines: Sequence[Line]) -> list[str]:
    """What a group has committed is not handed out to it again."""
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
                        f"{line['worker']} was handed {value} at {partition}@{offset}, where {line['group']} had "
                        f"committed {up_to[line['group'], partition]}"
                    )
    return found


def _forgotten(lines: Sequence[Line], log: Log, committed: Committed) -> list[str]:
    """No acknowledged commit is gone, and each group is at the end of each partition."""
    found = []
    told: dict[tuple[str, int], int] = {}
    for line in lines:
        if line["event"] == "committed":
            for partition, offset in line["offsets"]:
                told[line["group"], partition] = max(told.get((line["group"], partition), 0), offset)
    for (group, partition), offset in told.items():
        if committed[group].get(partition, -1) < offset:
            at = committed[group].get(partition, "nowhere")
            found.append(f"{group} had committed {partition}@{offset}, and goes on at {at}")
    for group, places in committed.items():
        for partition, rows in log.items():
            end = max(rows, default=-1) + 1
            if end and places.get(partition) != end:
                found.append(f"{group} ends at {partition}@{places.get(partition)}, and the partition at {end}")
    return found
