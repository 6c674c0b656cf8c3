"""Judge an answer to ConsumerGroupHeartbeat, and learn from it.

The trace shows only the part of the target assignment that a member is given. So the checker treats the target as
unknown. It compares an answer with everything that does not depend on the target: the epochs, what the member had, what
it says it owns, what other members certainly hold, and what it subscribes to. The answer shows which outcome
reconciliation had (M-REC-*).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from fencepost.protocol.errors import ErrorCode as E

from ..history import NEVER, Op
from .group import Before, Knowledge
from .members import Member, Partition, Presence, partitions
from .validity import invalid
from .wrong import Wrong, differs

#: The checker does not know the rights of callers, so it accepts these errors (M-VAL-02).
_DENIED: Final = frozenset({E.GROUP_AUTHORIZATION_FAILED, E.TOPIC_AUTHORIZATION_FAILED})


def judge(
    known: Knowledge, op: Op, body: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse
) -> None:
    """Judge an answer, and learn from it if it is possible. Raises Wrong."""
    before = known.before[op.id]
    error = answer.error_code
    if error in _DENIED:
        return
    wrong = invalid(known.settings, op.version, body)
    if wrong is not None:
        if error is not wrong[0]:
            raise Wrong(op, wrong[0].name, wrong[1])
        return
    if error is E.COORDINATOR_NOT_AVAILABLE:
        if known.consumer_from < op.line:
            raise Wrong(op, "NONE", "F-RT-02")
        return
    if error is not E.NONE:
        _refused(known, op, body, error, before)
    elif body.member_epoch < JOIN_EPOCH:
        _left(known, op, body, answer)
    else:
        _accepted(known, op, body, answer, before)


# ---- errors ---------------------------------------------------------------------------------------------------------


def _refused(known: Knowledge, op: Op, body: ConsumerGroupHeartbeatRequest, error: E, before: Before) -> None:
    member = known.members.get(body.member_id)
    inside = member is not None and known.stays(op, member)
    epoch = body.member_epoch
    if error is E.UNKNOWN_MEMBER_ID:
        same = member is not None and body.instance_id in (None, member.instance)
        if member is not None and body.instance_id is not None:
            same = same and not member.claims and not known.may_be_relabelled(op, member)  # M-STATIC-04
        if inside and same:
            raise Wrong(op, "NONE", "M-FENCE-01", "M-TMR-01")
        if epoch == JOIN_EPOCH and body.instance_id is None:
            raise Wrong(op, "NONE", "M-FENCE-02")
        if member is not None and before.alone and body.instance_id is None:
            member.presence, member.exact = Presence.OUT, False
    elif error is E.FENCED_MEMBER_EPOCH:
        there = not before.newcomer or known.may_have_joined(op, body.member_id)
        known_at_zero = epoch == JOIN_EPOCH and known.profile.old_known_member_at_zero_fenced and there
        if epoch <= JOIN_EPOCH and not known_at_zero:
            raise Wrong(op, "NONE", "M-FENCE-07")
        if before.newcomer and before.alone:
            raise Wrong(op, "UNKNOWN_MEMBER_ID", "M-FENCE-01")
        if member is not None and inside and member.exact and before.alone and epoch == member.epoch:
            raise Wrong(op, "NONE", "M-FENCE-06")
    elif error is E.UNRELEASED_INSTANCE_ID:
        holders = list(known.holders(body.instance_id or "", op.line))
        holders = [each for each in holders if not (before.newcomer and before.alone and each is member)]
        # a member of the group does not replace another one (M-STATIC-15)
        placed = not (before.newcomer or known.profile.fault_replacement_merges_members)
        free = (
            not known.contested(op, body.instance_id or "")
            and not (placed and [each for each in holders if each is not member])
            and not known.relabelled()
        )
        if epoch != JOIN_EPOCH or (free and all(_has_been_away(holder, op) for holder in holders)):
            raise Wrong(op, "NONE", "M-STATIC-01", "M-STATIC-03")
    elif error is E.FENCED_INSTANCE_ID:
        others = [each for each in known.holders(body.instance_id or "", op.line) if each is not member]
        if epoch == JOIN_EPOCH or not (others or known.contested(op, body.instance_id or "")):
            raise Wrong(op, "NONE", "M-STATIC-05")
    elif error is E.GROUP_MAX_SIZE_REACHED:
        if inside or max(before.most, known.possible(body.member_id)) < known.settings.group_consumer_max_size:
            raise Wrong(op, "NONE", "M-VAL-25")
    elif error is E.GROUP_ID_NOT_FOUND:
        if known.surely_consumer(op):
            raise Wrong(op, "NONE" if inside else "UNKNOWN_MEMBER_ID", "M-VAL-20", "M-VAL-24")
        if not (epoch == LEAVE_EPOCH and known.downgrade_may_fail()):
            known.no_consumer_group(op)
    elif error is E.INVALID_REGULAR_EXPRESSION:
        if not body.subscribed_topic_regex:
            raise Wrong(op, "NONE", "M-VAL-08")
    elif error is not E.UNKNOWN_SERVER_ERROR or not known.may_fail(op):
        raise Wrong(op, "NONE" if inside or epoch == JOIN_EPOCH else "UNKNOWN_MEMBER_ID", "M-HB-12")


# ---- leaving --------------------------------------------------------------------------------------------------------


def _left(
    known: Knowledge, op: Op, body: ConsumerGroupHeartbeatRequest, answer: ConsumerGroupHeartbeatResponse
) -> None:
    before = known.before[op.id]
    if before.newcomer and before.alone:
        raise Wrong(op, "UNKNOWN_MEMBER_ID", "M-LEAVE-02")
    if answer.member_epoch != body.member_epoch or answer.assignment is not None or answer.heartbeat_interval_ms:
        raise differs(
            op, replace(answer, member_epoch=body.member_epoch, assignment=None, heartbeat_interval_ms=0), "M-RSP-04"
        )
    if answer.member_id != body.member_id:
        raise differs(op, replace(answer, member_id=body.member_id), "M-RSP-04")
    member = known.members.setdefault(body.member_id, Member(body.member_id, presence=Presence.OUT))
    if body.member_epoch == LEAVE_EPOCH:
        others = any(
            not each.classic and each is not member and known.surely_in(each) for each in known.members.values()
        )
        if others and known.surely_consumer(op):  # no downgrade (X-DOWN-01)
            known.epochs.bumped(before.seen, known.now, op.line)  # M-EPOCH-04
        # a request that overlaps may have brought it back
        member.presence, member.exact = Presence.OUT if before.alone else Presence.PERHAPS, False
    else:
        assert body.member_epoch == STATIC_LEAVE_EPOCH
        # the coordinator may have processed a rejoin that overlaps the leave after it
        member.away, member.away_from = True, op.answer_line if before.alone else NEVER
        member.epoch = STATIC_LEAVE_EPOCH
        member.revoking = frozenset()  # M-PE-04
        member.held = dict.fromkeys(member.held, 0)  # M-PE-07
        member.exact = member.exact and before.alone
        member.presence = known.after(op, member)  # an overlapping join may have replaced it already
        member.latest_ms = NEVER


# ---- joining and staying --------------------------------------------------------------------------------------------


def _accepted(
    known: Knowledge,
    op: Op,
    body: ConsumerGroupHeartbeatRequest,
    answer: ConsumerGroupHeartbeatResponse,
    before: Before,
) -> None:
    epoch, asked = answer.member_epoch, body.member_epoch
    if body.member_id and answer.member_id != body.member_id:
        raise differs(op, replace(answer, member_id=body.member_id), "M-HB-10")
    interval = known.settings.group_consumer_heartbeat_interval_ms
    if answer.heartbeat_interval_ms != interval:
        raise differs(op, replace(answer, heartbeat_interval_ms=interval), "M-HB-10", "G-CFG-11")
    if before.newcomer and before.alone and asked > JOIN_EPOCH:
        raise Wrong(op, "UNKNOWN_MEMBER_ID", "M-FENCE-01", "M-TMR-01")
    if before.newcomer and before.alone and not _has_room(known, op, body):
        raise Wrong(op, "GROUP_MAX_SIZE_REACHED", "M-VAL-25")
    least = max(asked, 0 if known.classic_seen else 1)  # a classic group may have been converted at generation 0
    if epoch < least:
        raise Wrong(
            op, f"an epoch from {least} on", "M-FENCE-03", "M-VAL-21", "M-VAL-22", "INV-KIP-04", field="member_epoch"
        )
    if epoch > known.epochs.ceiling:
        raise Wrong(op, f"an epoch up to {known.epochs.ceiling}", "M-EPOCH-01", "INV-KIP-03", field="member_epoch")
    if full(body) and answer.assignment is None:
        raise Wrong(op, "an assignment", "M-RSP-01", field="assignment")
    member_id = answer.member_id or body.member_id  # in v0 the coordinator generates it (M-VAL-09)
    member = known.members.get(member_id)
    given = None if answer.assignment is None else partitions(answer.assignment)
    owned = None if body.topic_partitions is None else partitions(body.topic_partitions)
    believed = False
    if asked == JOIN_EPOCH:
        member, believed = _joined(known, op, body, member or Member(member_id, presence=Presence.OUT), before)
        owned = owned if believed else None
        if epoch < before.floor and believed:
            raise Wrong(op, f"an epoch from {before.floor} on", "M-REC-22", "M-TGT-01", field="member_epoch")
    elif member is None:
        return
    changed = _subscribe(member, body, alone=before.alone)
    member.regex_known = member.regex_known and before.alone  # else another request's regex may apply
    if member.classic:  # what it holds is unknown until it has synced, and so is whether it replaces itself (X-UP-13)
        member.changes_protocol()
        member.exact = False
    if given is not None:
        _subscribed(known, op, member, given)
    if member.exact and before.alone and not member.away:
        _reconciled(known, op, member, (asked, epoch), given, owned, changed, before)
    else:
        exact = before.alone and known.now > member.blurred_ms
        _learn(member, epoch, given, exact=exact, far=_far(known, member), owes=not believed)
        member.previous |= {asked} & {JOIN_EPOCH}
    _stay(known, op, member, body)
    _no_two_holders(known, op, member)
    known.epochs.answered(epoch, op.line, inside=known.surely_in(known.members[member_id]))
    known.epochs.computed(op.sent_ms)


def _has_room(known: Knowledge, op: Op, body: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the group may have room for a new member: it may not have been full all the time. From 4.4 on, the joiner
    may also replace a member of a full group (M-VAL-28)."""
    if sum(known.untouched(op, each) for each in known.members.values()) < known.settings.group_consumer_max_size:
        return True
    if body.instance_id is None or known.profile.old_full_group_refuses_statics:
        return False
    holders = [each for each in known.holders(body.instance_id, op.line) if each.member_id != body.member_id]
    return bool(holders) or known.contested(op, body.instance_id)


