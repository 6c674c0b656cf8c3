"""ConsumerGroupHeartbeat, step by step in Kafka's order (7.3, 7.4).

Each step returns its value and the records that say so. Nothing is changed before all steps that may reject the request
have passed. Then the records are written together, in one order (F-ORD-06), and the timers and the response follow.
"""

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
from fencepost.quirks import varies

from .consumer import group_epoch, members, reports, timers
from .consumer.consumer_appliers import write_records
from .consumer.reconcile import maybe_reconcile
from .consumer.records import share_rows
from .consumer.regex import RegexChange, update_subscribed_regex
from .consumer.target import is_other_assignor_preferred, update_target_assignment
from .kernel import operations
from .kernel.errors import InternalError, Rejected
from .kernel.group_configs import consumer_heartbeat_interval
from .kernel.replies import error_response
from .kernel.step import Step
from .mixed import upgrade
from .mixed.departure import consumer_group_leave


@varies
def consumer_group_heartbeat(step: Step, request: Request, body: ConsumerGroupHeartbeatRequest) -> None:
    """Errors are answered at once; other answers are never ahead of the log (F-RT-26, M-HB-11)."""
    leaves = body.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH)
    try:
        response = consumer_group_leave(step, body) if leaves else join_or_stay(step, request, body)
    except Rejected as rejected:
        step.reply(request.id, error_response(request, rejected.error, why=rejected.why))
    except InternalError:
        step.reply(request.id, error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
    else:
        operations.done(step, request, reply=response)


def join_or_stay(step: Step, request: Request, body: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """The response to a member that joins or stays. Raises ``Rejected``, ``InternalError``."""
    # 1. Get the group, create it, or upgrade a classic one.
    opened = upgrade.get_or_create_consumer_group(step, body)
    group, name = opened.group, body.group_id

    # 2. Get the member or create it, and give it the values of the request. A static member may replace another one.
    members.reject_if_group_is_full(step, group, body.member_id, body.instance_id)
    found = members.get_or_create_member(step, group, body)
    old = found.member
    new = members.updated_member(request, body, old)
    owned = members.owned_partitions(step, body, old)
    member_records = members.member_records(step, group, found, new)

    # 3. Resolve its regular expression if that has changed or is out of date.
    regex = update_subscribed_regex(step, request, group, old, new)

    # 4. Bump the group epoch if the group has to be assigned anew.
    renamed = new.renames(old)
    has_subscription_changed = renamed or regex.change is not RegexChange.NONE
    required = (
        renamed
        or regex.change is RegexChange.RESOLVED
        or (step.rules.votes_bump and is_other_assignor_preferred(step, group, new))
        or opened.must_bump
        or (step.rules.zero_epoch_ends and group.epoch == 0)
        or regex.loses_topics
    )
    bumped = group_epoch.bump_group_epoch(step, group, old, new, required=required)
    written = [*opened.records, *member_records, *regex.records, *bumped.records]

    # 5. Compute a new target assignment if one is due.
    target = update_target_assignment(step, group, new, bumped, written)

    # 6. Reconcile the member with its target.
    member, current = maybe_reconcile(step, group, new, target, owned, changed=has_subscription_changed)

    # 7. The request is accepted: write all records, and report a rebalance that begins or ends.
    if opened.upgraded is not None:
        upgrade.release_classic_members(step, opened.upgraded)
    write_records(step, [*written, *target.records, *current])
    if bumped.epoch != group.epoch:
        converted = opened.upgraded is not None
        subscribes_anew = has_subscription_changed or converted
        cause = reports.update_of(group, new, found.replaced, bump=required, subscribes_anew=subscribes_anew)
        reports.started(step, name, bumped.epoch, cause, converted=converted)
    if current:
        reports.maybe_ended(step, name)

    # 8. Schedule the timeouts of the member.
    if current:
        timers.schedule_or_cancel_rebalance_timeout(step, name, member)
    timers.schedule_session_timeout(step, name, member.member_id)  # M-HB-09

    # 9. Respond, with the assignment if the request is a full one or the assignment has changed (M-RSP-01).
    shown = is_full_request(body) or member.assigned != old.assigned
    return ConsumerGroupHeartbeatResponse(
        ErrorCode.NONE,
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=consumer_heartbeat_interval(step, name),
        assignment=share_rows(member.assigned) if shown else None,  # M-RSP-02
    )


def is_full_request(body: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the member has sent all its values, as it does when it does not know what the coordinator has
    (M-RSP-01)."""
    if body.member_epoch == JOIN_EPOCH:
        return True
    subscribes = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    return body.rebalance_timeout_ms != -1 and subscribes and body.topic_partitions is not None
