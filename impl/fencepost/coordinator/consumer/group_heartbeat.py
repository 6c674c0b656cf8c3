"""ConsumerGroupHeartbeat for members that join or stay (7.4), in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.step import Step
from . import (
    access,
    identity,
    records,
    regex,
    reports,
    target,
    timers,
    update,
)
from .group import ConsumerGroup, ConsumerMember
from .identity import Found
from .regex import RegexChange


class Opened(NamedTuple):
    """The group of a heartbeat. If it did not exist, or was of another kind: the records that create it, and whether
    the new group has to begin an epoch (M-VAL-22, X-UP-15). ``converted``: it was a classic group with members."""

    group: ConsumerGroup
    written: list[Record]
    must_bump: bool
    converted: bool = False


def stay(
    step: Step,
    request: Request,
    body: ConsumerGroupHeartbeatRequest,
    opened: Opened,
    accepted: Callable[[], None],
) -> ConsumerGroupHeartbeatResponse:
    """The answer to a member that joins or stays. ``accepted`` is called when all checks that could refuse it have
    passed. The changes of the request are written in one order (F-ORD-06). Raises ``Refused``, ``InternalError``."""
    group, written = opened.group, opened.written
    identity.require_room(step, group, body.member_id, body.instance_id)
    found = _find(step, group, body)
    old = found.member
    if found.replaced is not None:
        written += update.replacement(step, group, found.member, found.replaced)
    new = _updated(request, body, old)
    written += update.metadata_of(group, old, new)
    regex_change, forgotten = regex.update(step, request, group, old, new)
    written += forgotten
    bump = (
        new.renames(old)
        or regex_change is RegexChange.RESOLVED
        or target.elects_another(step, group, new)
        or begins(step, opened)
        or (regex_change is RegexChange.UNRESOLVED and loses_topics(step, group, old, new))
    )
    epochs = update.bumped(step, group, old, new, written, bump=bump)
    goal = target.current(step, group, new, epochs)
    written += goal.records
    changed = new.renames(old) or regex_change is not RegexChange.NONE
    result = update.reconciled(step, group, new, goal, said_to_own(step, body, old), changed=changed)
    if result != new:
        written.append(records.current_assignment(step, group.group_id, result))
    accepted()
    access.write(step, written)
    if epochs.epoch != group.epoch:
        cause = reports.update_of(group, new, found.replaced, bump=bump, subscribes_anew=changed or opened.converted)
        reports.started(step, group.group_id, epochs.epoch, cause, converted=opened.converted)
    if result != new:
        reports.maybe_ended(step, group.group_id)
        timers.follow(step, group.group_id, result)
    timers.watch_session(step, group.group_id, result.member_id)  # M-HB-09
    shown = _full(body) or result.assigned != old.assigned  # M-RSP-01
    return ConsumerGroupHeartbeatResponse(
        ErrorCode.NONE,
        member_id=result.member_id,
        member_epoch=result.epoch,
        heartbeat_interval_ms=timers.heartbeat_interval(step, group.group_id),
        assignment=records.share_rows(result.assigned) if shown else None,  # M-RSP-02
    )


def _find(step: Step, group: ConsumerGroup, body: ConsumerGroupHeartbeatRequest) -> Found:
    member_id = body.member_id or step.choices.uuid()  # M-VAL-26
    claim = identity.Claim(member_id, body.member_epoch, body.topic_partitions)
    if body.instance_id is None:
        return identity.find_dynamic(step, group, claim)
    return identity.find_static(step, group, body.instance_id, claim)


def _updated(request: Request, body: ConsumerGroupHeartbeatRequest, member: ConsumerMember) -> ConsumerMember:
    """M-HB-01."""
    names = body.subscribed_topic_names
    return member._replace(
        instance_id=member.instance_id if body.instance_id is None else body.instance_id,
        rack_id=member.rack_id if body.rack_id is None else body.rack_id,
        rebalance_timeout=member.rebalance_timeout if body.rebalance_timeout_ms == -1 else body.rebalance_timeout_ms,
        assignor=member.assignor if body.server_assignor is None else body.server_assignor,
        topic_names=member.topic_names if names is None else frozenset(names),
        regex=member.regex if body.subscribed_topic_regex is None else body.subscribed_topic_regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


@varies
def begins(step: Step, opened: Opened) -> bool:
    """Whether the group must begin an epoch because it is new (M-VAL-22, X-UP-15)."""
    return opened.must_bump


@varies
def loses_topics(step: Step, group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember) -> bool:
    """Whether a member that changes to an unresolved regex subscribes to other topics until it is resolved: the topics
    that it loses must go to other members (LIV-15, M-HB-03). A topic that no longer exists does not count (M-RX-08)."""
    return step.topics.ids(group.topics_of(old)) != step.topics.ids(group.topics_of(new))


@varies
def said_to_own(
    step: Step, body: ConsumerGroupHeartbeatRequest, member: ConsumerMember
) -> Iterable[TopicPartitions] | None:
    """The partitions that the member claims to own, None without a claim. The join of a known member may be older than
    its last assignment, so its "I own nothing" counts as no claim (M-FENCE-07). From a member that is new, or replaces
    one that left (M-REC-24), it is true."""
    there = member.epoch > JOIN_EPOCH and member.state is not MemberState.UNKNOWN  # M-REC-06
    return None if body.member_epoch == JOIN_EPOCH and there else body.topic_partitions


def _full(body: ConsumerGroupHeartbeatRequest) -> bool:
    """M-RSP-01."""
    if body.member_epoch == JOIN_EPOCH:
        return True
    subscribes = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    return body.rebalance_timeout_ms != -1 and subscribes and body.topic_partitions is not None