def full(body: ConsumerGroupHeartbeatRequest) -> bool:
    """Whether the request is a full one, whose answer contains the assignment (M-RSP-01)."""
    subscription = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    timed = body.rebalance_timeout_ms != -1
    return body.member_epoch == JOIN_EPOCH or (timed and subscription and body.topic_partitions is not None)


def _joined(
    known: Knowledge, op: Op, body: ConsumerGroupHeartbeatRequest, member: Member, before: Before
) -> tuple[Member, bool]:
    """The member before it is reconciled, and whether the coordinator believes that it owns nothing. The join of a
    known member may be a late copy; only Kafka believes that one (M-FENCE-07)."""
    instance = body.instance_id
    holders = list(known.holders(instance)) if instance is not None else []
    returns = not known.profile.fault_static_rejoin_unreleased  # a static member under its own id (L-06)
    believed = known.profile.fault_rejoin_confirms_revocation
    for holder in holders:
        has = holder.instance == instance and not holder.claims
        steady = has and not holder.classic and not holder.away and holder.until_line < op.line
        if (
            steady
            and not (holder is member and returns)
            and known.surely_in(holder)
            and not [each for each in holder.open if each is not op]
        ):
            raise Wrong(op, "UNRELEASED_INSTANCE_ID", "M-STATIC-02")
    if body.subscribed_topic_names and before.newcomer and instance is None:
        known.epochs.bumped(before.seen, known.now, op.line)  # M-EPOCH-01
    if not before.newcomer and not holders and instance is not None:  # it gets the instance id (M-STATIC-01)
        member.takes(instance, op.answer_line)
        member.exact = False
    if not before.newcomer and (not holders or (returns and holders == [member] and not member.away)):
        if not known.stays(op, member):  # it may be a new member: its session or rebalance timer may have fired
            member.exact = False
            member.claims = member.claims or member.instance not in (None, instance)
        known.members[member.member_id] = member
        return member, believed
    fresh = Member(member.member_id, instance=instance, session_ms=known.settings.group_consumer_session_timeout_ms)
    fresh.open, fresh.removers, fresh.formers = member.open, member.removers, member.formers
    if member.classic:
        member.changes_protocol()
    fresh.stray_ms, fresh.stray_until_ms = member.stray_ms, member.stray_until_ms
    if instance is None and not before.alone:  # this join does not remove the instance id of a request that overlaps
        fresh.instance, fresh.claims = member.instance, member.instance is not None
    elif member.instance is not None and member.instance != instance:
        fresh.formers = {**fresh.formers, member.instance: op.answer_line}
    for holder in holders:
        fresh.follows(holder, instance or "", op.answer_line)
    if not holders:
        fresh.names, fresh.exact, believed = frozenset(), True, True
    elif len(holders) == 1 and _is_replaced(known, holders[0]):
        # it keeps the partitions of its predecessor, which were never free (M-STATIC-03)
        predecessor = holders[0]
        fresh.exact, fresh.held = predecessor.exact, dict(predecessor.held)
        fresh.names, fresh.regex, fresh.regex_known = predecessor.names, predecessor.regex, predecessor.regex_known
        believed = True  # M-REC-24
    else:
        fresh.regex_known = False
        if not before.newcomer:  # the coordinator may know it, with partitions that it still has to revoke
            fresh.epoch = member.epoch
    known.members[fresh.member_id] = fresh
    if instance is not None and known.gives_up(op, fresh.member_id, instance):
        fresh.exact, fresh.contested = False, True
    return fresh, believed


