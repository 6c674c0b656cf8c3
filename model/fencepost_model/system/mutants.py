"""One guard removed at a time: the overrides of ``spec/MCMutants.tla``, applied to the model.

Each mutant replaces functions of the model while a configuration is explored, so neither the group machine nor the
closed system contains code for it. The configuration must then fail on its property; that shows the property checks
something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
)
from fencepost.protocol.records import Record

from ..classic import Arrive, Durable, live, rebalance, requests, static, sync, validate, work
from ..classic import join as joining
from ..classic.draft import Draft
from ..classic.group import GroupState
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Assigned, Group, Member, Replaced, Timer
from ..machines import COMPLETING, EMPTY, PREPARING, STABLE
from ..offsets import checks
from ..offsets.checks import Checked, Committer
from . import assign, client, closed
from .consumer import closed as consumer_closed
from .consumer import state as consumer_state
from .consumer.mutants import CONSUMER_MUTANTS
from .coordinator import FIRST_RECORD, Coordinator, Result
from .log.mutants import LOG_MUTANTS
from .mixed.mutants import EXPECTS_ANSWER_FOREVER, MIXED_MUTANTS
from .offsets.mutants import OFFSET_MUTANTS
from .values import NO_PARTITIONS, Metadata, Partitions

Patches = list[tuple[Any, str, Any]]


def _patch_everywhere(name: str, replacement: Callable[..., Any]) -> Patches:
    """Replace the function in every module of the model that has it under its name."""
    modules = (joining, live, rebalance, requests, sync, work)
    return [(module, name, replacement) for module in modules if hasattr(module, name)]


def _same_generation() -> Patches:
    """The generation does not grow (C-ST-21)."""
    original = rebalance.complete_join

    def complete_join(d: Draft) -> None:
        d.generation -= 1
        before = d.generation
        original(d)
        if d.generation == before:
            d.generation += 1  # nothing was completed (C-JOIN-46)

    return _patch_everywhere("complete_join", complete_join)


def _commit_without_generation() -> Patches:
    """The generation of a commit is not checked (O-COMMIT-25)."""
    original = checks._classic
    return [(checks, "_classic", lambda group, by: original(group, by._replace(epoch=group.generation)))]


def _commit_while_preparing() -> Patches:
    """A rebalance refuses commits from its start (O-COMMIT-27)."""
    original = checks._classic

    def checked(group: Group, by: Committer) -> Checked:
        if group.state != STABLE:
            return Checked(ErrorCode.REBALANCE_IN_PROGRESS, ())
        return original(group, by)

    return [(checks, "_classic", checked)]


def _sync_without_generation() -> Patches:
    """The generation of a SyncGroup is not checked (C-SYNC-09)."""
    original = sync.validate_sync_group

    def validate_sync_group(d: Draft, body: SyncGroupRequest) -> ErrorCode | None:
        return original(d, replace(body, generation_id=d.generation))

    return _patch_everywhere("validate_sync_group", validate_sync_group)


def _heartbeat_without_membership() -> Patches:
    """The identity in a heartbeat is not checked (C-HB-08)."""

    def heartbeat(d: Draft, body: HeartbeatRequest) -> HeartbeatResponse:
        if d.state == EMPTY:
            return HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)
        if body.generation_id != d.generation:
            return HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION)
        busy = d.state == PREPARING
        return HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS if busy else ErrorCode.NONE)

    return _patch_everywhere("heartbeat", heartbeat)


def _loads_nothing() -> Patches:
    """A new coordinator starts with an empty group (F-LOAD-01)."""
    original = Coordinator.load
    return [(Coordinator, "load", lambda self, record: original(self, FIRST_RECORD))]


def _answers_early() -> Patches:
    """The assignment is handed out before its record is replicated (F-RT-21)."""
    original = Coordinator.step

    def step(self: Coordinator, group: GroupState, *inputs: Any) -> Result:
        result = original(self, group, *inputs)
        sent = [each for each in inputs if isinstance(each, Arrive) and isinstance(each.body, SyncGroupRequest)]
        if not (sent and result.records):
            return result
        replicated = original(self, result.group, Durable(result.group.undurable))
        after = replicated.group._replace(undurable=result.group.undurable, operations=result.group.operations)
        return result._replace(group=after, replies=(*result.replies, *replicated.replies))

    return [(Coordinator, "step", step)]


def _no_succession() -> Patches:
    """The leader may be gone (C-JOIN-76)."""
    original = Draft.remove

    def remove(self: Draft, member_id: str) -> None:
        leader = self.leader
        original(self, member_id)
        self.leader = leader

    return [(Draft, "remove", remove)]


def _forgets_parked_syncs() -> Patches:
    """Parked SyncGroups are not answered (C-JOIN-42)."""
    original = rebalance.propagate_assignment

    def propagate_assignment(d: Draft, assignments: dict[str, bytes], error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            original(d, assignments, error)

    return _patch_everywhere("propagate_assignment", propagate_assignment)


def _never_over_capacity() -> Patches:
    """There is no limit (C-JOIN-21, C-JOIN-22)."""
    return _patch_everywhere("accepts_joining_member", lambda d, body: True)


def _does_not_rearm() -> Patches:
    """The join timer is not set again for absent static members (C-JOIN-46)."""
    original = rebalance.complete_join

    def complete_join(d: Draft) -> None:
        state, generation = d.state, d.generation
        original(d)
        if (d.state, d.generation) == (state, generation):
            d.cancel(JOIN_TIMER)

    return _patch_everywhere("complete_join", complete_join)


def _cancels_sync_timer_for_all() -> Patches:
    """The first SyncGroup cancels the timer for all (C-SYNC-16)."""

    def remove_pending_sync(d: Draft, member_id: str) -> None:
        d.pending_sync -= {member_id}
        d.cancel(SYNC_TIMER)

    return _patch_everywhere("remove_pending_sync", remove_pending_sync)


def _every_pending_member_is_overdue() -> Patches:
    """A member that has just returned is late too (C-STATIC-16)."""
    return _patch_everywhere("overdue_members", lambda d: d.pending_sync)


def _expires_without_rebalance() -> Patches:
    """A member is removed without a rebalance (C-TMR-07)."""
    return _patch_everywhere("expire_session", lambda d, member_id: d.remove(member_id))


def _rolls_back_on_unload() -> Patches:
    """A lost partition undoes open replacements first, whatever the member waits for by now (C-STATIC-06)."""
    original = static.undo_replacement

    def undo_replacement(d: Draft, request: int | None, callback: Replaced, error: ErrorCode, *, lost: bool) -> None:
        original(d, request, callback, error, lost=False)

    return _patch_everywhere("undo_replacement", undo_replacement)


def _member_error_without_instance() -> Patches:
    """The instance id of a request is not checked (C-JOIN-38f, C-SYNC-08, C-HB-08)."""
    original = validate.member_error
    return _patch_everywhere("member_error", lambda d, member_id, instance: original(d, member_id, None))


def _no_member_is_spared() -> Patches:
    """The session timer removes a member whose request is parked (C-TMR-07)."""
    original = live.expire_session

    def expire_session(d: Draft, member_id: str) -> None:
        if member_id in d.members:
            d.put(d.members[member_id]._replace(is_new=True))
        original(d, member_id)

    return _patch_everywhere("expire_session", expire_session)


def _no_member_may_stay_absent() -> Patches:
    """The end of a join phase removes static members too (C-JOIN-44)."""
    original = rebalance.complete_join

    def complete_join(d: Draft) -> None:
        for member in [member for member in d.members.values() if member.join is None]:
            d.remove(member.member_id)
            d.cancel(Timer("session", member.member_id))
        original(d)

    return _patch_everywhere("complete_join", complete_join)


def _any_metadata_is_the_same() -> Patches:
    """Changed metadata counts as unchanged (C-JOIN-61)."""
    original = joining.join_existing_member

    def join_existing_member(d: Draft, request: Arrive, body: JoinGroupRequest) -> None:
        member = d.members.get(body.member_id)
        if member is not None and d.state != PREPARING and not (d.state == STABLE and body.member_id == d.leader):
            body = replace(body, protocols=member.protocols)
        original(d, request, body)

    return _patch_everywhere("join_existing_member", join_existing_member)


def _keeps_timer(function: str, timer: Timer) -> Callable[[], Patches]:
    """The function does not cancel the timer."""

    def patches() -> Patches:
        original = getattr(rebalance, function)

        def keeping(d: Draft, *args: Any) -> None:
            original(d, *args)
            if d.armed.get(timer, 0) is None:
                del d.armed[timer]

        return _patch_everywhere(function, keeping)

    return patches


def _replaced_is_not_answered() -> Patches:
    """The old process of a static member is not answered (C-STATIC-02)."""
    original = static.replace_member_id

    def replace_member_id(d: Draft, old_id: str, new_id: str) -> Member:
        d.put(d.members[old_id]._replace(join=None, sync=None))
        return original(d, old_id, new_id)

    return [(static, "replace_member_id", replace_member_id)]


def _replaced_member_stays() -> Patches:
    """A replaced member stays (C-STATIC-02)."""
    original = static.replace_member_id

    def replace_member_id(d: Draft, old_id: str, new_id: str) -> Member:
        old = d.members[old_id]
        new = original(d, old_id, new_id)
        d.put(old)
        return new

    return [(static, "replace_member_id", replace_member_id)]


def _all_members_joined() -> Patches:
    """Pending ids are not awaited (C-ST-23)."""
    return [(Draft, "all_joined", lambda self: all(member.join is not None for member in self.members.values()))]


def _no_loaded_session_timers() -> Patches:
    """A load starts no session timers (F-LOAD-06)."""
    original = work.Work.on_loaded

    def on_loaded(self: work.Work, group_id: str) -> None:
        original(self, group_id)
        draft = self.draft(group_id)
        if draft is not None:
            draft.armed.clear()

    return [(work.Work, "on_loaded", on_loaded)]


def _has_the_only_claim() -> Patches:
    """A claim counts only if it is the only one, whatever the generations (A-COOP-05)."""

    def valid_claims(member: str, metadata: dict[str, Metadata]) -> Partitions:
        others = (own.owned for name, own in metadata.items() if name != member)
        return metadata[member].owned.difference(*others)

    return [(assign, "valid_claims", valid_claims)]


def _sync_expires_in_any_state() -> Patches:
    """The sync timer does not ask for the state of the group (C-SYNC-20)."""
    original = sync.expire_sync_timer

    def expire_sync_timer(d: Draft) -> None:
        if d.state not in (COMPLETING, STABLE) and d.pending_sync:
            d.state = COMPLETING
        original(d)

    return _patch_everywhere("expire_sync_timer", expire_sync_timer)


def _initial_delay_is_never_extended() -> Patches:
    """A newcomer never extends the initial delay (C-JOIN-43)."""

    def expire_join_timer(d: Draft) -> None:
        d.delay = None
        rebalance.complete_join(d)

    return _patch_everywhere("expire_join_timer", expire_join_timer)


def _heartbeat_without_rebalance() -> Patches:
    """No heartbeat reports a rebalance (C-HB-11)."""
    original = live.heartbeat

    def heartbeat(d: Draft, body: HeartbeatRequest) -> HeartbeatResponse:
        answer = original(d, body)
        busy = answer.error_code is ErrorCode.REBALANCE_IN_PROGRESS
        return HeartbeatResponse(ErrorCode.NONE) if busy else answer

    return _patch_everywhere("heartbeat", heartbeat)


def _sync_replicated_in_any_generation() -> Patches:
    """The assignment of an older generation counts (C-SYNC-23)."""
    original = sync.complete_assignment

    def complete_assignment(d: Draft, callback: Assigned) -> None:
        original(d, callback._replace(generation=d.generation))

    return _patch_everywhere("complete_assignment", complete_assignment)


def _join_answer_without_skip() -> Patches:
    """A static leader that returns is asked for an assignment (C-STATIC-04)."""
    original = Draft.joined

    def joined(self: Draft, member_id: str, rows: Any, *, skip: bool = False) -> JoinGroupResponse:
        return original(self, member_id, rows, skip=False)

    return [(Draft, "joined", joined)]


def _fails_parked_syncs_only() -> Patches:
    """Assignments are kept when the sync phase fails (C-JOIN-42, C-SYNC-22)."""
    original = rebalance.propagate_assignment

    def propagate_assignment(d: Draft, assignments: dict[str, bytes], error: ErrorCode) -> None:
        kept = {member.member_id: member.assignment for member in d.members.values()}
        original(d, assignments, error)
        if error is not ErrorCode.NONE:
            for member in list(d.members.values()):
                d.put(member._replace(assignment=kept[member.member_id]))

    return _patch_everywhere("propagate_assignment", propagate_assignment)


def _followers_are_lost() -> Patches:
    """A record survives with the leader only (F-LOAD-01)."""
    original = closed.surviving

    def surviving(log: closed.Log, survive: int) -> Record:
        record = original(log, survive)
        value = record.group_metadata
        if value is None or len(value.members) < 2:
            return record
        leader = tuple(member for member in value.members if member.member_id == value.leader)
        return replace(record, value=replace(value, members=leader))

    return [(closed, "surviving", surviving)]


def _rejoin_without_leader_check() -> Patches:
    """In a Stable group the leader is answered like any other member (C-JOIN-53)."""
    original = joining.join_existing_member

    def join_existing_member(d: Draft, request: Arrive, body: JoinGroupRequest) -> None:
        leads = d.state == STABLE and body.member_id == d.leader
        is_fenced = validate.member_error(d, body.member_id, body.group_instance_id) is not None
        if leads and not is_fenced and d.members[body.member_id].protocols == body.protocols:
            d.reply(request.id, d.joined(body.member_id, d.member_rows()))
        else:
            original(d, request, body)

    return _patch_everywhere("join_existing_member", join_existing_member)


def _always_expects_answer() -> Patches:
    """A client never stops waiting (K-ERR-13)."""
    return [(closed, "parked", lambda group, client: True)]


def _loses_replicated_state() -> Patches:
    """Replicated records may be lost with the others."""

    def record(log: closed.Log, survive: int) -> Record:
        return log.open[survive - 1] if survive else FIRST_RECORD

    def hard(log: consumer_state.Log, survive: int) -> consumer_state.Hard:
        return log.open[survive - 1].hard if survive else consumer_state.Hard()

    return [(closed, "surviving", record), (consumer_closed, "surviving", hard)]


#: "operator <- replacement" of the specification → the patches
MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "NextGeneration <- SameGeneration": _same_generation,
    "CommitError <- CommitErrorWithoutGeneration": _commit_without_generation,
    "CommitError <- CommitErrorWhilePreparing": _commit_while_preparing,
    "SyncError <- SyncErrorWithoutGeneration": _sync_without_generation,
    "HeartbeatError <- HeartbeatErrorWithoutMembership": _heartbeat_without_membership,
    "Loaded <- LoadedWithoutLog": _loads_nothing,
    "HandleSync <- HandleSyncAnsweredEarly": _answers_early,
    "Remove <- RemoveWithoutSuccession": _no_succession,
    "FailParkedSyncs <- ForgetParkedSyncs": _forgets_parked_syncs,
    "IsOverCapacity <- NeverOverCapacity": _never_over_capacity,
    "CompleteJoin <- CompleteJoinWithoutRearming": _does_not_rearm,
    "RemovePendingSync <- CancelSyncTimerForAll": _cancels_sync_timer_for_all,
    "OverdueMembers <- EveryPendingMemberIsOverdue": _every_pending_member_is_overdue,
    "SessionExpired <- SessionExpiresWithoutRebalance": _expires_without_rebalance,
    "Unloaded <- UnloadedAfterRollback": _rolls_back_on_unload,
    "MemberError <- MemberErrorWithoutInstance": _member_error_without_instance,
    "IsSpared <- NoMemberIsSpared": _no_member_is_spared,
    "MayStayAbsent <- NoMemberMayStayAbsent": _no_member_may_stay_absent,
    "IsSameMetadata <- AnyMetadataIsTheSame": _any_metadata_is_the_same,
    "SyncTimerInJoinPhase <- SyncTimerStays": _keeps_timer("prepare_rebalance", SYNC_TIMER),
    "SyncExpired <- SyncExpiresInAnyState": _sync_expires_in_any_state,
    "MaybeCompleteJoin <- MaybeCompleteJoinKeepsTimer": _keeps_timer("maybe_complete_join_phase", JOIN_TIMER),
    "AnswerReplaced <- ReplacedIsNotAnswered": _replaced_is_not_answered,
    "WithoutReplaced <- ReplacedMemberStays": _replaced_member_stays,
    "AllJoined <- AllMembersJoined": _all_members_joined,
    "LoadedSessionTimers <- NoLoadedSessionTimers": _no_loaded_session_timers,
    "IsWithheld <- NothingIsWithheld": lambda: [(assign, "_claimed_by_others", lambda member, metadata: NO_PARTITIONS)],
    "HasValidClaim <- HasTheOnlyClaim": _has_the_only_claim,
    "AfterJoinPrepare <- KeepsPartitionsAtJoin": lambda: [(client, "after_join_prepare", lambda config, its: its)],
    "JoinExpired <- InitialDelayIsNeverExtended": _initial_delay_is_never_extended,
    "AfterLeave <- LeaveEndsNoJoinPhase": lambda: [(live, "maybe_complete_join_phase", lambda d: None)],
    "HeartbeatError <- HeartbeatErrorWithoutRebalance": _heartbeat_without_rebalance,
    "SyncReplicated <- SyncReplicatedInAnyGeneration": _sync_replicated_in_any_generation,
    "JoinAnswer <- JoinAnswerWithoutSkip": _join_answer_without_skip,
    "FailParkedSyncs <- FailParkedSyncsOnly": _fails_parked_syncs_only,
    "Surviving <- FollowersAreLost": _followers_are_lost,
    "Rejoin <- RejoinWithoutLeaderCheck": _rejoin_without_leader_check,
    "ExpectsAnswer <- AlwaysExpectsAnswer": _always_expects_answer,
    "Surviving <- ReplicatedStateIsLost": _loses_replicated_state,
    **CONSUMER_MUTANTS,
    **MIXED_MUTANTS,
    **LOG_MUTANTS,
    **OFFSET_MUTANTS,
    "ExpectsAnswer <- ExpectsAnswerForever": lambda: [
        *CONSUMER_MUTANTS["ExpectsAnswer <- ExpectsAnswerForever"](),
        *EXPECTS_ANSWER_FOREVER,
    ],
}


@contextmanager
def mutated(*names: str) -> Iterator[None]:
    """While the context is open, the model behaves as the mutants say. Raises KeyError for an unknown name."""
    with ExitStack() as stack:
        for name in names:
            for owner, attribute, replacement in MUTANTS[name]():
                stack.enter_context(patch.object(owner, attribute, replacement))
        yield
