"""Classic members of a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (rule book, 9.3 and 9.4).

These rules hold only while the group speaks the consumer protocol, which is certain as long as a member of that
protocol is. When the last one may be gone the group may be a classic one again, and nothing is claimed.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.consumer_protocol import NO_GENERATION, Subscription, decode_assignment, decode_subscription
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from ..answers import JOIN_PROTOCOL_TYPE, SYNC_PROTOCOL
from ..history import NEVER, Op
from .group import Knowledge
from .members import Member, Partition, Presence, rebalance_timeout
from .wrong import Wrong, differs

#: JoinGroup from this version on gives a new member its id first (X-JOIN-05).
_ID_REQUIRED_VERSION = 4


def join(known: Knowledge, op: Op, body: JoinGroupRequest, answer: JoinGroupResponse) -> None:
    before, error = known.before[op.id], answer.error_code
    surely = known.surely_consumer(op)
    if surely:
        _join_of_consumer_group(known, op, body, answer)
    if error is not E.NONE:
        if error is E.REBALANCE_IN_PROGRESS:  # it waited in a group that was converted, and is in it (X-UP-03)
            known.unseen(op, answer.member_id or body.member_id, body.group_instance_id, body.session_timeout_ms)
        return
    member_id = answer.member_id
    if answer.leader:  # a consumer group has no leader (X-JOIN-15)
        known.no_consumer_group(op)
    known.epochs.ceiling = max(known.epochs.ceiling, answer.generation_id)
    contested = False
    member = Member(member_id, classic=True, instance=body.group_instance_id, session_ms=body.session_timeout_ms)
    member.previous = frozenset({0})  # for a new member (M-REC-15)
    old = known.members.get(member_id)
    if old is not None:
        member.open, member.removers, member.formers = old.open, old.removers, old.formers
        member.instance = old.instance
        member.claims = old.claims or (old.instance is not None and not before.surely_in)
        member.previous |= old.previous | {old.epoch}
        if not old.classic or answer.leader:  # a downgrade does not stop the timers of the consumer group (X-DOWN-33)
            old.changes_protocol()
        member.stray_ms, member.stray_until_ms = old.stray_ms, old.stray_until_ms
        if body.group_instance_id is not None:
            member.takes(body.group_instance_id, op.answer_line)
    if body.group_instance_id is not None:
        for holder in known.holders(body.group_instance_id):
            if holder is not old:
                member.follows(holder, body.group_instance_id, op.answer_line)
        contested = known.gives_up(op, member_id, body.group_instance_id)
    known.members[member_id] = member
    member.epoch, member.rebalance_ms = answer.generation_id, rebalance_timeout(op, body)
    # its timers run until the join is replicated, and may have removed it since the join was processed (X-JOIN-20)
    ended = old is not None and not before.newcomer and old.may_time_out(known.now, known.limits)
    member.presence = Presence.PERHAPS if contested or ended else known.after(op, member)
    member.either = known.may_convert(op, member_id)
    member.heard(op, known.now, known.line, known.limits.slack_ms)
    member.deadline_ms = op.sent_ms + member.rebalance_ms  # X-TMR-03
    member.longest_ms = known.now + member.rebalance_ms
    if old is not None and old.classic and not before.alone:  # another join's timeouts may apply
        member.deadline_ms = min(member.deadline_ms, old.deadline_ms)
        member.longest_ms = max(member.longest_ms, old.longest_ms)
        member.session_ms = min(member.session_ms, old.session_ms or member.session_ms)
    if old is not None and not before.alone:  # answers to requests that overlap come in any order
        member.epoch = max(member.epoch, old.epoch)
    if old is not None and old.classic and (old.epoch >= answer.generation_id or not before.alone):
        # if a JoinGroup changes nothing, the coordinator answers the generation and ignores its timeouts
        member.earlier_ms = old.shortest_ms
    if surely:
        known.epochs.answered(answer.generation_id, op.line)
        known.epochs.computed(op.sent_ms)
        member.exact = before.alone and not contested


def _join_of_consumer_group(known: Knowledge, op: Op, body: JoinGroupRequest, answer: JoinGroupResponse) -> None:
    error, before = answer.error_code, known.before[op.id]
    dynamic = body.group_instance_id is None
    if dynamic and not body.member_id and op.version >= _ID_REQUIRED_VERSION:
        if error is E.NONE:
            raise Wrong(op, "MEMBER_ID_REQUIRED", "X-JOIN-05")
    elif error is E.MEMBER_ID_REQUIRED:
        raise Wrong(op, "NONE", "X-JOIN-06", "X-JOIN-07")
    if error is E.FENCED_INSTANCE_ID and (dynamic or not body.member_id):
        raise Wrong(op, "NONE", "X-JOIN-06", "X-JOIN-07")
    if error is E.UNKNOWN_MEMBER_ID and (_in_step(known, op, body) if dynamic else not _may_be_gone(known, body)):
        raise Wrong(op, "NONE", "X-JOIN-06", "X-JOIN-07")
    if error in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION, E.UNRELEASED_INSTANCE_ID):
        raise Wrong(op, "NONE", "X-JOIN-12", "X-JOIN-14")
    most = max(before.most, known.possible(body.member_id))
    if error is E.UNKNOWN_SERVER_ERROR and _said(body) is not None and not known.may_fail(op):  # X-JOIN-09
        raise Wrong(op, "NONE", "M-HB-12")
    if error is E.GROUP_MAX_SIZE_REACHED and most < known.settings.group_consumer_max_size:
        raise Wrong(op, "NONE", "X-JOIN-03")
    if error is not E.NONE:
        return
    if body.member_id and answer.member_id != body.member_id:
        raise differs(op, replace(answer, member_id=body.member_id), "X-JOIN-06")
    first = body.protocols[0].name if body.protocols else ""
    protocol_type = "consumer" if op.version >= JOIN_PROTOCOL_TYPE else answer.protocol_type
    wanted = replace(
        answer, protocol_type=protocol_type, protocol_name=first, leader="", members=(), skip_assignment=False
    )
    if answer != wanted:
        raise differs(op, wanted, "X-JOIN-15")
    if _out_of_step(known, op, body):
        raise Wrong(op, "UNKNOWN_MEMBER_ID", "X-JOIN-12")
    if answer.generation_id < before.floor and not (_may_revoke(known, body) or _may_downgrade(known, body)):
        raise Wrong(op, f"a generation from {before.floor} on", "X-JOIN-18", "M-TGT-01", field="generation_id")
    if answer.generation_id > known.epochs.ceiling:
        raise Wrong(op, f"a generation up to {known.epochs.ceiling}", "X-JOIN-15", "INV-KIP-03", field="generation_id")


def _may_downgrade(known: Knowledge, body: JoinGroupRequest) -> bool:
    """Whether the joiner may replace the last member of KIP-848, perhaps itself. The coordinator then computes no
    target, and answers with the member's previous epoch (X-DOWN-20, X-DOWN-21)."""
    instance = body.group_instance_id
    return instance is not None and not any(
        known.surely_in(each) and not each.classic
        for each in known.members.values()
        if each.member_id != body.member_id and not known.maps(instance, each)
    )


