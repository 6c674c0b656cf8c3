"""Faults of the coordinator's join phase: who is let in, who is counted, when the phase ends."""

from __future__ import annotations

from types import SimpleNamespace

from fencepost.coordinator.classic import draft, expiry, join, leave, membership, protocols, rebalance, static
from fencepost.coordinator.classic.draft import GroupDraft
from fencepost.coordinator.classic.group import Member
from fencepost.coordinator.kernel.step import Step
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, SetTimer, TimerKey, TimerKind
from fencepost.protocol.messages import JoinGroupMember, JoinGroupRequest, JoinGroupResponse, LeaveGroupMember
from fencepost.protocol.view import GroupState

from .mutant import Mutant, Patches, Side

PREPARING, COMPLETING, STABLE = (
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
)


def _timer_of_removed_member_rebalances(patches: Patches) -> None:
    def complete(step: Step, group: GroupDraft) -> None:
        timers = len(step.timers)
        original(step, group)
        kept = [each for each in step.timers[timers:] if each.key.kind is not TimerKind.SESSION or _sets(each)]
        step.timers[timers:] = kept

    def session(step: Step, group: GroupDraft, member_id: str) -> None:
        gone = member_id not in group.members and member_id not in group.pending_join
        if gone and group.state is STABLE:
            rebalance.prepare(step, group)
        else:
            expire(step, group, member_id)

    original = patches.attribute(rebalance, "complete", complete)
    expire = patches.attribute(expiry, "_session", session)


def _sets(command: object) -> bool:
    return isinstance(command, SetTimer)


def _newcomers_never_expire(patches: Patches) -> None:
    def add(step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft, member_id: str) -> None:
        original(step, request, body, group, member_id)
        key = TimerKey(TimerKind.SESSION, group.group_id, member_id)
        new = SetTimer(key, step.settings.new_member_join_timeout_ms)
        step.timers[:] = [each for each in step.timers if each != new]

    original = patches.attribute(join, "_add", add)


def _pending_cannot_leave(patches: Patches) -> None:
    def one(step: Step, group: GroupDraft, entry: LeaveGroupMember) -> ErrorCode:
        if entry.member_id in group.pending_join:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return original(step, group, entry)  # type: ignore[no-any-return]

    original = patches.attribute(leave, "_leave", one)


