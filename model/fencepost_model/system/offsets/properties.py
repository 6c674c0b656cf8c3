"""The promises about offsets: the properties of ``spec/OffsetProperties.tla``, under the same names, and the witnesses
of ``MCOffsets``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...explore.interface import Invariant, Label, LeadsTo, Properties, Settles, StepInvariant
from ...offsets.state import Offsets
from ..durable import Durable, follows
from ..fairness import of_system
from ..gather import gather
from .closed import DECISION, LOG, PROMISED, OffsetsSystem, Promised
from .kept import Entry, committed, entries, pending, rows
from .state import Decision, Lane, Log, Reply

Part: TypeAlias = Invariant | StepInvariant | LeadsTo | Settles

#: The actions of the protocol itself.
SYSTEM: Final = frozenset(
    {
        "AppendSucceeds",
        "CoordinatorHandlesCommit",
        "CoordinatorHandlesTxnCommit",
        "CoordinatorHandlesFetch",
        "MemberReceivesReply",
        "MemberLearnsDecision",
        "MemberCommitsTransaction",
        "MemberAbortsTransaction",
        "MarkerIsWritten",
        "TransactionIsAbandoned",
        "MemberFetches",
        "MemberProcesses",
        "MemberCommits",
        "MemberCommitsInTransaction",
    }
)

FAIRNESS: Final = of_system(SYSTEM)


def may_commit(number: int, part: str, lane: Lane, decision: Decision) -> bool:
    """Return whether Ownership lets the holder commit there: it has a lease of the last decision with that
    partition."""
    return lane.lease.epoch == decision.epoch > 0 and part in lane.lease.resources


def has_types(system: OffsetsSystem) -> Iterable[Part]:
    """The range of each value; the type checker covers the shapes."""
    config = system.config

    def of_lane(lane: Lane) -> bool:
        positions = all(at is None or 0 <= at <= config.max_offset for at in lane.member.positions)
        return positions and lane.lease.epoch <= config.epochs and lane.producer.number <= config.transactions

    def of_log(log: Log) -> bool:
        return all(ordered(kept) for kept in (log.stable, *(batch.store for batch in log.open)))

    def ordered(offsets: Offsets) -> bool:
        places = [[kept.at for kept, _ in rows(offsets, part)] for part in system.parts]
        return all(found == [*range(len(found))] for found in places)

    name = "EveryVariableHasItsType"
    return (*(Invariant(name, (lane,), of_lane) for lane in system.lanes), Invariant(name, (LOG,), of_log))


def commits_are_owners(system: OffsetsSystem) -> Iterable[Part]:
    """Every accepted commit comes from a holder that may commit there (INV-COMMIT-01, INV-KIP-11)."""

    def holding(number: int) -> Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]:
        def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            decision, lane, log = before
            if len(after[2].open) <= len(log.open):
                return True
            handled = lane.requests - after[1].requests
            return all(may_commit(number, system.config.parts[each.part], lane, decision) for each in handled)

        return holds

    actions = frozenset({"CoordinatorHandlesCommit", "CoordinatorHandlesTxnCommit"})
    for number, lane in enumerate(system.lanes):
        reads = (DECISION, lane, LOG)
        yield StepInvariant("OnlyOwnersCommit", reads, holding(number), actions, changed=(lane,))


def keeps_what_is_acknowledged(system: OffsetsSystem) -> Iterable[Part]:
    """An offset acknowledged as committed is committed, or belongs to a transaction that will commit
    (INV-COMMIT-03)."""
    holders = system.config.holders

    def holds(promised: Promised, log: Log, *lanes: Lane) -> bool:
        sure = {
            (name, lane.producer.number)
            for name, lane in zip(holders, lanes, strict=True)
            if lane.producer.state == "committing"
        }
        for part, high in enumerate(promised):
            found = entries(log.stable, part)
            counting = [each for each in found if not each.pending or (each.producer, each.number) in sure]
            if high and all(each.offset < high for each in counting):
                return False
        return True

    yield Invariant("NoAcknowledgedWriteIsLost", (PROMISED, LOG, *system.lanes), holds)


def goes_on_where_others_stopped(system: OffsetsSystem) -> Iterable[Part]:
    """No owner is behind an offset that was acknowledged to an earlier owner."""

    def holding(number: int) -> Callable[[Decision, Promised, Lane], bool]:
        def holds(decision: Decision, promised: Promised, lane: Lane) -> bool:
            return all(
                at is None or at >= high or not may_commit(number, part, lane, decision)
                for part, at, high in zip(system.config.parts, lane.member.positions, promised, strict=True)
            )

        return holds

    for number, lane in enumerate(system.lanes):
        yield Invariant("NoOwnerIsBehindACommittedOffset", (DECISION, PROMISED, lane), holding(number))


def telling(replies: Iterable[Reply]) -> Iterable[Entry]:
    """Return the entries in answers to fetches."""
    return (reply.entry for reply in replies if reply.api == "Fetch" and reply.error == "NONE")


def _told(system: OffsetsSystem, name: str, holds: Callable[[Entry], bool]) -> Iterable[Part]:
    """Make a property of each answer to a fetch, in flight or waiting for replication."""

    def of_lane(lane: Lane) -> bool:
        return all(holds(entry) for entry in telling(lane.replies))

    def of_log(log: Log) -> bool:
        return all(holds(entry) for batch in log.open for entry in telling(reply for _, reply in batch.answers))

    return (*(Invariant(name, (lane,), of_lane) for lane in system.lanes), Invariant(name, (LOG,), of_log))


def tells_nothing_pending(system: OffsetsSystem) -> Iterable[Part]:
    """No answer contains a pending offset (INV-TXN-01)."""
    return _told(system, "NoAnswerContainsAPendingOffset", lambda entry: not entry.pending)


def waits_for_transactions(system: OffsetsSystem) -> Iterable[Part]:
    """A fetch for stable offsets gets no offset while another one is pending (O-FETCH-08)."""

    def answers(number: int, lane: Lane, log: Log) -> set[Reply]:
        waiting = (reply for batch in log.open for to, reply in batch.answers if to == number)
        return {each for each in (*lane.replies, *waiting) if each.api == "Fetch" and each.error == "NONE"}

    def holding(number: int) -> Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            new = answers(number, *after) - answers(number, *before)
            return not any(pending(before[1].newest, reply.part) for reply in new)

        return holds

    if system.config.require_stable:
        for number, lane in enumerate(system.lanes):
            asked = frozenset({"CoordinatorHandlesFetch"})
            yield StepInvariant(
                "EveryStableFetchWaitsForTransactions", (lane, LOG), holding(number), asked, changed=(lane,)
            )


def shows_nothing_aborted(system: OffsetsSystem) -> Iterable[Part]:
    """An aborted offset is not committed, and no answer contains it (INV-TXN-01)."""
    holders = system.config.holders

    def holds(log: Log, *lanes: Lane) -> bool:
        aborted = {
            (name, number) for name, lane in zip(holders, lanes, strict=True) for number in lane.producer.aborted
        }
        answers = [reply for batch in log.open for _, reply in batch.answers]
        seen = [*telling(answers), *(entry for lane in lanes for entry in telling(lane.replies))]
        seen += [committed(log.newest, part) for part in system.parts]
        return all((entry.producer, entry.number) not in aborted for entry in seen)

    yield Invariant("NoAbortedOffsetIsVisible", (LOG, *system.lanes), holds)


def pending_is_to_end(system: OffsetsSystem) -> Iterable[Part]:
    """A pending offset belongs to a transaction that is still to end (KIP-890)."""
    holders = system.config.holders

    def holds(log: Log, *lanes: Lane) -> bool:
        to_end = {
            (name, lane.producer.number)
            for name, lane in zip(holders, lanes, strict=True)
            if lane.producer.state != "none"
        }
        return all(
            (each.producer, each.number) in to_end for part in system.parts for each in pending(log.newest, part)
        )

    yield Invariant("EveryPendingOffsetHasAnUnfinishedTransaction", (LOG, *system.lanes), holds)


# ---- refinements -----------------------------------------------------------------------------------------------------


def keeps_ownership(system: OffsetsSystem) -> Iterable[Part]:
    """The refinement of ``Ownership``: decisions follow each other, and a lease either stays or becomes that of the
    last decision."""

    def decides(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (then,), (now,) = before, after
        parts = [part for granted in now.grant for part in granted]
        return now.epoch > then.epoch and len({*parts}) == len(parts)

    def holding(number: int) -> Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            (lane, _), (now, decision) = before, after
            entitled: bool = now.lease.epoch == decision.epoch and now.lease.resources == decision.grant[number]
            return entitled or bool(now.lease == lane.lease)

        return holds

    name = "TheGroupRefinesOwnership"
    yield StepInvariant(name, (DECISION,), decides, changed=(DECISION,))
    for number, lane in enumerate(system.lanes):
        yield StepInvariant(name, (lane, DECISION), holding(number), changed=(lane,))


def is_durable(system: OffsetsSystem) -> Iterable[Part]:
    """The refinement of ``Durable``."""

    def durable(log: Log) -> Durable[Offsets]:
        return Durable(log.stable, tuple(batch.store for batch in log.open))

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return follows(durable(before[0]), durable(after[0]))

    yield StepInvariant("TheOffsetsRefineDurable", (LOG,), holds, changed=(LOG,))


# ---- liveness --------------------------------------------------------------------------------------------------------


def ends_free(system: OffsetsSystem) -> Iterable[Part]:
    """A transaction that ends frees its offsets."""

    def freeing(part: int, name: str) -> Callable[[Lane, Log], bool]:
        return lambda lane, log: (
            lane.producer.state == "none" or all(each.producer != name for each in pending(log.stable, part))
        )

    for lane, name in zip(system.lanes, system.config.holders, strict=True):
        for part in system.parts:
            yield LeadsTo(
                "EveryEndedTransactionFreesItsOffsets",
                (lane, LOG),
                lambda lane, log: lane.producer.state in {"committing", "aborting"},
                freeing(part, name),
            )


def nothing_stays_pending(system: OffsetsSystem) -> Iterable[Part]:
    """No offset stays pending for ever."""

    def of(part: int, *, waits: bool) -> Callable[[Log], bool]:
        return lambda log: bool(pending(log.stable, part)) is waits

    for part in system.parts:
        yield LeadsTo("NoOffsetIsPendingForever", (LOG,), of(part, waits=True), of(part, waits=False))


def waits_end(system: OffsetsSystem) -> Iterable[Part]:
    """Every wait for an answer ends."""
    for lane in system.lanes:
        yield LeadsTo("EveryWaitEnds", (lane,), lambda lane: lane.member.waiting, lambda lane: not lane.member.waiting)


# ---- witnesses: each says "never" about something that must be reachable ---------------------------------------------


def no_offset_is_told(system: OffsetsSystem) -> Iterable[Part]:
    """An owner continues where another one has stopped."""
    for lane in system.lanes:
        yield Invariant(
            "NoCommittedOffsetIsEverFetched",
            (lane,),
            lambda lane: all(not entry.offset for entry in telling(lane.replies)),
        )


def no_fetch_ever_finds_a_pending_offset(system: OffsetsSystem) -> Iterable[Part]:
    """A fetch waits for a transaction to end."""

    def holds(lane: Lane, log: Log) -> bool:
        return all(not pending(log.newest, each.part) for each in lane.requests if each.api == "Fetch")

    return (Invariant("NoFetchEverFindsAPendingOffset", (lane, LOG), holds) for lane in system.lanes)


def no_commit_is_ever_rejected(system: OffsetsSystem) -> Iterable[Part]:
    """A commit is refused for its epoch."""

    def holds(lane: Lane) -> bool:
        return all(each.api != "Commit" or each.error != "STALE_MEMBER_EPOCH" for each in lane.replies)

    return (Invariant("NoCommitIsEverRejected", (lane,), holds) for lane in system.lanes)


CATALOGUE: Final[Mapping[str, Callable[[OffsetsSystem], Iterable[Part]]]] = {
    "EveryVariableHasItsType": has_types,
    "OnlyOwnersCommit": commits_are_owners,
    "NoAcknowledgedWriteIsLost": keeps_what_is_acknowledged,
    "NoOwnerIsBehindACommittedOffset": goes_on_where_others_stopped,
    "NoAnswerContainsAPendingOffset": tells_nothing_pending,
    "EveryStableFetchWaitsForTransactions": waits_for_transactions,
    "NoAbortedOffsetIsVisible": shows_nothing_aborted,
    "EveryPendingOffsetHasAnUnfinishedTransaction": pending_is_to_end,
    "TheGroupRefinesOwnership": keeps_ownership,
    "TheOffsetsRefineDurable": is_durable,
    "EveryEndedTransactionFreesItsOffsets": ends_free,
    "NoOffsetIsPendingForever": nothing_stays_pending,
    "EveryWaitEnds": waits_end,
    "NoCommittedOffsetIsEverFetched": no_offset_is_told,
    "NoFetchEverFindsAPendingOffset": no_fetch_ever_finds_a_pending_offset,
    "NoCommitIsEverRejected": no_commit_is_ever_rejected,
}


def properties_of(system: OffsetsSystem, wanted: Sequence[str], *, fair: bool = False) -> Properties:
    """Return the named properties for the system. Raises ValueError for an unknown name."""
    return gather(system, wanted, CATALOGUE, FAIRNESS if fair else ())
