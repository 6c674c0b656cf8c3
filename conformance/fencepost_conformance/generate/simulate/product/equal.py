"""Equality of product states: their groups, armed timers, open operations, tasks, log and written records are equal up
to request ids, times and offsets.

Where generations have no bound, epochs and generations are equal up to their order as well: coordinators only compare
them and add one to the highest. It is not proved that the order is enough. It can hide a difference, but never
invents one. -2, -1 and 0 have a meaning and stay (M-FENCE-01…08). Generations in subscriptions are included (X-JOIN-12,
X-UP-05).

Two facts about time count: whether a target may be computed, and whether the topics must be looked up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView
from fencepost.protocol.embedded import SchemaError, Subscription, decode_subscription, encode_subscription
from fencepost.protocol.messages import Protocol
from fencepost.protocol.records import GroupMetadataValue, RecordValue
from fencepost.protocol.view import GroupView

from .consumer_moves import put_off_ms

if TYPE_CHECKING:
    from .both import Both

Rank: TypeAlias = Callable[[int], int]


def state_key(both: Both) -> object:
    """Return a key that is equal for states that behave alike."""
    written = {record.key: record.value for record in both.log}
    replicated = {record.key: record.value for record in both.log[: both.replicated]}
    operations = list(both.core._state.operations.values())
    view = both.consumer
    rank = _ranks(both, [*written.values(), *replicated.values()]) if both.bounds.generation is None else _as_it_is
    return (
        None if both.classic is None else _classic(both.classic, rank),
        None if view is None else _group(view, rank, both),
        frozenset(replace(key, operation=0) for key in both.core.armed),
        tuple(_operation(each, rank) for each in operations),
        frozenset((key, _value(value, rank)) for key, value in written.items() if value is not None),
        frozenset((key, _value(value, rank)) for key, value in replicated.items() if value is not None),
        len(both.log) - both.replicated,
        bool(both.last) and both.as_one,
        both.owned,
        both.choices.made,
        both.tasks,
        both.image,
    )


def _as_it_is(number: int) -> int:
    return number


def _ranks(both: Both, values: Iterable[RecordValue | None]) -> Rank:
    """Return a function that maps each epoch above 0 to its rank among all epochs of the state."""
    found: set[int] = set()
    if both.classic is not None:
        found.add(both.classic.generation_id)
        found |= _generations_in(each.metadata for member in both.classic.members for each in member.protocols)
    for operation in both.core._state.operations.values():
        body: Any = None if operation.request is None else operation.request.body
        found |= _generations_in(each.metadata for each in getattr(body, "protocols", ()))
    view = both.consumer
    if view is not None:
        found |= {view.group_epoch, view.assignment_epoch}
        for member in view.members:
            found |= {member.member_epoch, member.previous_member_epoch}
            found |= _epochs_of((*member.assigned, *member.pending_revocation))
            if member.classic is not None:
                found |= _generations_in(each.metadata for each in member.classic.supported_protocols)
    for value in values:
        match value:
            case GroupMetadataValue(generation=epoch, members=members):
                found.add(epoch)
                found |= _generations_in(each.subscription for each in members)
            case ConsumerGroupMetadataValue(epoch=epoch):
                found.add(epoch)
            case ConsumerGroupMemberMetadataValue(classic_member_metadata=ClassicMemberMetadata() as classic):
                found |= _generations_in(each.metadata for each in classic.supported_protocols)
            case ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch):
                found.add(epoch)
            case ConsumerGroupCurrentMemberAssignmentValue():
                found |= {value.member_epoch, value.previous_member_epoch}
                found |= _epochs_of((*value.assigned_partitions, *value.partitions_pending_revocation))
    places = {epoch: place for place, epoch in enumerate(sorted(epoch for epoch in found if epoch > 0), 1)}
    return lambda epoch: places.get(epoch, min(epoch, 0))


def _epochs_of(rows: Iterable[AssignedPartitions]) -> set[int]:
    return {epoch for row in rows for epoch in row.assignment_epochs or ()}


def _generations_in(data: Iterable[bytes]) -> set[int]:
    """Return the generations in these subscriptions."""
    read = (_subscription(each) for each in data)
    return {each.generation_id for each in read if each is not None}


def _subscription(data: bytes) -> Subscription | None:
    try:
        return decode_subscription(data)
    except SchemaError:
        return None


def _metadata(data: bytes, rank: Rank) -> bytes:
    read = _subscription(data)
    return data if read is None else encode_subscription(replace(read, generation_id=rank(read.generation_id)))


def _protocols(protocols: Iterable[Protocol], rank: Rank) -> tuple[Protocol, ...]:
    return tuple(replace(each, metadata=_metadata(each.metadata, rank)) for each in protocols)


def _metadata_of(classic: ClassicMemberMetadata | None, rank: Rank) -> ClassicMemberMetadata | None:
    if classic is None:
        return None
    return replace(classic, supported_protocols=_protocols(classic.supported_protocols, rank))


def _classic(view: GroupView, rank: Rank) -> GroupView:
    members = tuple(replace(each, protocols=_protocols(each.protocols, rank)) for each in view.members)
    return replace(view, generation_id=rank(view.generation_id), members=members)


def _group(view: ConsumerGroupView, rank: Rank, both: Both) -> object:
    deadline = view.refresh_deadline
    return (
        rank(view.group_epoch),
        rank(view.assignment_epoch),
        view.metadata_hash,
        put_off_ms(both.bounds, view, both.now) > 0,
        view.subscription_type,
        tuple(_member(member, rank) for member in view.members),
        view.static_members,
        view.target,
        tuple((each.regex, each.topics, each.version) for each in view.regexes),
        deadline is None or both.now >= deadline[0] or view.group_epoch < deadline[1],
    )


def _member(member: ConsumerMemberView, rank: Rank) -> object:
    return replace(
        member,
        member_epoch=rank(member.member_epoch),
        previous_member_epoch=rank(member.previous_member_epoch),
        assigned=_rows(member.assigned, rank),
        pending_revocation=_rows(member.pending_revocation, rank),
        classic=_metadata_of(member.classic, rank),
    )


def _rows(rows: tuple[AssignedPartitions, ...], rank: Rank) -> tuple[AssignedPartitions, ...]:
    return tuple(replace(row, assignment_epochs=tuple(map(rank, row.assignment_epochs or ()))) for row in rows)


def _value(value: RecordValue, rank: Rank) -> object:
    match value:
        case GroupMetadataValue():
            members = tuple(replace(each, subscription=_metadata(each.subscription, rank)) for each in value.members)
            return replace(value, current_state_timestamp=0, generation=rank(value.generation), members=members)
        case ConsumerGroupMemberMetadataValue():
            return replace(value, classic_member_metadata=_metadata_of(value.classic_member_metadata, rank))
        case ConsumerGroupMetadataValue():
            return replace(value, epoch=rank(value.epoch))
        case ConsumerGroupTargetAssignmentMetadataValue():
            return replace(value, assignment_epoch=rank(value.assignment_epoch), assignment_timestamp=0)
        case ConsumerGroupRegularExpressionValue():
            return replace(value, timestamp=0)
        case ConsumerGroupCurrentMemberAssignmentValue():
            return replace(
                value,
                member_epoch=rank(value.member_epoch),
                previous_member_epoch=rank(value.previous_member_epoch),
                assigned_partitions=_rows(value.assigned_partitions, rank),
                partitions_pending_revocation=_rows(value.partitions_pending_revocation, rank),
            )
        case _:
            return value


def _operation(operation: Any, rank: Rank) -> tuple[object, ...]:
    """Return an open operation without ids: its request, its callback and whether it was answered."""
    body: Any = None if operation.request is None else operation.request.body
    for epoch in ("member_epoch", "generation_id"):
        if hasattr(body, epoch):
            body = replace(body, **{epoch: rank(getattr(body, epoch))})
    if hasattr(body, "protocols"):
        body = replace(body, protocols=_protocols(body.protocols, rank))
    return (body, type(operation.callback).__name__, operation.answered)
