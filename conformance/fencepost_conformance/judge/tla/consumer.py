"""The trace of a consumer group (KIP-848) as data of the module ``TraceConsumer``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import UUID

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import DescribeGroupsRequest
from fencepost.protocol.settings import Settings

from ..checker.commits import Commit
from ..checker.history import Event, History, Listing, Op
from .text import NOT_HERE, TOLERANCE_MS, Constants, Data, Inexpressible, lines_of, name_of, signs_of

_UNIFORM: Final = "uniform"
#: The errors that the specification can give.
_OF_HEARTBEATS: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.UNRELEASED_INSTANCE_ID,
)
_OF_COMMITS: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH)


def consumer_events(history: History, changed_topics: Iterable[int]) -> list[Event]:
    """The events that TLC reads. ``changed_topics``: the lines at which a topic was made, grown or deleted. Raises
    Inexpressible."""
    events = [event for event in history.events if _is_read(event)]
    begins = events[0].line if events else 0
    if late := [line for line in changed_topics if line > begins]:
        raise Inexpressible(late[0], "a topic that changes while the group lives, which traces do not show in time")
    joins = [event for event in events if not event.answered and _names(event.op)]
    for event in joins:
        if _names(event.op) != _names(joins[0].op):
            raise Inexpressible(event.line, "members with different subscriptions, which the specification lacks")
    return events


def _names(op: Op) -> frozenset[str]:
    return frozenset(getattr(op.body, "subscribed_topic_names", None) or ())


def _is_read(event: Event) -> bool:
    body = event.op.body
    if isinstance(body, ConsumerGroupDescribeRequest | DescribeGroupsRequest | Listing):
        return False
    if isinstance(body, Commit):
        if body.transactional or body.generation_id < 0:
            return False
        known: Collection[ErrorCode] = _OF_COMMITS
    elif isinstance(body, ConsumerGroupHeartbeatRequest):
        if body.subscribed_topic_regex:
            raise Inexpressible(event.line, "a regular expression, which the specification lacks")
        if not body.member_id:
            raise Inexpressible(event.line, "a member id that the broker makes, which the specification lacks")
        known = _OF_HEARTBEATS
    else:
        raise Inexpressible(event.line, f"{type(body).__name__.removesuffix('Request')}, which the specification lacks")
    code = getattr(event.op.answer, "error_code", None)
    if event.answered and code not in (ErrorCode.NONE, *known, *NOT_HERE):
        named = getattr(code, "name", "a code that Kafka lacks")
        raise Inexpressible(event.line, f"an answer {named}, which the specification lacks")
    return True


class Numbers:
    """The partitions of a trace, numbered through: topics in the order of appearance, partitions by number."""

    def __init__(self, ops: Iterable[Op], names: Mapping[bytes, str]) -> None:
        self._names = names
        self.counts: dict[bytes, int] = {}
        for op in ops:
            for row in _rows(op):
                self.counts[row.topic_id] = max(self.counts.get(row.topic_id, 0), *(n + 1 for n in row.partitions), 0)

    def topics(self, named: str) -> list[bytes]:
        """The topic with this name, or with this id in Kafka's text form, as commits have it."""
        return [topic for topic in self.counts if named in (self._names.get(topic), str(UUID(bytes=topic)))]

    def all(self) -> tuple[Data, ...]:
        return tuple(self._name(topic, n) for topic, count in self.counts.items() for n in range(count))

    def of(self, rows: Iterable[TopicPartitions] | None) -> frozenset[Data]:
        return frozenset(self._name(row.topic_id, n) for row in rows or () for n in row.partitions)

    def _name(self, topic: bytes, partition: int) -> str:
        return f"p{list(self.counts).index(topic) + 1}.{partition}"


def _rows(op: Op) -> list[TopicPartitions]:
    owned = getattr(op.body, "topic_partitions", None) or ()
    given = getattr(op.answer, "assignment", None) or ()
    return [*given, *owned]


def consumer_data(
    history: History, events: list[Event], settings: Settings, names: Mapping[bytes, str], prefix: str
) -> tuple[dict[str, Data], Constants]:
    """The trace of the group as a record of ``TraceData``, and the constants for it. ``names``: those of topics, by
    id. Raises Inexpressible."""
    ops = [event.op for event in events if not event.answered]
    numbers = Numbers(ops, names)
    heartbeats = [op.body for op in ops if isinstance(op.body, ConsumerGroupHeartbeatRequest)]
    assignors = {each.server_assignor or _UNIFORM for each in heartbeats if each.member_epoch == JOIN_EPOCH}
    if assignors - {_UNIFORM}:
        raise Inexpressible(events[0].line, "an assignor other than uniform, whose targets are not searched")
    timeouts = [each.rebalance_timeout_ms for each in heartbeats if each.rebalance_timeout_ms >= 0]
    data: dict[str, Data] = {
        "lines": lines_of(events, prefix),
        "requests": {name_of(prefix, op): _request(op, numbers) for op in ops},
        "answers": {
            name_of(prefix, event.op): {"number": number, "answer": _answer(event.op, numbers)}
            for number, event in enumerate(events, 1)
            if event.answered
        },
        "instances": tuple(sorted({each.instance_id for each in heartbeats if each.instance_id})),
        "signs": signs_of(history, events),
        "sessionTimeout": settings.group_consumer_session_timeout_ms,
        "rebalanceTimeout": min(timeouts, default=0),
        "tolerance": TOLERANCE_MS,
    }
    partitions = numbers.all() or ("p1.0",)
    constants: Constants = (
        ("MemberIds", ("m",)),  # the ids are those of the trace
        ("Partitions", partitions),
        ("FirstParts", len(partitions)),
        ("Interval", settings.group_consumer_assignment_interval_ms > 0),
    )
    return data, constants


def _request(op: Op, numbers: Numbers) -> Data:
    body = op.body
    found: dict[str, Data] = {"number": op.id, "connection": op.connection}
    if isinstance(body, Commit):
        rows = [TopicPartitions(topic, parts) for name, parts in body.topics for topic in numbers.topics(name)]
        return found | {
            "api": "OffsetCommit",
            "memberId": body.member_id,
            "instanceId": "",
            "epoch": body.generation_id,
            "partitions": numbers.of(rows),
        }
    assert isinstance(body, ConsumerGroupHeartbeatRequest)
    listed = body.topic_partitions is not None
    return found | {
        "api": "ConsumerGroupHeartbeat",
        "memberId": body.member_id,
        "instanceId": body.instance_id or "",
        "epoch": body.member_epoch,
        "includesOwned": listed,
        "owned": numbers.of(body.topic_partitions),
        "full": listed and body.rebalance_timeout_ms != -1 and body.subscribed_topic_names is not None,
    }


def _answer(op: Op, numbers: Numbers) -> Data:
    answer = op.answer
    if isinstance(answer, ConsumerGroupHeartbeatResponse):
        return {
            "api": "ConsumerGroupHeartbeat",
            "error": answer.error_code.name,
            "epoch": answer.member_epoch,
            "includesAssignment": answer.assignment is not None,
            "assignment": numbers.of(answer.assignment),
        }
    return {"api": "OffsetCommit", "error": answer.error_code.name}  # type: ignore[union-attr]