def _may_revoke(known: Knowledge, body: JoinGroupRequest) -> bool:
    """Whether the joiner may have to revoke first: it owns something (X-JOIN-17), or it owns nothing but at a previous
    generation, which confirms no revocation (M-REC-18)."""
    said = _said(body)
    late = bool(body.member_id) and not known.profile.fault_join_generation_ignored
    return said is None or bool(said.owned_partitions) or (late and said.generation_id != NO_GENERATION)


def _said(body: JoinGroupRequest) -> Subscription | None:
    """The subscription in its first protocol (X-JOIN-10); None if that cannot be read."""
    try:
        return decode_subscription(body.protocols[0].metadata)
    except (ValueError, IndexError):
        return None


def _in_step(known: Knowledge, op: Op, body: JoinGroupRequest) -> bool:
    """Whether the JoinGroup certainly names its member's generation and partitions, or Kafka accepts any (X-JOIN-06,
    X-JOIN-12)."""
    said, member, before = _said(body), known.members.get(body.member_id), known.before[op.id]
    if known.profile.fault_join_generation_ignored or not body.member_id:
        return True
    if said is None or member is None:
        return said is not None and said.generation_id == NO_GENERATION and not said.owned_partitions
    certain = known.stays(op, member) and member.exact and before.alone
    if said.generation_id == NO_GENERATION:
        return not said.owned_partitions
    return certain and said.generation_id == member.epoch


