"""ConsumerGroupHeartbeat with an epoch of 0 or more (rule book, 7.3–7.6)."""

from __future__ import annotations

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.consumer_records import ConsumerGroupPartitionMetadataKey
from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.errors import ErrorCode

from ..machines import C_STABLE, C_UNKNOWN, C_UNREVOKED
from ..widths import next_epoch
from .derive import counted, holders, subscription, subscription_type, votes
from .found import Found
from .group_step import GroupStep
from .reconcile import Context, Goal, reconcile
from .refusal import Refused
from .regex import Regex, update_regex
from .rows import owned_set, target_rows, without_epochs
from .state import REBALANCE, ConsumerHeartbeat, Member, Partition, Target, Timer
from .target import FAILS, GroupSpec, MemberSpec, possible_outcomes, propose, valid


def heartbeat(t: GroupStep, request: ConsumerHeartbeat) -> ConsumerGroupHeartbeatResponse:
    """Run the steps M-HB-01…11 in their order. Raises Refused; then nothing is written (M-HB-12, 13)."""
    body = request.body
    member_id = body.member_id or request.new_id  # M-VAL-26
    check_capacity(t, body.member_id, body.instance_id)
    found = find_member(t, body, member_id)
    member = found.member
    updated = member._replace(
        instance=body.instance_id if body.instance_id is not None else member.instance,
        rack=body.rack_id if body.rack_id is not None else member.rack,
        rebalance_timeout=body.rebalance_timeout_ms if body.rebalance_timeout_ms != -1 else member.rebalance_timeout,
        assignor=body.server_assignor if body.server_assignor is not None else member.assignor,
        names=member.names if body.subscribed_topic_names is None else _names(body.subscribed_topic_names),
        regex=member.regex if body.subscribed_topic_regex is None else body.subscribed_topic_regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )
    owned = owned_set(body.topic_partitions)
    is_member = member.epoch > JOIN_EPOCH and member.state != C_UNKNOWN  # M-REC-06
    if body.member_epoch == JOIN_EPOCH and is_member and t.variant.consumer.rejoin_confirms_nothing:
        owned = None  # M-FENCE-07: the member may have been given partitions since it wrote this
    after, _ = bump_and_reconcile(t, found, updated, owned)
    t.arm_session(member_id)  # M-HB-09
    is_full_request = body.member_epoch == JOIN_EPOCH or (
        body.rebalance_timeout_ms != -1
        and (body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None)
        and owned is not None
    )
    includes_assignment = is_full_request or after.assigned != member.assigned
    t.rule("M-RSP-01", "M-HB-10")
    return ConsumerGroupHeartbeatResponse(
        ErrorCode.NONE,
        member_id=member_id,
        member_epoch=after.epoch,
        heartbeat_interval_ms=t.heartbeat_interval(),
        assignment=target_rows(without_epochs(after.assigned)) if includes_assignment else None,  # M-RSP-02
    )


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


# ---- identity ---------------------------------------------------------------------------------------------------


def check_capacity(t: GroupStep, member_id: str, instance: str | None) -> None:
    """Check the capacity, before the member is looked up (M-VAL-25, 28, 30). A member that holds the instance id
    already has its place."""
    if instance is not None and t.group.held_by(instance) and t.variant.consumer.returning_static_has_place:
        return
    if len(t.group.members) >= t.settings.group_consumer_max_size and t.group.member(member_id) is None:
        raise Refused(ErrorCode.GROUP_MAX_SIZE_REACHED, "M-VAL-25")


def find_member(t: GroupStep, body: ConsumerGroupHeartbeatRequest, member_id: str) -> Found:
    """Return the member of the request. Raises Refused if identity or epoch do not fit (M-FENCE-01…09,
    M-STATIC-01…06)."""
    instance, epoch = body.instance_id, body.member_epoch
    known = t.group.member(member_id)
    if instance is None:
        if known is None:
            if epoch != JOIN_EPOCH:
                raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "M-FENCE-01")
            t.rule("M-FENCE-02")
            return Found(Member(member_id))
        validate_member_epoch(t, known, body)
        return Found(known)
    mapped = t.group.held_by(instance)
    if epoch == JOIN_EPOCH:
        if mapped is None:
            t.rule("M-STATIC-01")  # a member with that id is used as it is
            return Found(Member(member_id) if known is None else known)
        holder = t.group.member(mapped)
        if holder is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "M-STATIC-13")
        if holder.epoch != STATIC_LEAVE_EPOCH and holder.classic is None:
            if mapped == member_id and t.variant.consumer.static_may_rejoin:
                validate_member_epoch(t, holder, body)  # as M-FENCE-07
                return Found(holder)
            raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, "M-STATIC-02")
        if known is not None and known is not holder and t.variant.consumer.only_new_member_replaces:
            raise Refused(ErrorCode.UNRELEASED_INSTANCE_ID, "M-STATIC-15")
        t.rule("M-STATIC-03")
        return replace_member(t, holder, member_id)
    if mapped is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "M-STATIC-04")
    holder = t.group.member(mapped)
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, "M-STATIC-13")
    if mapped != member_id:
        raise Refused(ErrorCode.FENCED_INSTANCE_ID, "M-STATIC-05")
    validate_member_epoch(t, holder, body)
    return Found(holder)


