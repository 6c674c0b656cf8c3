"""One look at the groups of a running cluster, with requests that only read.

ListGroups goes to each broker, which lists the groups that it coordinates. The other requests about a group go to the
broker that listed it, in parts of ``_TOGETHER`` groups. The rows are those of the status page of ``fencepost serve``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from fencepost.work.link import Unsupported
from fencepost_server.observe.rows import MISSING, GroupRow, MemberRow, OffsetRow, assigned, offset_row

from ..wire.brokers import Brokers, Failed
from ..wire.questions import Questions

#: groups in one request
_TOGETHER: Final = 50
#: partitions in one ListOffsets
_PARTITIONS: Final = 2_000
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
#: the version of OffsetFetch from which a request may name several groups; 10 and later have topic ids instead of names
_SEVERAL_GROUPS: Final = 8


@dataclass(slots=True)
class Look:
    """The groups at one moment. ``states``: the state of each group that a broker lists. ``groups``: those that were
    looked at, by name. ``problems``: requests that failed, a sentence each."""

    states: dict[str, str] = field(default_factory=dict)
    groups: dict[str, GroupRow] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


async def look(brokers: Brokers, names: Collection[str], most: int) -> Look:
    """Look at the groups with these names, or without names at the first ``most`` groups. Raises ``Failed`` if no
    broker responds."""
    await brokers.topics(())
    found = Look()
    nodes = sorted(brokers.nodes)
    listed = await asyncio.gather(*[_listed(brokers, node) for node in nodes], return_exceptions=True)
    every: list[tuple[str, int, GroupRow]] = []
    for node, rows in zip(nodes, listed, strict=True):
        if isinstance(rows, BaseException):
            if not isinstance(rows, Failed):
                raise rows
            found.problems.append(f"broker {node} at {brokers.nodes[node]}: {rows}; its groups are missing")
        else:
            every += [(row["group"], node, row) for row in rows]
    if nodes and len(found.problems) == len(nodes):
        raise ConnectionError(found.problems[0])
    every.sort(key=lambda each: each[:2])
    found.states = {name: row["state"] for name, _, row in every}
    shown = [each for each in every if not names or each[0] in names][: None if names else most]
    found.groups = {name: row for name, _, row in shown}
    for node in nodes:
        rows_of_node = [row for _, each, row in shown if each == node]
        for some in _parts(rows_of_node, _TOGETHER):
            try:
                await _describe(await brokers.node(node), some, found)
            except Failed as wrong:
                title = f"{some[0]['group']} and {len(some) - 1} more" if len(some) > 1 else some[0]["group"]
                found.problems.append(f"groups {title} cannot be described: {wrong}")
    await _ends(brokers, found)
    return found


def _parts(rows: Sequence[Any], size: int) -> Iterator[Any]:
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


async def _listed(brokers: Brokers, node: int) -> list[GroupRow]:
    broker = await brokers.node(node)
    answer = await broker.ask("list_groups", 0, 5, states_filter=(), types_filter=())
    if answer.error_code is not Code.none:
        raise ConnectionError(f"ListGroups: {answer.error_code.name}")
    return [
        {
            "group": str(row.group_id),
            "type": getattr(row, "group_type", CLASSIC) or CLASSIC,
            "state": getattr(row, "group_state", ""),
            "protocol": row.protocol_type,
            "members": [],
            "offsets": [],
            "lag": 0,
        }
        for row in answer.groups
    ]


async def _describe(broker: Questions, rows: Sequence[GroupRow], found: Look) -> None:
    """Add members and committed offsets to the rows of groups that one broker coordinates."""
    by_name = {row["group"]: row for row in rows}
    classic = [name for name, row in by_name.items() if row["type"].lower() == CLASSIC]
    consumer = [name for name, row in by_name.items() if row["type"].lower() == CONSUMER]
    if classic:
        answer = await broker.ask("describe_groups", 0, 6, groups=classic)
        for group in answer.groups:
            if _fine(group.error_code, group.group_id, "DescribeGroups", found):
                _classic(by_name[group.group_id], group)
    if consumer:
        answer = await broker.ask("consumer_group_describe", 0, 1, group_ids=consumer)
        for group in answer.groups:
            if _fine(group.error_code, group.group_id, "ConsumerGroupDescribe", found):
                _consumer(by_name[group.group_id], group)
    for name, code, topics in await _committed(broker, [*classic, *consumer]):
        if _fine(code, name, "OffsetFetch", found):
            by_name[name]["offsets"] = [
                offset_row(str(topic.name), int(row.partition_index), int(row.committed_offset))
                for topic in topics
                for row in topic.partitions
                if row.error_code is Code.none and row.committed_offset >= 0
            ]


def _fine(code: Any, group: str, api: str, found: Look) -> bool:
    """Return whether an answer about a group has no error; a group that has just gone or changed is not a problem."""
    if code is Code.none:
        return True
    if code is not Code.group_id_not_found:
        found.problems.append(f"group {group}: {api}: {code.name}")
    return False


def _classic(row: GroupRow, group: Any) -> None:
    row["state"], row["assignor"] = group.group_state, group.protocol_data
    row["members"] = [
        MemberRow(
            member=each.member_id,
            instance=getattr(each, "group_instance_id", None),
            client=each.client_id,
            host=each.client_host,
            assignment=assigned(bytes(each.member_assignment)),
        )
        for each in group.members
    ]


def _consumer(row: GroupRow, group: Any) -> None:
    row["state"], row["assignor"], row["epoch"] = group.group_state, group.assignor_name, int(group.group_epoch)
    row["members"] = [
        MemberRow(
            member=each.member_id,
            instance=each.instance_id,
            client=each.client_id,
            host=each.client_host,
            epoch=int(each.member_epoch),
            assignment=_by_topic(each.assignment),
            target=_by_topic(each.target_assignment),
        )
        for each in group.members
    ]


def _by_topic(assignment: Any) -> dict[str, list[int]]:
    return {str(each.topic_name): sorted(map(int, each.partitions)) for each in assignment.topic_partitions}


async def _committed(broker: Questions, names: Sequence[str]) -> list[tuple[str, Any, Any]]:
    """Return name, error code and topics of each group."""
    if not names:
        return []
    try:
        rows = [{"group_id": name, "member_id": None, "member_epoch": -1, "topics": None} for name in names]
        answer = await broker.ask("offset_fetch", _SEVERAL_GROUPS, 9, groups=rows, require_stable=False)
        return [(str(each.group_id), each.error_code, each.topics) for each in answer.groups]
    except Unsupported:
        found = []
        for name in names:
            answer = await broker.ask("offset_fetch", 2, 7, group_id=name, topics=None)
            found.append((name, answer.error_code, answer.topics))
        return found


# the ends of partitions


async def _ends(brokers: Brokers, found: Look) -> None:
    """Add the ends of partitions to the committed offsets, and the lag to the groups."""
    wanted: dict[tuple[str, int], list[OffsetRow]] = {}
    for group in found.groups.values():
        for row in group["offsets"]:
            wanted.setdefault((row["topic"], row["partition"]), []).append(row)
    leaders, denied = await _leaders(brokers, {topic for topic, _ in wanted})
    by_node: dict[int, list[tuple[str, int]]] = {}
    for place, rows in wanted.items():
        if place in leaders:
            by_node.setdefault(leaders[place], []).append(place)
        else:
            _flag(rows, "no right to see its end" if place[0] in denied else MISSING)
    found.problems += [f"topic {name}: no right to see its ends; the right DESCRIBE is needed" for name in denied]
    for node, places in by_node.items():
        for some in _parts(places, _PARTITIONS):
            try:
                ends = await _asked(await brokers.node(node), some)
            except Failed as wrong:
                ends = dict.fromkeys(some, f"its end is unknown: {wrong}")
            for place in some:
                end = ends.get(place, "its end is unknown")
                if isinstance(end, str):
                    _flag(wanted[place], end)
                    continue
                for row in wanted[place]:
                    row.update(offset_row(row["topic"], row["partition"], row["committed"], end))
    for group in found.groups.values():
        group["lag"] = sum(row["lag"] for row in group["offsets"])


def _flag(rows: Iterable[OffsetRow], why: str) -> None:
    for row in rows:
        row["flag"] = why


async def _leaders(brokers: Brokers, topics: Collection[str]) -> tuple[dict[tuple[str, int], int], set[str]]:
    """Return the leader of each partition, and the topics that the client may not see."""
    leaders: dict[tuple[str, int], int] = {}
    denied = set()
    for some in _parts(sorted(topics), _TOGETHER * 10):
        for topic in await brokers.topics(some):
            if topic.error_code is Code.topic_authorization_failed:
                denied.add(str(topic.name))
            for row in topic.partitions:
                leaders[str(topic.name), int(row.partition_index)] = int(row.leader_id)
    return leaders, denied


async def _asked(broker: Questions, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int | str]:
    """Return the end of each partition, or why it is unknown."""
    topics: dict[str, list[dict[str, int]]] = {}
    for topic, partition in places:
        row = {"partition_index": partition, "current_leader_epoch": -1, "timestamp": -1}
        topics.setdefault(topic, []).append(row)
    rows = [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    answer = await broker.ask("list_offsets", 1, 7, replica_id=-1, isolation_level=0, topics=rows)
    return {
        (str(topic.name), int(row.partition_index)): (
            int(row.offset) if row.error_code is Code.none else f"its end is unknown: {row.error_code.name}"
        )
        for topic in answer.topics
        for row in topic.partitions
    }
