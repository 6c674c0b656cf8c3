"""ConsumerGroupHeartbeat for members that join or stay (7.4), in Kafka's order."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.records import Record

from .. import conversion, operations
from ..errors import InternalError
from ..replies import refusal
from ..work import Step
from . import leave, membership, metadata, reconcile, records, regex, subscription, target, timers, validation
from .errors import Refused
from .membership import Found
from .regex import RegexChange
from .state import ConsumerGroup, ConsumerMember


def heartbeat(step: Step, request: Request, body: ConsumerGroupHeartbeatRequest) -> None:
    """Errors are told at once, the rest is never ahead of the log (F-RT-26, M-HB-11)."""
    try:
        if step.profile.old_checks_after_load:  # M-VAL-04
            error = validation.invalid(request.version, body, step.settings)
            if error is not None:
                raise Refused(error)
        if body.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
            reply = leave.leave(step, body)
        else:
            reply = _stay(step, request, body)
    except Refused as refused:
        step.reply(request.id, refusal(request, refused.error))
        return
    except InternalError:
        step.reply(request.id, refusal(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    operations.done(step, request, reply=reply)


def _stay(step: Step, request: Request, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    written: list[Record] = []
    group = conversion.group_for_heartbeat(step, body, written)
    if len(group.members) >= step.settings.group_consumer_max_size and body.member_id not in group.members:
        raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED)  # M-VAL-25, M-VAL-28, M-VAL-30
    found = _find(step, group, body)
    old = found.member
    if found.replaced is not None:
        written += _replacement(step, group, found)
    new = _updated(request, body, old)
    if new != old:
        written.append(records.member_metadata(group.group_id, new))  # M-HB-02
    regex_change, forgotten = regex.update(step, request, group, old, new)
    written += forgotten
    names_changed = new.topic_names != old.topic_names
    epoch, kind = group.epoch, group.subscription_type
    bump = names_changed or regex_change is RegexChange.RESOLVED or _must_begin(step, group)
    if regex_change is RegexChange.UNRESOLVED and not _starves_after_prune(step):
        bump = bump or group.topics_of(new) != group.topics_of(old)  # LIV-15 mended
    mended = not step.profile.fault_stale_subscription_type and group.assignment_epoch < epoch  # M-TGT-06 mended
    if bump or mended or group.refresh_due(step.at_ms):
        counts = subscription.with_member(group, old, new)
        came = new.member_id not in group.members and new.instance_id not in group.static_members
        kind = subscription.type_of(counts.by_regex, counts.by_topic, len(group.members) + came)  # M-TGT-05
        if bump or group.refresh_due(step.at_ms):
            epoch = _looked(step, group, counts, bump=bump, written=written)
    goal = target.current(step, group, new, epoch, kind)
    written += goal.records
    result = _reconciled(step, group, new, goal, body, changed=names_changed or regex_change is not RegexChange.NONE)
    if result != new:
        written.append(records.current_assignment(group.group_id, result, step.profile))
    step.write(written)
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
    claim = membership.Claim(member_id, body.member_epoch, body.topic_partitions)
    if body.instance_id is None:
        return membership.find_dynamic(group, claim, step.profile)
    return membership.find_static(group, body.instance_id, claim, step.profile)


def _replacement(step: Step, group: ConsumerGroup, found: Found) -> list[Record]:
    """M-STATIC-10, F-ORD-10."""
    assert found.replaced is not None
    name, old_id = group.group_id, found.replaced.member_id
    return [
        *records.removed_member(name, old_id),
        records.member_metadata(name, found.member),
        records.target_member(name, found.member.member_id, group.target.get(old_id, {})),
        records.current_assignment(name, found.member, step.profile),
    ]


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


def _starves_after_prune(step: Step) -> bool:
    """LIV-15; where nothing is pruned, nothing starves."""
    return step.profile.fault_resolved_regex_change_no_bump or step.profile.old_whole_target


def _must_begin(step: Step, group: ConsumerGroup) -> bool:
    """M-VAL-21: a release before 4.3 always leaves epoch 0."""
    return step.profile.old_epochs_start_at_zero and group.epoch == 0


def _looked(
    step: Step, group: ConsumerGroup, counts: subscription.Subscriptions, *, bump: bool, written: list[Record]
) -> int:
    """M-HB-04, M-HB-05; tells the group epoch after it."""
    epoch = group.epoch
    facts = metadata.look(step, group, counts.by_topic)
    written += facts.before
    if bump or facts.differ:
        epoch += 1
        written.append(records.group_epoch(group.group_id, epoch, facts.hash))
    metadata.note(step, group, epoch)
    if group.partition_metadata is not None and not step.profile.old_partition_metadata:
        written.append(records.partition_metadata(group.group_id, None))  # M-META-08
    return epoch


def _reconciled(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    goal: target.Target,
    body: ConsumerGroupHeartbeatRequest,
    *,
    changed: bool,
) -> ConsumerMember:
    """M-HB-08."""
    if not changed and member.reconciled_to(goal.epoch):
        return member
    names = group.topics_of(member)
    topic_ids = step.topics.ids(names)
    wish = reconcile.Goal(goal.share, goal.epoch, topic_ids, bool(names), body.topic_partitions, changed)
    return reconcile.reconcile(group, member, wish, step.profile)


def _full(body: ConsumerGroupHeartbeatRequest) -> bool:
    """M-RSP-01."""
    if body.member_epoch == JOIN_EPOCH:
        return True
    subscribes = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    return body.rebalance_timeout_ms != -1 and subscribes and body.topic_partitions is not None