def replace_member(t: GroupStep, old: Member, member_id: str) -> Found:
    """Write the old member's tombstones and its copy under the new id (M-STATIC-03, 10, F-ORD-10)."""
    t.rule("M-STATIC-10")
    new = old._replace(member_id=member_id, epoch=0, previous=0)
    t.write_member_tombstones(old.member_id)
    t.write_member(new)
    t.write_target(member_id, t.group.target_of(old.member_id) or ())
    t.write_current(new)
    return Found(new, old)


def validate_member_epoch(t: GroupStep, member: Member, body: ConsumerGroupHeartbeatRequest) -> None:
    """Check the epoch of the request (M-FENCE-03…07). A refusal does not touch the member (M-FENCE-08)."""
    epoch = body.member_epoch
    if epoch == JOIN_EPOCH and t.variant.consumer.member_may_rejoin:
        t.rule("M-FENCE-07")
        return
    if epoch > member.epoch:
        raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, "M-FENCE-03")
    if epoch == member.epoch:
        t.rule("M-FENCE-06")
        return
    owned = owned_set(body.topic_partitions)
    if epoch == member.previous and owned is not None and owned <= frozenset(without_epochs(member.assigned)):
        t.rule("M-FENCE-04")  # the answer with the new epoch may be lost
        return
    raise Refused(ErrorCode.FENCED_MEMBER_EPOCH, "M-FENCE-05")


# ---- bump, target, reconciliation -------------------------------------------------------------------------------


def bump_and_reconcile(
    t: GroupStep,
    found: Found,
    updated: Member,
    owned: frozenset[Partition] | None,
    *,
    is_join: bool = False,
    is_downgrade: bool = False,
    owes_partitions: bool = False,
) -> tuple[Member, bool]:
    """Bump, compute and reconcile (M-HB-02…08). Returns the member afterwards, and whether it must wait for a target.

    ``is_join``: the request is a JoinGroup (X-JOIN-11). ``is_downgrade``: it downgrades the group, so no target is
    computed. ``owes_partitions``: the group owes partitions to another member, so the member must wait for a rebalance
    after the downgrade (X-DOWN-22).
    """
    member = found.member
    others = [m for m in t.group.members if m is not found.replaced and m.member_id != updated.member_id]
    members = tuple(sorted([*others, updated]))
    # Kafka keeps the counts instead of recounting: a known id that takes over a static member counts twice.
    goes = found.replaced or t.group.member(updated.member_id)
    stay = [each for each in t.group.members if each is not goes]
    counting = tuple(sorted([*stay, updated], key=lambda each: each.member_id))
    if updated != member:
        t.rule("M-HB-02")
        if member.instance not in (None, updated.instance):
            t.rule("M-STATIC-13")  # it gives up an instance id
        t.write_member(updated)
    regex = update_regex(t, found, updated, is_join=is_join)
    bump = updated.names != member.names or regex is Regex.BUMP
    if bump:
        t.rule("M-HB-03")
    if not is_join and not bump and t.variant.consumer.assignor_changes(t, counting):
        t.rule("M-HB-14")
        bump = True
    if t.upgrade_records and t.variant.mixed.upgrade_bumps:
        t.rule("X-UP-15")
        bump = True
    if t.group.epoch == 0 == t.variant.consumer.first_epoch:
        bump = True  # V-31
    epoch, refreshed = maybe_bump_group_epoch(t, counting, bump or t.must_write_epoch)
    kind = t.group.type
    if refreshed or t.variant.consumer.recounts_type:
        kind = subscription_type(counting, counted(counting, t.group.members, t.group.regexes))  # M-TGT-06
    reached = t.group.assignment_epoch
    stale = reached < epoch if t.variant.mixed.downgrade_follows_target else bump
    if is_downgrade and (owes_partitions or stale):
        t.rule("X-DOWN-22")
        return updated, True
    if not is_downgrade and reached < epoch and may_compute_target(t):
        t.rule("M-HB-06", "M-TGT-01", "M-TGT-05")
        target = compute_target_assignment(t, found, members, kind, epoch, voters=counting)[updated.member_id]
        reached = epoch
    else:
        target = t.variant.consumer.stored_target(t, updated)
    changed = updated.names != member.names or updated.regex != member.regex
    if updated.state == C_STABLE and updated.epoch == reached and not changed:
        return updated, False
    t.rule("M-HB-08")
    topics = subscription(updated, t.group, t.environment.image)
    goal = Goal(target, reached, topics, owned, changed, holders(t.group.members))
    after = reconcile(Context(t.variant, t.rules, t.chooser.pick), updated, goal)
    if after != updated:
        t.write_current(after)
        if after.classic is None:
            if after.state == C_UNREVOKED:
                t.rule("M-TMR-02")
                t.arm_rebalance(after)
            else:
                t.armed[Timer(REBALANCE, after.member_id)] = None
    return after, False