def _has_been_away(holder: Member, op: Op) -> bool:
    """Whether the static member left for a while (epoch -2) before this request was sent, and has no request open."""
    return holder.away and holder.away_from < op.line and not holder.open


def _is_replaced(known: Knowledge, holder: Member) -> bool:
    """Whether the static member has left for a while (epoch -2), and its session is certainly not over."""
    kept = known.now < holder.since_ms + holder.session_ms - known.limits.tolerance_ms
    return holder.away and kept and not holder.open and not holder.claims


def _subscribe(member: Member, body: ConsumerGroupHeartbeatRequest, *, alone: bool) -> bool:
    """Take over the subscription of the request (M-HB-01); it is unknown afterwards if a request that is not ``alone``
    changes it, because another one may apply last. True if it may have changed."""
    changed = member.names is None
    if body.subscribed_topic_names is not None:
        names = frozenset(body.subscribed_topic_names)
        changed = changed or names != member.names
        member.names = names if alone or names == member.names else None
    if body.subscribed_topic_regex is not None:
        regex = body.subscribed_topic_regex or None
        changed = changed or regex != member.regex or not member.regex_known
        member.regex, member.regex_known = regex, alone
    if body.rebalance_timeout_ms != -1:
        member.rebalance_ms = body.rebalance_timeout_ms
    return changed