def _out_of_step(known: Knowledge, op: Op, body: JoinGroupRequest) -> bool:
    """Whether the JoinGroup certainly names another generation than its member has, or an absent member (X-JOIN-12)."""
    said, member, before = _said(body), known.members.get(body.member_id), known.before[op.id]
    if known.profile.fault_join_generation_ignored or not body.member_id or not before.alone:
        return False
    if said is None or said.generation_id == NO_GENERATION:
        return False
    if before.newcomer or member is None:
        return body.group_instance_id is None
    return member.exact and known.stays(op, member) and said.generation_id > member.epoch


def _may_be_gone(known: Knowledge, body: JoinGroupRequest) -> bool:
    """Whether a static joiner may be unknown: it names its member id, which may be gone. Without an id it is accepted,
    unless the instance id stays with a previous member (X-JOIN-07, X-JOIN-08, M-STATIC-13)."""
    return bool(body.member_id) or known.profile.fault_relabelled_instance_stays


def sync(known: Knowledge, op: Op, body: SyncGroupRequest, answer: SyncGroupResponse) -> None:
    member = known.members.get(body.member_id)
    if known.surely_consumer(op):
        _member_part(known, op, member, body, answer.error_code)
    if member is None:
        return
    if answer.error_code is E.REBALANCE_IN_PROGRESS:  # X-SYNC-05
        _has_to_join(known, op, member)
    if answer.error_code is not E.NONE:
        return
    # its timers run until earlier writes are replicated, and may have removed it since the request was processed
    # (X-SYNC-06)
    ended = member.may_time_out(known.now, known.limits)
    if not known.surely_consumer(op):
        _stay(known, op, member, ended=ended)
        return
    wanted = replace(answer, protocol_type=body.protocol_type, protocol_name=body.protocol_name)
    if op.version >= SYNC_PROTOCOL and answer != wanted:
        raise differs(op, wanted, "X-SYNC-06")
    _stay(known, op, member, ended=ended)
    if known.before[op.id].alone:  # else a JoinGroup may have armed the timer again since (X-TMR-03)
        member.deadline_ms = NEVER
    held = _decoded(known, answer.assignment)
    if held is None:
        return
    if member.exact and known.before[op.id].alone:
        member.held = dict.fromkeys(held)
        for each in sorted(held):
            holder = known.holder_of(each, member.member_id)
            if holder is not None:
                name = known.topics.names[each[0]]
                raise Wrong(
                    op,
                    f"not {name}-{each[1]}, which {holder.member_id!r} holds",
                    "INV-KIP-01",
                    "X-SYNC-06",
                    field="assignment",
                )


def _decoded(known: Knowledge, content: bytes) -> frozenset[Partition] | None:
    """The partitions of an assignment; None if it names a topic whose id is not known."""
    try:
        rows = decode_assignment(content).partitions
    except ValueError:
        return None
    found = [(known.topics.ids.get(row.topic), row.partition) for row in rows]
    return frozenset((topic, number) for topic, number in found if topic is not None) if all(found) else None


def heartbeat(known: Knowledge, op: Op, body: HeartbeatRequest, answer: HeartbeatResponse) -> None:
    member, error = known.members.get(body.member_id), answer.error_code
    surely = known.surely_consumer(op)
    if surely:
        _member_part(known, op, member, body, error)
    if member is None:
        return
    if error is E.REBALANCE_IN_PROGRESS:
        if surely and known.before[op.id].alone:
            member.asked_to_rejoin_in = body.generation_id
        _stay(known, op, member)
        _has_to_join(known, op, member)
    elif error is E.NONE:
        _stay(known, op, member)


def _has_to_join(known: Knowledge, op: Op, member: Member) -> None:
    """Note that the coordinator removes the member unless it joins within its rebalance timeout (X-SYNC-05, X-HB-04).
    Only a JoinGroup stops this timer; a SyncGroup does not (X-TMR-02)."""
    member.join_by_ms = min(member.join_by_ms, op.sent_ms + member.shortest_ms)
    member.longest_ms = max(member.longest_ms, known.now + (member.rebalance_ms or 0))


