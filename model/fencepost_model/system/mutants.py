"""One guard taken away at a time: what ``spec/MCMutants.tla`` overrides, done to the model.

Each mutant replaces functions of the model while a configuration is explored, so neither the group machine nor the
closed system has a line for their sake. The configuration must then fail on its property; that shows the property
checks something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse, SyncGroupRequest
from fencepost.protocol.records import Record

from ..classic import Arrive, Durable, live, rebalance, requests, static, sync, work
from ..classic import join as joining
from ..classic.draft import Draft
from ..classic.group import GroupState
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Group, Replaced
from ..machines import EMPTY, PREPARING, STABLE
from ..offsets import checks
from ..offsets.checks import Checked, Committer
from . import closed
from .consumer import closed as consumer_closed
from .consumer import state as consumer_state
from .consumer.mutants import CONSUMER_MUTANTS
from .coordinator import FIRST_RECORD, Coordinator, Result
from .log.mutants import LOG_MUTANTS
from .mixed.mutants import EXPECTS_FOR_EVER, MIXED_MUTANTS
from .offsets.mutants import OFFSET_MUTANTS

Patches = list[tuple[Any, str, Any]]


def _everywhere(name: str, replacement: Callable[..., Any]) -> Patches:
    """The function in every module of the model that has it under its name."""
    modules = (joining, live, rebalance, requests, sync, work)
    return [(module, name, replacement) for module in modules if hasattr(module, name)]


def _same_generation() -> Patches:
    """C-ST-21 forgotten."""
    original = rebalance.complete

    def complete(d: Draft) -> None:
        d.generation -= 1
        before = d.generation
        original(d)
        if d.generation == before:
            d.generation += 1  # nothing was completed (C-JOIN-46)

    return _everywhere("complete", complete)


def _commit_without_generation() -> Patches:
    """O-COMMIT-25 without the generation."""
    original = checks._classic
    return [(checks, "_classic", lambda group, by: original(group, by._replace(epoch=group.generation)))]


def _commit_while_preparing() -> Patches:
    """O-COMMIT-27 taken too far: a rebalance refuses from its start."""
    original = checks._classic

    def checked(group: Group, by: Committer) -> Checked:
        if group.state != STABLE:
            return Checked(ErrorCode.REBALANCE_IN_PROGRESS, ())
        return original(group, by)

    return [(checks, "_classic", checked)]


def _sync_without_generation() -> Patches:
    """C-SYNC-09 forgotten."""
    original = sync.sync_error

    def sync_error(d: Draft, body: SyncGroupRequest) -> ErrorCode | None:
        return original(d, replace(body, generation_id=d.generation))

    return _everywhere("sync_error", sync_error)


def _heartbeat_without_membership() -> Patches:
    """C-HB-08 forgotten."""

    def heartbeat(d: Draft, body: HeartbeatRequest) -> HeartbeatResponse:
        if d.state == EMPTY:
            return HeartbeatResponse(ErrorCode.UNKNOWN_MEMBER_ID)
        if body.generation_id != d.generation:
            return HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION)
        busy = d.state == PREPARING
        return HeartbeatResponse(ErrorCode.REBALANCE_IN_PROGRESS if busy else ErrorCode.NONE)

    return _everywhere("heartbeat", heartbeat)


def _loads_nothing() -> Patches:
    """F-LOAD-01 forgotten: a coordinator that starts from nothing."""
    original = Coordinator.load
    return [(Coordinator, "load", lambda self, record: original(self, FIRST_RECORD))]


def _answers_early() -> Patches:
    """F-RT-21 forgotten: the assignment is handed out before its record is replicated."""
    original = Coordinator.step

    def step(self: Coordinator, group: GroupState, *inputs: Any) -> Result:
        result = original(self, group, *inputs)
        sent = [each for each in inputs if isinstance(each, Arrive) and isinstance(each.body, SyncGroupRequest)]
        if not (sent and result.records):
            return result
        told = original(self, result.group, Durable(result.group.undurable))
        after = told.group._replace(undurable=result.group.undurable, operations=result.group.operations)
        return result._replace(group=after, replies=(*result.replies, *told.replies))

    return [(Coordinator, "step", step)]


def _no_succession() -> Patches:
    """C-JOIN-76 forgotten: the leader may be gone."""
    original = Draft.remove

    def remove(self: Draft, member_id: str) -> None:
        leader = self.leader
        original(self, member_id)
        self.leader = leader

    return [(Draft, "remove", remove)]


def _forgets_parked_syncs() -> Patches:
    """C-JOIN-42 forgets whoever is parked."""
    original = rebalance.propagate

    def propagate(d: Draft, assignments: dict[str, bytes], error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            original(d, assignments, error)

    return _everywhere("propagate", propagate)


def _refuses_nobody() -> Patches:
    """C-JOIN-21 and C-JOIN-22 forgotten."""
    return _everywhere("has_room", lambda d, body: True)


def _does_not_rearm() -> Patches:
    """C-JOIN-46 forgotten: the timer is not set again for absent static members."""
    original = rebalance.complete

    def complete(d: Draft) -> None:
        state, generation = d.state, d.generation
        original(d)
        if (d.state, d.generation) == (state, generation):
            d.cancel(JOIN_TIMER)

    return _everywhere("complete", complete)


def _cancels_for_all() -> Patches:
    """C-SYNC-16: the first SyncGroup cancels the timer for all."""

    def synced(d: Draft, member_id: str) -> None:
        d.pending_sync -= {member_id}
        d.cancel(SYNC_TIMER)

    return _everywhere("synced", synced)


def _returning_is_late() -> Patches:
    """C-STATIC-16: who has only just come back is late too."""
    return _everywhere("overdue", lambda d: d.pending_sync)


def _expires_silently() -> Patches:
    """C-TMR-07: a member goes without a rebalance."""
    return _everywhere("session_timer", lambda d, member_id: d.remove(member_id))


def _undoes_when_lost() -> Patches:
    """C-STATIC-06 where a partition goes: open replacements are undone first, whatever the member waits for by now."""
    original = static.not_replaced

    def not_replaced(d: Draft, request: int | None, callback: Replaced, error: ErrorCode, *, lost: bool) -> None:
        original(d, request, callback, error, lost=False)

    return _everywhere("not_replaced", not_replaced)


def _waits_for_ever() -> Patches:
    """K-ERR-13 forgotten: a client never stops waiting."""
    return [(closed, "parked", lambda group, client: True)]


def _survives_only_if_open() -> Patches:
    """What was replicated may be lost with what was not."""

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
    "GetSync <- GetSyncAnsweredEarly": _answers_early,
    "Remove <- RemoveWithoutSuccession": _no_succession,
    "FailParkedSyncs <- ForgetParkedSyncs": _forgets_parked_syncs,
    "Refused <- RefusesNobody": _refuses_nobody,
    "CompleteJoin <- CompleteJoinWithoutRearming": _does_not_rearm,
    "NotPending <- NobodyIsPendingAfterOne": _cancels_for_all,
    "Overdue <- WhoeverIsPendingIsOverdue": _returning_is_late,
    "SessionExpired <- SessionExpiresSilently": _expires_silently,
    "Unloaded <- UnloadedAfterUndoing": _undoes_when_lost,
    "Expecting <- AlwaysExpecting": _waits_for_ever,
    "Surviving <- SurvivesOnlyIfOpen": _survives_only_if_open,
    **CONSUMER_MUTANTS,
    **MIXED_MUTANTS,
    **LOG_MUTANTS,
    **OFFSET_MUTANTS,
    "Expecting <- ExpectsForEver": lambda: [*CONSUMER_MUTANTS["Expecting <- ExpectsForEver"](), *EXPECTS_FOR_EVER],
}


@contextmanager
def mutated(*names: str) -> Iterator[None]:
    """While the context is open the model behaves as the mutants say. KeyError for a name that there is not."""
    with ExitStack() as stack:
        for name in names:
            for owner, attribute, replacement in MUTANTS[name]():
                stack.enter_context(patch.object(owner, attribute, replacement))
        yield
