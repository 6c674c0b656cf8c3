"""Deviations of Kafka in classic groups."""

from __future__ import annotations

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, Protocol
from fencepost.quirks import Next, quirk

from ..classic import join, leave, membership, rebalance, static, sync
from ..classic.group import ClassicGroup, ClassicMember, GroupDraft, cancel_group_timers
from ..kernel import completion
from ..kernel.errors import InternalError
from ..kernel.state import Operation
from ..kernel.step import Step
from .readable import read_topics

# Capacity and the join phase


@quirk("fault_static_return_counts_as_new", of=join.known_as)
def known_by_member_id_alone(_: Next[str], step: Step, group: GroupDraft, body: JoinGroupRequest) -> str:
    """A JoinGroup with an instance id and no member id counts as one of an unknown member: a full group refuses its own
    static member (C-JOIN-75)."""
    return body.member_id


@quirk("fault_refusal_leaves_join_phase", of=join.complete_without_rejected)
def waits_for_nobody(_: Next[None], step: Step, group: GroupDraft) -> None:
    """After a refusal Kafka does not check whether the join phase is over. If it waited only for the refused member,
    the other members wait until the timer fires (C-JOIN-23)."""


@quirk("fault_new_member_added_survives", of=rebalance.reset_new_member_added)
def newcomers_stay_new(_: Next[None], step: Step, group: GroupDraft) -> None:
    """The mark is cleared only where it extends the initial delay. It may outlive that delay and extend a later one
    although no new member has joined (C-JOIN-71)."""


@quirk("fault_duplicate_protocol_accepted", of=membership.can_be_counted)
def duplicates_count_twice(_: Next[bool], step: Step, protocols: tuple[Protocol, ...]) -> bool:
    """A protocol that is listed twice counts for two members, so it never counts as common to all: no protocol is
    elected, and the group stays in its join phase without a timer (C-JOIN-72)."""
    return True


@quirk("fault_bad_subscription_is_thrown", "fault_duplicate_protocol_accepted", of=membership.adopt)
def reads_subscriptions(call_next: Next[None], step: Step, group: GroupDraft) -> None:
    """Kafka reads the topics that the members of a new generation subscribe to. Impossible lengths raise an exception
    that is not caught: the generation is used up, and its members are never answered (C-ST-27, G-DATA-10). The same
    happens if a member does not have the protocol, which others list often enough to make up for it (C-JOIN-72)."""
    before = group.subscriptions
    call_next(step, group)
    name = group.protocol_name
    if group.protocol_type == PROTOCOL_TYPE:
        offered = {member.member_id: member.metadata(name) for member in group.members.values()}
        try:
            read_topics(step.choices, group.group_id, offered, lengths_throw=step.rules.bad_lengths_are_thrown)
        except InternalError:
            group.subscriptions = before  # keep nothing of the new subscriptions
            raise


# SyncGroup, and requests that wait for one


@quirk("fault_every_leader_sync_appends", of=sync.starts_append)
def every_sync_appends(_: Next[bool], step: Step, group: GroupDraft) -> bool:
    """Each SyncGroup of the leader appends an assignment. The first one that is replicated is handed out, the last one
    is what a reload restores (C-SYNC-19, F-SURV-05)."""
    return True


@quirk("fault_leave_forgets_parked_sync", of=leave.answer_parked_sync)
def never_answered(_: Next[None], step: Step, group: GroupDraft, member: ClassicMember) -> None:
    """LeaveGroup removes the member together with its parked SyncGroup, which is never answered (C-LEAVE-24)."""


@quirk("fault_replacement_keeps_pending_sync", of=static.move_pending_sync)
def old_id_owes_sync(_: Next[None], step: Step, group: GroupDraft, old_id: str, new_id: str) -> None:
    """The group continues to wait for the replaced id. It never syncs, and when the sync timer fires, all members have
    to join again (C-STATIC-16)."""


# Groups and replacements that a failed append undoes


@quirk("fault_timeout_undoes_memory", of=static.end_with_group)
def puts_old_id_back(
    _: Next[None], step: Step, done: static.MemberReplaced, number: int, operation: Operation, error: ErrorCode
) -> None:
    """Kafka restores the old id before the partition is lost (C-STATIC-06). If the member is in a later round by then,
    its SyncGroup is answered FENCED_INSTANCE_ID, which stops a client that no other has replaced (F-UNLOAD-01)."""
    completion.fail(step, number, operation, error)


@quirk("fault_second_replacement_mixes_undo", of=static.restore_protocols)
def counts_off_another(call_next: Next[None], step: Step, group: GroupDraft, done: static.MemberReplaced) -> None:
    """The protocols of a member that is gone, or was restored before, are subtracted once more and the old ones added:
    from then on the counts are wrong (C-STATIC-18)."""
    member = group.members.get(done.new_id)
    if member is None or member.restored:
        group.count(done.new_protocols, -1)
        group.count(done.old_protocols, 1)
    call_next(step, group, done)


@quirk("fault_timers_outlive_reverted_group", of=cancel_group_timers)
def timers_outlive_group(_: Next[None], step: Step, group: ClassicGroup) -> None:
    """The timers of a group that a failed append removes stay set, and act on the next group of that name
    (C-TMR-12)."""


@quirk("fault_timers_outlive_reverted_group", of=join.cancel_remaining_timers)
def inherits_timers(_: Next[None], step: Step, group_id: str) -> None:
    """The timers of a classic group that became a consumer group stay set too, and a later classic group of that name
    has them (C-TMR-12, X-UP-16)."""