def _member_part(
    known: Knowledge, op: Op, member: Member | None, body: SyncGroupRequest | HeartbeatRequest, error: E
) -> None:
    """Judge the error of a SyncGroup or Heartbeat against what is known of its member (X-SYNC-01…03, 05; X-HB-01…03).

    Raises Wrong."""
    before, generation = known.before[op.id], body.generation_id
    answered = error in (E.NONE, E.REBALANCE_IN_PROGRESS)
    if member is None or before.newcomer or (not member.classic and before.surely_in):
        if before.alone and (answered or error is E.ILLEGAL_GENERATION):
            raise Wrong(op, "UNKNOWN_MEMBER_ID", "X-HB-01", "X-SYNC-01", "X-SYNC-02")
        return
    itself = body.group_instance_id is None or (body.group_instance_id == member.instance and not member.claims)
    unconverted = itself and not known.may_convert(op, body.member_id)
    inside = known.stays(op, member) and unconverted
    if error is E.UNKNOWN_MEMBER_ID:
        if inside:
            raise Wrong(op, "NONE", "X-HB-01", "X-TMR-01")
        certain = member.classic and not member.either  # else X-SYNC-02
        if before.alone and body.group_instance_id is None and certain:
            member.presence, member.exact = Presence.OUT, False
        return
    if error is E.FENCED_INSTANCE_ID and inside:
        raise Wrong(op, "NONE", "X-HB-01")
    # a timer may have removed the member, but then the answer is UNKNOWN_MEMBER_ID
    steady = unconverted and known.spoke_consumer(member) and member.exact and before.alone
    if error is E.ILLEGAL_GENERATION and steady and generation == member.epoch:
        raise Wrong(op, "NONE", "X-SYNC-03", "X-HB-01")
    if answered and member.exact and before.alone and generation != member.epoch:
        raise Wrong(op, "ILLEGAL_GENERATION", "X-SYNC-03", "X-HB-01")
    if error is E.NONE and member.exact and before.alone:
        if generation < before.seen and isinstance(op.body, HeartbeatRequest):
            raise Wrong(op, "REBALANCE_IN_PROGRESS", "X-HB-03")
        if member.asked_to_rejoin_in == generation and isinstance(op.body, HeartbeatRequest):
            raise Wrong(op, "REBALANCE_IN_PROGRESS", "X-HB-03", "X-HB-07")


def _stay(known: Knowledge, op: Op, member: Member, *, ended: bool = False) -> None:
    """Note that the member was in the group. ``ended``: one of its timers may have removed it since."""
    if member.counted:
        member.counted = False
        known.epochs.may_bump(-1)
    member.presence, member.classic = Presence.PERHAPS if ended else known.after(op, member), True
    member.either = known.may_convert(op, member.member_id)
    if member.either:
        member.session_ms = max(member.session_ms, known.settings.group_consumer_session_timeout_ms)
    member.heard(op, known.now, known.line, known.limits.slack_ms)


def leave(known: Knowledge, op: Op, body: LeaveGroupRequest, answer: LeaveGroupResponse) -> None:
    """Judge an answer to LeaveGroup, which may remove any known member, of either protocol (X-LEAVE-01)."""
    surely, before = known.surely_consumer(op), known.before[op.id]
    codes = [row.error_code for row in answer.members] or [answer.error_code]
    for row, error in zip(body.members, codes, strict=False):
        member = known.members.get(row.member_id)
        if member is None or row.group_instance_id is not None:
            continue
        if surely and error is E.NONE and before.alone and row.member_id in before.strangers:
            raise Wrong(op, "UNKNOWN_MEMBER_ID", "X-LEAVE-01")
        inside = row.member_id in before.residents and known.stays(op, member)
        if surely and error is E.UNKNOWN_MEMBER_ID and inside:
            raise Wrong(op, "NONE", "X-LEAVE-01")
        if error in (E.NONE, E.UNKNOWN_MEMBER_ID):  # a request that overlaps may have brought it back
            member.presence, member.exact = Presence.OUT if before.alone else Presence.PERHAPS, False
    for row, error in zip(body.members, codes, strict=False):
        if row.group_instance_id is not None and error is E.NONE:
            for holder in known.holders(row.group_instance_id):
                holder.presence, holder.exact = Presence.PERHAPS, False