def _subscribed(known: Knowledge, op: Op, member: Member, given: frozenset[Partition]) -> None:
    """Check that the assignment has only existing partitions of subscribed topics (next(x, A) of 7.6)."""
    if member.names is None or not member.regex_known or known.profile.old_whole_target:
        return
    if not known.deletions_settled(op.sent_ms):
        return
    for topic in sorted({topic for topic, _ in given}):
        if known.topics.foreign(topic, member.names, member.regex):
            name = known.topics.names.get(topic, topic.hex())
            raise Wrong(
                op,
                f"nothing of topic {name}, to which it does not subscribe",
                "M-REC-12",
                "A-PROP-03",
                field="assignment",
            )
    for topic, number in sorted(given):
        if topic in known.topics.counts and not 0 <= number < known.topics.counts[topic]:
            raise Wrong(op, f"partitions below {known.topics.counts[topic]}", "INV-KIP-05", field="assignment")


def _reconciled(  # noqa: PLR0917
    known: Knowledge,
    op: Op,
    member: Member,
    epochs: tuple[int, int],
    given: frozenset[Partition] | None,
    owned: frozenset[Partition] | None,
    changed: bool,
    before: Before,
) -> None:
    """Judge an answer to a member whose state is exactly known, and take over the new state (M-FENCE-03…07, M-RSP-01,
    M-REC-01…14, 25). Raises Wrong."""
    asked, epoch = epochs
    had = frozenset(member.held)
    body = op.body
    assert isinstance(body, ConsumerGroupHeartbeatRequest)
    lost = asked in member.previous and asked < member.epoch and owned is not None and owned <= had
    joins = asked == JOIN_EPOCH and not known.profile.old_known_member_at_zero_fenced
    if asked != member.epoch and not joins and not lost:
        raise Wrong(op, "FENCED_MEMBER_EPOCH", "M-FENCE-03", "M-FENCE-05")
    if epoch < member.epoch:
        raise Wrong(op, f"an epoch from {member.epoch} on", "INV-KIP-04", field="member_epoch")
    has = had if given is None else given
    if given == had and not full(body):
        raise Wrong(op, "no assignment: it did not change", "M-RSP-01", field="assignment")
    drop, gain = had - has, has - had
    confirmed = owned is not None and owned.isdisjoint(member.revoking)
    waiting = bool(member.revoking) and not confirmed
    revoking: frozenset[Partition] = frozenset()
    pruned = False
    prunes = changed and not known.profile.old_whole_target
    advances = bool(member.revoking) and not waiting and known.profile.old_revocation_advances_epoch
    stays = member.epoch + advances  # the epoch at which it revokes
    if waiting:
        if epoch != member.epoch or gain or (drop and not prunes):
            raise Wrong(
                op,
                f"epoch {member.epoch}, no change: it still has to revoke",
                "M-REC-03",
                "M-REC-18",
                field="member_epoch",
            )
        revoking, pruned = member.revoking | drop, member.pruned
    elif epoch == stays and drop and not gain and (owned is None or not owned.isdisjoint(drop)):
        revoking, pruned = drop, changed or member.pruned  # M-REC-10, M-REC-25
    elif drop and (owned is None or not owned.isdisjoint(drop)):
        raise Wrong(op, f"epoch {stays}: it still owns what it has to revoke", "M-REC-10", field="member_epoch")
    elif member.revoking and epoch == member.epoch and not drop and not member.pruned:
        raise Wrong(
            op, f"an epoch from {member.epoch + 1} on: it has revoked", "M-REC-04", "M-REC-20", field="member_epoch"
        )
    if not revoking and epoch < before.floor:
        raise Wrong(
            op, f"an epoch from {before.floor} on, or less to own", "M-REC-02", "M-TGT-01", field="member_epoch"
        )
    member.previous = _previous(member, epoch, revoking)
    member.held = {each: member.held.get(each, epoch) for each in has}
    if revoking:
        if not waiting or drop:
            length = member.rebalance_ms or 0
            member.deadline_ms = op.sent_ms + length
            member.latest_ms = known.now + length + known.limits.slack_ms
        elif op.sent_ms > member.latest_ms:
            raise Wrong(op, "UNKNOWN_MEMBER_ID: its time to revoke is over", "M-TMR-02")
    else:
        member.deadline_ms = member.latest_ms = NEVER
    member.epoch, member.revoking, member.pruned = epoch, revoking, pruned


