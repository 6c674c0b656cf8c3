"""JoinGroup to a consumer group with members (9.3): the steps of a heartbeat, with the values of a classic member."""

from __future__ import annotations

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.settings import MigrationPolicy

from ..classic import membership as classic_membership
from ..consumer import group_epoch, members, reports
from ..consumer.consumer_appliers import write_records
from ..consumer.group import ConsumerGroup
from ..consumer.reconcile import maybe_reconcile
from ..consumer.regex import RegexChange, update_subscribed_regex
from ..consumer.target import update_target_assignment
from ..kernel import operations
from ..kernel.errors import InternalError, Rejected
from ..kernel.replies import error_response
from ..kernel.step import Step
from . import downgrade
from .classic_member import ClassicJoined
from .embedded import confirmed, owned_rows, read_subscription

#: From this version on a dynamic member must come back with the id that it got (X-JOIN-05).
MEMBER_ID_REQUIRED_SINCE = 4


def join(step: Step, request: Request, body: JoinGroupRequest, group: ConsumerGroup) -> None:
    """Add a member of the classic protocol, or let a known one join again (X-JOIN-02 and following; X-JOIN-01 applies
    to every JoinGroup). An error is answered at once and without a member id (X-JOIN-26), success when it is in the log
    (X-JOIN-14)."""
    try:
        _join(step, request, body, group)
    except Rejected as rejected:
        step.reply(request.id, error_response(request, rejected.error))
    except InternalError:
        step.reply(request.id, error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))


def _join(step: Step, request: Request, body: JoinGroupRequest, group: ConsumerGroup) -> None:
    """Raises ``Rejected``, ``InternalError``."""
    # 1. Check that the group takes the member: the policy, its size, its protocols, its id.
    _require_accepting(step)
    name, instance_id, fresh, reason = body.group_id, body.group_instance_id, not body.member_id, body.reason or ""
    member_id = body.member_id or step.choices.uuid()  # X-JOIN-02
    rebalance_timeout = classic_membership.rebalance_timeout(request, body)
    members.reject_if_group_is_full(step, group, member_id, instance_id)  # X-JOIN-03
    members.reject_if_protocol_is_not_supported(group, body.protocol_type, body.protocols)  # X-JOIN-04
    if fresh and instance_id is None and request.version >= MEMBER_ID_REQUIRED_SINCE:
        step.reply(request.id, JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id))  # X-JOIN-05
        operations.done(step, request)
        return

    # 2. Get the member or create it, and give it the values of the request. A static member may replace another one.
    found = members.get_or_create_classic_member(group, member_id, instance_id, fresh=fresh)
    old = found.member
    subscription = read_subscription(step, body)
    if body.member_id and step.rules.join_generation_checked:  # it must be up to date (X-JOIN-06, X-JOIN-10, X-JOIN-12)
        owned = confirmed(group.members.get(body.member_id), subscription, step.topics)
    else:
        owned = owned_rows(subscription.owned_partitions, step.topics)
    new = members.updated_classic_member(request, body, old, subscription, rebalance_timeout)
    member_records = members.member_records(step, group, found, new)

    # 3. It has no regular expression any more; others may be out of date.
    regex = update_subscribed_regex(step, request, group, old, new)

    # 4. Bump the group epoch if the group has to be assigned anew.
    has_subscription_changed = new.renames(old) or regex.change is not RegexChange.NONE
    bumped = group_epoch.bump_group_epoch(step, group, old, new, required=has_subscription_changed)
    written = [*member_records, *regex.records, *bumped.records]

    # 5. If it replaces the last member of the consumer protocol, the group becomes a classic one.
    last = downgrade.is_last(step, group, instance_id)
    if last is not None:
        replaced = downgrade.Replaced(last, new, owned, bumped.epoch, has_subscription_changed, reason)
        downgrade.by_replacement(step, request, group, replaced, written)
        return

    # 6. Compute a new target assignment if one is due, and reconcile the member with it.
    target = update_target_assignment(step, group, new, bumped, written)
    member, current = maybe_reconcile(step, group, new, target, owned, changed=has_subscription_changed)

    # 7. The request is accepted: write all records, and report a rebalance that begins or ends.
    write_records(step, [*written, *target.records, *current])
    if bumped.epoch != group.epoch:
        changed = has_subscription_changed
        cause = reports.update_of(
            group, new, found.replaced, bump=changed, subscribes_anew=changed, client_reason=reason
        )
        reports.started(step, name, bumped.epoch, cause)
    if current:
        reports.maybe_ended(step, name)

    # 8. Schedule the timeouts of the member, and respond, when the records are in the log.
    joined = ClassicJoined(name, member.member_id, body.session_timeout_ms, rebalance_timeout)
    response = JoinGroupResponse(
        ErrorCode.NONE,
        generation_id=member.epoch,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=body.protocols[0].name,
        member_id=member.member_id,
    )  # X-JOIN-15
    if not operations.waits(step, request, joined, response):
        joined.replicated(step, request)
        step.reply(request.id, response)


def _require_accepting(step: Step) -> None:
    """If the policy does not allow both protocols in a group, no classic member joins a consumer group (X-POL-04).
    Raises ``Rejected``."""
    disabled = step.settings.group_consumer_migration_policy is MigrationPolicy.DISABLED
    if disabled and step.rules.policy_checked_at_joins:
        raise Rejected(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
