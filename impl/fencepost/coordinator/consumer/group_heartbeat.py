"""ConsumerGroupHeartbeat for members that join or stay (7.4), in Kafka's order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.records import Record

from ..kernel.step import Step
from . import (
    access,
    identity,
    records,
    regex,
    target,
    timers,
    update,
)
from .group import ConsumerGroup, ConsumerMember
from .identity import Found
from .regex import RegexChange


class Opened(NamedTuple):
    """The group that a heartbeat is for. Where there was none, or one of another kind: the records that make it this
    one, and whether a group that begins so has to begin an epoch (M-VAL-22, X-UP-15)."""

    group: ConsumerGroup
    written: list[Record]
    must_bump: bool


def stay(
    step: Step,
    request: Request,
    body: ConsumerGroupHeartbeatRequest,
    opened: Opened,
    accepted: Callable[[], None],
) -> ConsumerGroupHeartbeatResponse:
    """The answer to a member that joins or stays; ``accepted`` is called when no check is left that could refuse it.
    Raises ``Refused``, ``InternalError``."""
    group, written, _ = opened
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
        new.topic_names != old.topic_names
        or regex_change is RegexChange.RESOLVED
        or target.elects_another(step, group, new)
        or _must_begin(step, group)
        or opened.must_bump
    )
    if regex_change is RegexChange.UNRESOLVED and not _starves_after_prune(step):
        had, has = group.topics_of(old), group.topics_of(new)
        bump = bump or step.topics.ids(had) != step.topics.ids(has)  # LIV-15 mended
    epochs = update.bumped(step, group, old, new, written, bump=bump)
    goal = target.current(step, group, new, epochs.epoch, epochs.kind)
    written += goal.records
    changed = new.topic_names != old.topic_names or regex_change is not RegexChange.NONE
    owned = None if _comes_back(step, body, old) else body.topic_partitions
    result = update.reconciled(step, group, new, goal, owned, changed=changed)
    if result != new:
        written.append(records.current_assignment(group.group_id, result, step.profile))
    accepted()
    access.write(step, written)
    if result != new:
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
        return identity.find_dynamic(group, claim, step.profile)
    return identity.find_static(group, body.instance_id, claim, step.profile)


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


def _comes_back(step: Step, body: ConsumerGroupHeartbeatRequest, member: ConsumerMember) -> bool:
    """M-FENCE-07 mended: the join of a member that is there may be older than what the member was given since, so its
    "I own nothing" counts as not said. Of a member that is new, or comes for one that left (M-REC-24), it is true."""
    there = member.epoch > JOIN_EPOCH and member.state is not MemberState.UNKNOWN  # M-REC-06
    return body.member_epoch == JOIN_EPOCH and there and not step.profile.fault_rejoin_confirms_revocation


def _starves_after_prune(step: Step) -> bool:
    """LIV-15; where nothing is pruned, nothing starves."""
    return step.profile.fault_resolved_regex_change_no_bump or step.profile.old_whole_target


def _must_begin(step: Step, group: ConsumerGroup) -> bool:
    """M-VAL-21: a release before 4.3 always leaves epoch 0."""
    return step.profile.old_epochs_start_at_zero and group.epoch == 0


def _full(body: ConsumerGroupHeartbeatRequest) -> bool:
    """M-RSP-01."""
    if body.member_epoch == JOIN_EPOCH:
        return True
    subscribes = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    return body.rebalance_timeout_ms != -1 and subscribes and body.topic_partitions is not None