def _previous(member: Member, epoch: int, revoking: frozenset[Partition]) -> frozenset[int]:
    """The epochs that may be the member's previous one (M-REC-15). The answer does not show whether a member that did
    not change was reconciled (UNRELEASED)."""
    if epoch != member.epoch or (revoking and not member.revoking):
        return frozenset({member.epoch})
    return member.previous | {member.epoch}


def _far(known: Knowledge, member: Member) -> int:
    """The first epoch at which the member certainly has nothing to revoke (M-REC-10…14, M-REC-19)."""
    return member.epoch + 1 + known.profile.old_revocation_advances_epoch


def _learn(
    member: Member, epoch: int, given: frozenset[Partition] | None, *, exact: bool, far: int, owes: bool
) -> None:
    """Learn from an answer to a member whose state is not exactly known. An answer may contain A, and never contains R.

    So while the member may have to revoke (``owes``), its state is not exact until its epoch has reached ``far``, at
    which R is empty. Answers to requests that overlap arrive in any order, so the highest epoch counts.
    """
    moved = member.epoch > 0 and epoch >= far
    joined = member.away or member.epoch <= 0
    member.exact = exact and given is not None and (moved or joined or not owes)
    if given is not None:
        member.held = dict.fromkeys(given)
    # it may have had every epoch in between; if the epoch is the same, the previous one stays (M-REC-15)
    before = member.previous if epoch == member.epoch else frozenset()
    member.previous = before.union({member.epoch}, range(member.epoch, epoch))
    member.epoch, member.revoking, member.pruned = epoch if exact else max(epoch, member.epoch), frozenset(), False
    member.deadline_ms = member.latest_ms = NEVER
    if not member.exact:
        member.deadline_ms = 0  # a rebalance timer may be running