def assignor_changes(t: GroupStep, voters: tuple[Member, ...]) -> bool:
    """Return whether these votes elect another assignor than the previous ones (M-HB-14). The winner of a tie stays
    (M-HB-15)."""
    before, after = (votes(t.variant, t.settings, each) for each in (t.group.members, voters))
    return before != after and elects_another(t, before, after)


def elects_another(t: GroupStep, before: list[str], after: list[str]) -> bool:
    """Return whether the two winners, of which several may be possible, differ."""
    return t.chooser.pick("assignor before", before) != t.chooser.pick("assignor after", after)


def maybe_bump_group_epoch(t: GroupStep, members: tuple[Member, ...], bump: bool) -> tuple[int, bool]:
    """Return the group epoch after the request, and whether the metadata were checked (M-HB-04, 05)."""
    epoch = t.group.epoch
    deadline = t.group.refresh
    if not bump and deadline is not None and t.environment.now < deadline[0] and epoch >= deadline[1]:
        return epoch, False
    t.rule("M-HB-04")
    topics = t.topics(members)
    if not bump and not t.variant.consumer.has_metadata(t, topics):
        t.rule("M-EPOCH-03")
        bump = True
    if bump:
        epoch = next_epoch(epoch)
        t.write_epoch(epoch, topics)
    t.refresh = (t.environment.now + t.settings.metadata_refresh_interval_ms, epoch)
    if t.group.legacy and t.variant.consumer.stores_hash:
        t.rule("M-META-08")
        t.write(ConsumerGroupPartitionMetadataKey(t.group_id), None)
    return epoch, True


def may_compute_target(t: GroupStep) -> bool:
    """Return whether the assignment interval allows a computation (M-TGT-08)."""
    interval = t.assignment_interval() if t.variant.consumer.spaces_targets else 0
    if t.group.timestamp == 0 or interval == 0 or t.environment.now >= t.group.timestamp + interval:
        return True
    t.rule("M-TGT-09")
    return False


def compute_target_assignment(
    t: GroupStep,
    found: Found,
    members: tuple[Member, ...],
    kind: SubscriptionType,
    epoch: int,
    *,
    voters: tuple[Member, ...],
) -> dict[str, Target]:
    """Compute a target, write what changed of it, and return it (M-TGT-02…06). ``voters``: the members whose votes
    count."""
    group = t.group
    assignor = t.chooser.pick("assignor", votes(t.variant, t.settings, voters))
    if assignor not in t.settings.group_consumer_assignors:  # from a log that another configuration wrote
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "M-TGT-02")
    old = {} if found.replaced is None else {found.member.member_id: found.replaced.member_id}
    known = before = dict(group.target)
    if t.variant.consumer.replacement_has_target:
        old = {replacement: predecessor for replacement, predecessor in old.items() if predecessor in before}
        known = before | {replacement: before[predecessor] for replacement, predecessor in old.items()}
    specs = tuple(
        [
            MemberSpec(
                m.member_id,
                m.instance,
                subscription(m, group, t.environment.image),
                before.get(old.get(m.member_id, m.member_id), ()),
            )
            for m in members
        ]
    )
    counts = t.variant.consumer.known_partitions(t)
    replaces = found.replaced is not None
    withheld = before.get(found.member.member_id, ()) if replaces else ()  # M-STATIC-15
    if withheld:
        t.rule("A-UHOM-08")
    group_spec = GroupSpec(assignor, kind, specs, counts, withheld)
    if t.chooser.pick("outcome", possible_outcomes(group_spec)) == FAILS:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "M-TGT-03")
    target = t.variant.consumer.assign(t, group_spec)
    for spec in specs:
        if known.get(spec.member_id) != target[spec.member_id]:
            t.write_target(spec.member_id, target[spec.member_id])
    t.rule("M-TGT-04")
    t.write_target_epoch(epoch, t.environment.now)
    return target


def assign(t: GroupStep, group_spec: GroupSpec) -> dict[str, Target]:
    """Return the target of each member, as the assignor computes it. Raises Refused if it fails (M-HB-12)."""
    given = t.environment.oracle.target(t.group_id, group_spec)
    if given is None:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "M-HB-12")
    return dict(given) if valid(group_spec, given) else propose(group_spec)


def stored_target(t: GroupStep, updated: Member) -> Target:
    """Return the stored target of the member, or of the one that it replaces (M-HB-07)."""
    owner = None if updated.instance is None else t.group.held_by(updated.instance)
    return t.group.target_of(updated.member_id if owner is None else owner) or ()