def _static_member_evicted_by_join_timer(patches: Patches) -> None:
    def complete(step: Step, group: GroupDraft) -> None:
        for member in list(group.members.values()):
            if member.join is None and member.instance_id is not None:
                membership.remove(step, group, member.member_id)
                step.cancel_timer(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
        original(step, group)

    original = patches.attribute(rebalance, "complete", complete)


def _replacement_only_in_stable(patches: Patches) -> None:
    def replace(
        step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft, *, old_id: str, new_id: str
    ) -> None:
        if group.state is STABLE:
            original(step, request, body, group, old_id=old_id, new_id=new_id)
        else:
            join._add(step, request, body, group, new_id)

    original = patches.attribute(static, "replace", replace)


def _v0_rebalance_timeout_taken_as_sent(patches: Patches) -> None:
    def timeout(request: Request, body: JoinGroupRequest) -> int:
        return body.rebalance_timeout_ms

    patches.attribute(membership, "rebalance_timeout", timeout)


def _stable_shortcut_while_completing(patches: Patches) -> None:
    def replace(
        step: Step, request: Request, body: JoinGroupRequest, group: GroupDraft, *, old_id: str, new_id: str
    ) -> None:
        completing = group.state is COMPLETING
        if completing:
            group.state = STABLE
        original(step, request, body, group, old_id=old_id, new_id=new_id)
        if completing and group.state is STABLE:
            group.state = COMPLETING

    original = patches.attribute(static, "replace", replace)


def _size_checked_before_the_id_is_given(patches: Patches) -> None:
    def accepted(step: Step, group: GroupDraft, body: JoinGroupRequest) -> bool:
        return body.member_id in group.pending_join or original(step, group, body)

    original = patches.attribute(join, "_accepted", accepted)


def _removal_does_not_complete(patches: Patches) -> None:
    def prepare_or_complete(step: Step, group: GroupDraft) -> None:
        if group.state is not PREPARING:
            rebalance.prepare(step, group)

    patches.attribute(leave, "rebalance", SimpleNamespace(prepare_or_complete=prepare_or_complete))


def _pending_ids_not_awaited(patches: Patches) -> None:
    def all_joined(group: GroupDraft) -> bool:
        return group.awaiting == len(group.members)

    patches.attribute(draft.GroupDraft, "all_joined", property(all_joined))


def _parked_member_expires(patches: Patches) -> None:
    def session(step: Step, group: GroupDraft, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None and (member.join is not None or member.sync is not None):
            group.put(member._replace(is_new=True))  # as if nothing excused it
        original(step, group, member_id)

    original = patches.attribute(expiry, "_session", session)


def _leader_gets_part_of_the_list(patches: Patches) -> None:
    def rows(group: GroupDraft) -> tuple[JoinGroupMember, ...]:
        return tuple(row for row in original(group) if group.members[row.member_id].join is not None)

    original = patches.attribute(membership, "members_for_leader", rows)


def _two_members_get_the_list(patches: Patches) -> None:
    def current(group: GroupDraft, member_id: str) -> JoinGroupResponse:
        leader, group.leader = group.leader, member_id
        answer: JoinGroupResponse = original(group, member_id)
        group.leader = leader
        return answer

    original = patches.attribute(membership, "current_generation", current)


def _generation_stays(patches: Patches) -> None:
    def complete(step: Step, group: GroupDraft) -> None:
        before = group.generation
        original(step, group)
        if group.state is COMPLETING:
            group.generation = max(1, before)

    original = patches.attribute(rebalance, "complete", complete)


def _protocol_of_the_first(patches: Patches) -> None:
    def select(step: Step, group: GroupDraft) -> str:
        first: Member = next(iter(group.members.values()))
        return first.protocols[0].name

    patches.attribute(protocols, "select", select)


def _any_protocol_accepted(patches: Patches) -> None:
    patches.attribute(protocols, "supported", lambda step, group, protocol_type, offered: bool(offered))


def _initial_delay_cut_short(patches: Patches) -> None:
    def maybe_complete(step: Step, group: GroupDraft) -> None:
        if group.state is PREPARING and group.all_joined:
            rebalance.complete(step, group)

    patches.attribute(rebalance, "maybe_complete", maybe_complete)


C = Side.COORDINATOR
FAULTS = (
    Mutant(
        "timer-of-removed-member-rebalances", C, "KAFKA-7196",
        "members dropped at the end of the join phase keep their session timer, which starts another rebalance",
        _timer_of_removed_member_rebalances,
    ),
    Mutant(
        "newcomers-never-expire", C, "KAFKA-7610",
        "a new member gets no timer, so each retried JoinGroup leaves a member behind", _newcomers_never_expire,
    ),
    Mutant(
        "pending-cannot-leave", C, "KAFKA-7909",
        "LeaveGroup does not know ids that were handed out and not used yet", _pending_cannot_leave,
    ),
    Mutant(
        "static-evicted-by-join-timer", C, "KAFKA-8220",
        "static members that did not rejoin are removed at the end of the join phase",
        _static_member_evicted_by_join_timer,
    ),
    Mutant(
        "replacement-only-in-stable", C, "KAFKA-8500",
        "a static member that returns outside Stable becomes a second member of its instance id",
        _replacement_only_in_stable,
    ),
    Mutant(
        "v0-rebalance-timeout", C, "KAFKA-8653",
        "JoinGroup v0, which carries no rebalance timeout, counts as -1 ms", _v0_rebalance_timeout_taken_as_sent,
    ),
    Mutant(
        "stable-shortcut-while-completing", C, "KAFKA-9801",
        "a static member that returns in CompletingRebalance gets the old assignment and no new round",
        _stable_shortcut_while_completing,
    ),
    Mutant(
        "size-checked-too-early", C, "KAFKA-9844",
        "group.max.size is checked when the member id is given, not when it is used",
        _size_checked_before_the_id_is_given,
    ),
    Mutant(
        "removal-does-not-complete", C, "streamnative/kop#380",
        "a LeaveGroup in PreparingRebalance does not look whether everybody else has joined",
        _removal_does_not_complete,
    ),
    Mutant(
        "pending-ids-not-awaited", C, "C-ST-23",
        "the join phase ends although an id that was handed out has not come back", _pending_ids_not_awaited,
    ),
    Mutant(
        "parked-member-expires", C, "C-TMR-07",
        "a member that waits for an answer is removed for its silence", _parked_member_expires,
    ),
    Mutant(
        "leader-gets-part-of-the-list", C, "INV-JOIN-02",
        "the leader is told of the members that joined only, not of absent static ones", _leader_gets_part_of_the_list,
    ),
    Mutant(
        "two-members-get-the-list", C, "INV-JOIN-01", "every member is told that it leads", _two_members_get_the_list
    ),
    Mutant(
        "generation-stays", C, "INV-GEN-01", "a completed join phase does not begin a new generation", _generation_stays
    ),
    Mutant(
        "protocol-of-the-first", C, "C-JOIN-63", "the first member's favourite assignor is selected",
        _protocol_of_the_first,
    ),
    Mutant(
        "any-protocol-accepted", C, "C-JOIN-60", "members are let in with assignors that the others do not have",
        _any_protocol_accepted,
    ),
    Mutant(
        "initial-delay-cut-short", C, "C-ST-20", "the initial delay ends as soon as everybody known has joined",
        _initial_delay_cut_short,
    ),
)  # fmt: skip