def _no_two_holders(known: Knowledge, op: Op, member: Member) -> None:
    """Check that no other member certainly holds a partition of this one (INV-KIP-01, INV-KIP-09). Raises Wrong.

    If the answer took long, the member may have been removed since."""
    if not member.exact or not known.surely_in(member):
        return
    for each in sorted(member.held):
        holder = known.holder_of(each, member.member_id)
        if holder is not None:
            topic = known.topics.names.get(each[0], each[0].hex())
            raise Wrong(
                op,
                f"not {topic}-{each[1]}, which {holder.member_id!r} holds",
                "INV-KIP-01",
                "INV-KIP-09",
                field="assignment",
            )


def _stay(known: Knowledge, op: Op, member: Member, body: ConsumerGroupHeartbeatRequest) -> None:
    if member.counted and body.member_epoch > JOIN_EPOCH:
        member.counted = False
        known.epochs.may_bump(-1)
    member.presence = Presence.PERHAPS if member.contested else known.after(op, member)
    member.contested = member.away = member.classic = False
    member.either = known.may_convert(op, member.member_id)
    other_ms = member.session_ms if member.either else 0
    member.session_ms = max(known.settings.group_consumer_session_timeout_ms, other_ms)
    member.heard(op, known.now, known.line, known.limits.slack_ms)
