"""Whether an observation agrees with a step of the model, and where it does not.

Orders that the protocol does not promise are ignored: rows of members and groups, answers within one event (NOT-10),
topics within an assignment. A null protocol name and an empty one are the same (G-WIRE-20). The text of an error
message is up to the target (C-ADM-02).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar

from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatResponse,
    DescribedConsumerMember,
    NamedTopicPartitions,
    TopicPartitions,
)
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Event, Reply, TimerFired, TimerKey, TimerKind
from fencepost.protocol.messages import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    JoinGroupResponse,
    ListGroupsResponse,
    ResponseBody,
    SyncGroupResponse,
)
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    TxnOffsetCommitResponse,
)
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataValue, Record
from fencepost.protocol.view import GroupView

from .classic.coordinator_state import CoordinatorState, Step
from .classic.state import Group
from .classic.view import shows, view
from .consumer.state import ConsumerGroup
from .consumer.view import shows as consumer_shows
from .consumer.view import view as consumer_view
from .deadlines import TimerChanges
from .mixed.embedded import in_order
from .observed import Observed
from .offsets.view import view as offsets_view
from .variant import Variant
from .versions import carried


class Mismatch(NamedTuple):
    """One part of an observation that differs from the model."""

    part: str
    expected: object
    observed: object


def disagreements(
    state: CoordinatorState,
    event: Event,
    step: Step,
    timers: TimerChanges,
    observed: Observed,
    *,
    versions: Mapping[int, int],
    variant: Variant,
) -> tuple[Mismatch, ...]:
    """Return every part that differs; empty if the step explains the observation. ``versions``: request versions, by
    id."""
    found: list[Mismatch] = []
    if observed.replies is not None:
        _replies(step.outcome.replies, observed.replies, versions, found)
    if observed.records is not None:
        _records(step.outcome.records, observed.records, found)
    if observed.timers is not None:
        _timers(timers, observed.timers, event, found)
    if observed.groups is not None:
        _groups(state, step.state, observed.groups, found)
    if observed.consumer_groups is not None:
        _consumer_groups(variant, state, step.state, observed.consumer_groups, found)
    if observed.offsets is not None:
        mine = offsets_view(step.state.offsets)
        found += [
            Mismatch(f"offsets, {part}", getattr(mine, part), getattr(observed.offsets, part))
            for part in _PARTS
            if getattr(mine, part) != getattr(observed.offsets, part)
        ]
    if observed.tasks is not None and (step.outcome.tasks or observed.tasks):
        ours, theirs = set(step.outcome.tasks), set(observed.tasks)
        if ours != theirs or len(observed.tasks) != len(theirs):
            found.append(Mismatch("tasks", step.outcome.tasks, tuple(observed.tasks)))
    return tuple(found)


_PARTS: Final = ("committed", "pending", "open_transactions")


def _replies(
    expected: Sequence[Reply], observed: Sequence[Reply], versions: Mapping[int, int], found: list[Mismatch]
) -> None:
    theirs = {reply.request_id: reply.body for reply in observed}
    for reply in expected:
        request = reply.request_id
        mine, other = carried(reply.body, versions[request]), theirs.pop(request, None)
        if mine != other and (other is None or plain(mine) != plain(other)):
            found.append(Mismatch(f"reply to {request}", mine, other))
    for request, other in theirs.items():
        found.append(Mismatch(f"reply to {request}", None, other))


def plain(body: ResponseBody) -> ResponseBody:
    """Return the answer with rows in the order of their ids, and without details that are ignored."""
    if isinstance(body, JoinGroupResponse):
        if body.protocol_name is None:
            body = replace(body, protocol_name="")
        if len(body.members) > 1:
            body = replace(body, members=tuple(sorted(body.members, key=lambda row: row.member_id)))
        return body
    if isinstance(body, SyncGroupResponse):
        return replace(body, assignment=in_order(body.assignment))
    if isinstance(body, DescribeGroupsResponse):
        groups = (
            replace(
                group,
                members=tuple(
                    sorted(
                        [replace(row, member_assignment=in_order(row.member_assignment)) for row in group.members],
                        key=lambda row: row.member_id,
                    )
                ),
                error_message=None if group.error_message is None else "",
            )
            for group in body.groups
        )
        return DescribeGroupsResponse(tuple(sorted(groups, key=lambda row: row.group_id)))
    if isinstance(body, ListGroupsResponse):
        return replace(body, groups=tuple(sorted(body.groups, key=lambda row: row.group_id)))
    if isinstance(body, DeleteGroupsResponse):
        return DeleteGroupsResponse(tuple(sorted(body.results, key=lambda row: row.group_id)))  # C-ADM-09
    if isinstance(body, ConsumerGroupHeartbeatResponse):
        given = None if body.assignment is None else _ascending(body.assignment)
        if body.error_message is None and body.assignment == given:
            return body
        return replace(body, error_message=None, assignment=given)
    if isinstance(body, OffsetCommitResponse | TxnOffsetCommitResponse | OffsetDeleteResponse):
        return replace(body, topics=_merged(body.topics))
    if isinstance(body, OffsetFetchResponse):
        groups_read = [replace(group, topics=_merged(group.topics)) for group in body.groups]
        return OffsetFetchResponse(tuple(groups_read))
    if isinstance(body, ConsumerGroupDescribeResponse):
        described = [
            replace(
                row,
                error_message=None,
                members=tuple(sorted([_plain_row(member) for member in row.members], key=lambda each: each.member_id)),
            )
            for row in body.groups
        ]
        return ConsumerGroupDescribeResponse(tuple(sorted(described, key=lambda row: row.group_id)))
    return body


_Topic = TypeVar("_Topic", OffsetCommitResponseTopic, OffsetFetchResponseTopic)


def _merged(topics: Sequence[_Topic]) -> tuple[_Topic, ...]:
    """Return each topic once, with its partitions ascending. Rows that the broker refused stand before or after the
    rest, and all offsets of a group come in the order of a hash map (O-FETCH-14)."""
    first: dict[tuple[str, bytes], _Topic] = {}
    rows: dict[tuple[str, bytes], list[Any]] = {}
    for topic in topics:
        key = (topic.name, topic.topic_id)
        first.setdefault(key, topic)
        rows.setdefault(key, []).extend(topic.partitions)
    return tuple(
        [
            replace(first[key], partitions=tuple(sorted(rows[key], key=lambda row: row.partition_index)))
            for key in sorted(first)
        ]
    )


def _plain_row(row: DescribedConsumerMember) -> DescribedConsumerMember:
    def by_name(rows: Sequence[NamedTopicPartitions]) -> tuple[NamedTopicPartitions, ...]:
        ordered = [replace(each, partitions=tuple(sorted(each.partitions))) for each in rows]
        return tuple(sorted(ordered, key=lambda each: each.topic_name))

    return replace(row, assignment=by_name(row.assignment), target_assignment=by_name(row.target_assignment))


_Rows = TypeVar("_Rows", TopicPartitions, AssignedPartitions)


def _ascending(rows: Sequence[_Rows]) -> tuple[_Rows, ...]:
    """Return the rows by topic, each with its partitions and their epochs ascending."""
    return tuple(sorted([_sorted_row(row) for row in rows], key=lambda row: row.topic_id))


def _sorted_row(row: _Rows) -> _Rows:
    if isinstance(row, AssignedPartitions) and row.assignment_epochs is not None:
        pairs = sorted(zip(row.partitions, row.assignment_epochs, strict=True))
        numbers, epochs = tuple([number for number, _ in pairs]), tuple([epoch for _, epoch in pairs])
        if (numbers, epochs) == (row.partitions, row.assignment_epochs):
            return row
        return replace(row, partitions=numbers, assignment_epochs=epochs)
    ordered = tuple(sorted(row.partitions))
    return row if ordered == row.partitions else replace(row, partitions=ordered)


def _records(expected: Sequence[Record], observed: Sequence[Record], found: list[Mismatch]) -> None:
    if not expected and not observed:
        return
    if list(expected) != list(observed) and _ordered(expected) != _ordered(observed):
        found.append(Mismatch("records", tuple(expected), tuple(observed)))


def _ordered(records: Sequence[Record]) -> list[Record]:
    """Return the records by group. Adjacent records of one kind are sorted by member or regex, since their order is
    that of hash maps. The tombstones of one member keep their order (F-ORD-07)."""
    ordered: list[Record] = []
    plain_records = sorted([_plain_record(record) for record in records], key=_key)
    for _, run in groupby(plain_records, _kind):
        ordered += sorted(run, key=_within)
    return ordered


_OF_MEMBER = (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupMemberMetadataKey,
)


def _kind(record: Record) -> tuple[str, object, bool]:
    gone = record.value is None
    return record.key.group, "member" if gone and isinstance(record.key, _OF_MEMBER) else type(record.key), gone


def _within(record: Record) -> str:
    key = record.key
    if isinstance(key, _OF_MEMBER):
        return key.member_id
    if isinstance(key, OffsetCommitKey):
        return f"{key.topic} {key.partition:010}"
    return key.regular_expression if isinstance(key, ConsumerGroupRegularExpressionKey) else ""


def _plain_record(record: Record) -> Record:
    value = record.value
    if isinstance(value, OffsetCommitValue) and (value.expire_timestamp != -1 or value.expires_at_minus_one):
        return replace(record, value=replace(value, topic_id=ZERO_ID))  # the log has no field for it (F-REC-11)
    if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
        return Record(record.key, replace(value, topic_partitions=_ascending(value.topic_partitions)))
    if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
        own, gone = _ascending(value.assigned_partitions), _ascending(value.partitions_pending_revocation)
        return Record(record.key, replace(value, assigned_partitions=own, partitions_pending_revocation=gone))
    if not isinstance(value, GroupMetadataValue):
        return record
    rows = [replace(row, assignment=in_order(row.assignment)) for row in value.members]
    return Record(record.key, replace(value, members=tuple(sorted(rows, key=lambda row: row.member_id))))


def _key(record: Record) -> str:
    return record.key.group


def _timers(
    expected: TimerChanges, observed: Mapping[TimerKey, int | None], event: Event, found: list[Mismatch]
) -> None:
    if expected.net == observed:
        return
    fired = event.key if isinstance(event, TimerFired) else None
    for key in expected.net.keys() | observed.keys():
        mine = expected.net.get(key, expected.deadlines.get(key))
        # A timer that fired is no longer armed; a target need not report that.
        other = observed.get(key, None if key == fired and mine is None else _UNCHANGED)
        if key.kind is TimerKind.EXPIRY and other is _UNCHANGED:
            continue  # it belongs to no group, so a target that reports only timers of groups omits it
        if mine != other:
            found.append(Mismatch(f"timer {key}", mine, other))


_UNCHANGED = "unchanged"


def _groups(
    before: CoordinatorState, after: CoordinatorState, observed: Mapping[str, GroupView | None], found: list[Mismatch]
) -> None:
    for group_id, seen in observed.items():
        group = after.group(group_id)
        if not (seen is None if group is None else seen is not None and _shows(seen, group_id, group)):
            found.append(Mismatch(f"group {group_id}", _seen(group_id, group), seen))
    if before.slots is after.slots:
        return
    old = {slot.group_id: slot.group for slot in before.slots if isinstance(slot.group, Group)}
    new = {slot.group_id: slot.group for slot in after.slots if isinstance(slot.group, Group)}
    for group_id in old.keys() | new.keys():
        was, is_ = old.get(group_id), new.get(group_id)
        if was is not is_ and group_id not in observed and _seen(group_id, was) != _seen(group_id, is_):
            found.append(Mismatch(f"group {group_id}", _seen(group_id, is_), _UNCHANGED))


def _shows(seen: GroupView, group_id: str, group: Group) -> bool:
    return shows(seen, group_id, group) or _plain_view(seen) == _plain_view(view(group_id, group))


def _plain_view(group: GroupView) -> GroupView:
    return replace(group, members=tuple([replace(row, assignment=in_order(row.assignment)) for row in group.members]))


def _consumer_groups(
    variant: Variant,
    before: CoordinatorState,
    after: CoordinatorState,
    observed: Mapping[str, ConsumerGroupView | None],
    found: list[Mismatch],
) -> None:
    for group_id, seen in observed.items():
        group = after.consumer_group(group_id)
        if not (seen is None if group is None else seen is not None and consumer_shows(variant, seen, group_id, group)):
            found.append(Mismatch(f"consumer group {group_id}", _consumer_seen(variant, group_id, group), seen))
    if before.slots is after.slots:
        return
    old = {slot.group_id: slot.group for slot in before.slots if isinstance(slot.group, ConsumerGroup)}
    new = {slot.group_id: slot.group for slot in after.slots if isinstance(slot.group, ConsumerGroup)}
    for group_id in old.keys() | new.keys():
        was, is_ = old.get(group_id), new.get(group_id)
        if was is is_ or group_id in observed:
            continue
        expected = _consumer_seen(variant, group_id, is_)
        if _consumer_seen(variant, group_id, was) != expected:
            found.append(Mismatch(f"consumer group {group_id}", expected, _UNCHANGED))


def _consumer_seen(variant: Variant, group_id: str, group: ConsumerGroup | None) -> ConsumerGroupView | None:
    return None if group is None else consumer_view(variant, group_id, group)


def _seen(group_id: str, group: Group | None) -> GroupView | None:
    return None if group is None else view(group_id, group)
