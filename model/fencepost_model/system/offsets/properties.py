"""The promises about offsets: the properties of ``spec/OffsetProperties.tla``, under the same names, and the witnesses
of ``MCOffsets``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ...explore.interface import Invariant, Label, LeadsTo, StepInvariant
from ...offsets.state import Offsets
from ..durable import Durable, follows
from ..gather import Part
from .closed import ACKNOWLEDGED, DECISION, LOG, Acknowledged, OffsetsSystem
from .kept import Entry, committed, entries, pending, rows
from .state import Decision, Endpoint, Log, Reply

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


def may_commit(number: int, part: str, endpoint: Endpoint, decision: Decision) -> bool:
    """Return whether Ownership lets the holder commit there: it has a lease of the last decision with that
    partition."""
    return endpoint.lease.epoch == decision.epoch > 0 and part in endpoint.lease.resources


def every_variable_has_its_type(system: OffsetsSystem) -> Iterable[Part]:
    """The range of each value; the type checker covers the shapes."""
    config = system.config

    def of_lane(endpoint: Endpoint) -> bool:
        positions = all(at is None or 0 <= at <= config.max_offset for at in endpoint.member.positions)
        return positions and endpoint.lease.epoch <= config.epochs and endpoint.producer.number <= config.transactions

    def of_log(log: Log) -> bool:
        return all(ordered(kept) for kept in (log.stable, *(batch.store for batch in log.open)))

    def ordered(offsets: Offsets) -> bool:
        places = [[kept.at for kept, _ in rows(offsets, part)] for part in system.parts]
        return all(found == [*range(len(found))] for found in places)

    name = "EveryVariableHasItsType"
    return (*(Invariant(name, (endpoint,), of_lane) for endpoint in system.endpoints), Invariant(name, (LOG,), of_log))


def only_owners_commit(system: OffsetsSystem) -> Iterable[Part]:
    """Every accepted commit comes from a holder that may commit there (INV-COMMIT-01, INV-KIP-11)."""

    def holding(number: int) -> Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]:
        def holds(label: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            decision, endpoint, log = before
            if len(after[2].open) <= len(log.open):
                return True
            handled = endpoint.requests - after[1].requests
            return all(may_commit(number, system.config.parts[each.part], endpoint, decision) for each in handled)

        return holds

    actions = frozenset({"CoordinatorHandlesCommit", "CoordinatorHandlesTxnCommit"})
    for number, endpoint in enumerate(system.endpoints):
        reads = (DECISION, endpoint, LOG)
        yield StepInvariant("OnlyOwnersCommit", reads, holding(number), actions, changed=(endpoint,))


def no_acknowledged_write_is_lost(system: OffsetsSystem) -> Iterable[Part]:
    """An offset acknowledged as committed is committed, or belongs to a transaction that will commit
    (INV-COMMIT-03)."""
    holders = system.config.holders

    def holds(acknowledged: Acknowledged, log: Log, *endpoints: Endpoint) -> bool:
        sure = {
            (name, endpoint.producer.number)
            for name, endpoint in zip(holders, endpoints, strict=True)
            if endpoint.producer.state == "committing"
        }
        for part, high in enumerate(acknowledged):
            found = entries(log.stable, part)
            counting = [each for each in found if not each.pending or (each.producer, each.number) in sure]
            if high and all(each.offset < high for each in counting):
                return False
        return True

    yield Invariant("NoAcknowledgedWriteIsLost", (ACKNOWLEDGED, LOG, *system.endpoints), holds)


def no_owner_is_behind_a_committed_offset(system: OffsetsSystem) -> Iterable[Part]:
    """No owner is behind an offset that was acknowledged to an earlier owner."""

    def holding(number: int) -> Callable[[Decision, Acknowledged, Endpoint], bool]:
        def holds(decision: Decision, acknowledged: Acknowledged, endpoint: Endpoint) -> bool:
            return all(
                at is None or at >= high or not may_commit(number, part, endpoint, decision)
                for part, at, high in zip(system.config.parts, endpoint.member.positions, acknowledged, strict=True)
            )

        return holds

    for number, endpoint in enumerate(system.endpoints):
        yield Invariant("NoOwnerIsBehindACommittedOffset", (DECISION, ACKNOWLEDGED, endpoint), holding(number))


def offset_answers(replies: Iterable[Reply]) -> Iterable[Entry]:
    """Return the entries in answers to fetches."""
    return (reply.entry for reply in replies if reply.api == "Fetch" and reply.error == "NONE")


def _no_answer_has(system: OffsetsSystem, name: str, holds: Callable[[Entry], bool]) -> Iterable[Part]:
    """Make a property of each answer to a fetch, in flight or waiting for replication."""

    def of_lane(endpoint: Endpoint) -> bool:
        return all(holds(entry) for entry in offset_answers(endpoint.replies))

    def of_log(log: Log) -> bool:
        return all(holds(entry) for batch in log.open for entry in offset_answers(reply for _, reply in batch.answers))

    return (*(Invariant(name, (endpoint,), of_lane) for endpoint in system.endpoints), Invariant(name, (LOG,), of_log))


def no_answer_contains_a_pending_offset(system: OffsetsSystem) -> Iterable[Part]:
    """No answer contains a pending offset (INV-TXN-01)."""
    return _no_answer_has(system, "NoAnswerContainsAPendingOffset", lambda entry: not entry.pending)


def every_stable_fetch_waits_for_transactions(system: OffsetsSystem) -> Iterable[Part]:
    """A fetch for stable offsets gets no offset while another one is pending (O-FETCH-08)."""

    def answers(number: int, endpoint: Endpoint, log: Log) -> set[Reply]:
        waiting = (reply for batch in log.open for to, reply in batch.answers if to == number)
        return {each for each in (*endpoint.replies, *waiting) if each.api == "Fetch" and each.error == "NONE"}

    def holding(number: int) -> Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            new = answers(number, *after) - answers(number, *before)
            return not any(pending(before[1].newest, reply.part) for reply in new)

        return holds

    if system.config.require_stable:
        for number, endpoint in enumerate(system.endpoints):
            asked = frozenset({"CoordinatorHandlesFetch"})
            yield StepInvariant(
                "EveryStableFetchWaitsForTransactions", (endpoint, LOG), holding(number), asked, changed=(endpoint,)
            )


def no_aborted_offset_is_visible(system: OffsetsSystem) -> Iterable[Part]:
    """An aborted offset is not committed, and no answer contains it (INV-TXN-01)."""
    holders = system.config.holders

    def holds(log: Log, *endpoints: Endpoint) -> bool:
        aborted = {
            (name, number)
            for name, endpoint in zip(holders, endpoints, strict=True)
            for number in endpoint.producer.aborted
        }
        answers = [reply for batch in log.open for _, reply in batch.answers]
        seen = [
            *offset_answers(answers),
            *(entry for endpoint in endpoints for entry in offset_answers(endpoint.replies)),
        ]
        seen += [committed(log.newest, part) for part in system.parts]
        return all((entry.producer, entry.number) not in aborted for entry in seen)

    yield Invariant("NoAbortedOffsetIsVisible", (LOG, *system.endpoints), holds)


def every_pending_offset_has_an_unfinished_transaction(system: OffsetsSystem) -> Iterable[Part]:
    """A pending offset belongs to a transaction that is still to end (KIP-890)."""
    holders = system.config.holders

    def holds(log: Log, *endpoints: Endpoint) -> bool:
        to_end = {
            (name, endpoint.producer.number)
            for name, endpoint in zip(holders, endpoints, strict=True)
            if endpoint.producer.state != "none"
        }
        return all(
            (each.producer, each.number) in to_end for part in system.parts for each in pending(log.newest, part)
        )

    yield Invariant("EveryPendingOffsetHasAnUnfinishedTransaction", (LOG, *system.endpoints), holds)


# ---- refinements -----------------------------------------------------------------------------------------------------


def the_group_refines_ownership(system: OffsetsSystem) -> Iterable[Part]:
    """The refinement of ``Ownership``: decisions follow each other, and a lease either stays or becomes that of the
    last decision."""

    def decides(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        (then,), (now,) = before, after
        parts = [part for granted in now.grant for part in granted]
        return now.epoch > then.epoch and len({*parts}) == len(parts)

    def holding(number: int) -> Callable[[Label, tuple[Any, ...], tuple[Any, ...]], bool]:
        def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
            (endpoint, _), (now, decision) = before, after
            entitled: bool = now.lease.epoch == decision.epoch and now.lease.resources == decision.grant[number]
            return entitled or bool(now.lease == endpoint.lease)

        return holds

    name = "TheGroupRefinesOwnership"
    yield StepInvariant(name, (DECISION,), decides, changed=(DECISION,))
    for number, endpoint in enumerate(system.endpoints):
        yield StepInvariant(name, (endpoint, DECISION), holding(number), changed=(endpoint,))


def the_offsets_refine_durable(system: OffsetsSystem) -> Iterable[Part]:
    """The refinement of ``Durable``."""

    def durable(log: Log) -> Durable[Offsets]:
        return Durable(log.stable, tuple(batch.store for batch in log.open))

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        return follows(durable(before[0]), durable(after[0]))

    yield StepInvariant("TheOffsetsRefineDurable", (LOG,), holds, changed=(LOG,))


# ---- liveness --------------------------------------------------------------------------------------------------------


def every_ended_transaction_frees_its_offsets(system: OffsetsSystem) -> Iterable[Part]:
    """A transaction that ends frees its offsets."""

    def freeing(part: int, name: str) -> Callable[[Endpoint, Log], bool]:
        return lambda endpoint, log: (
            endpoint.producer.state == "none" or all(each.producer != name for each in pending(log.stable, part))
        )

    for endpoint, name in zip(system.endpoints, system.config.holders, strict=True):
        for part in system.parts:
            yield LeadsTo(
                "EveryEndedTransactionFreesItsOffsets",
                (endpoint, LOG),
                lambda endpoint, log: endpoint.producer.state in {"committing", "aborting"},
                freeing(part, name),
            )


def no_offset_is_pending_forever(system: OffsetsSystem) -> Iterable[Part]:
    """No offset stays pending for ever."""

    def of(part: int, *, waits: bool) -> Callable[[Log], bool]:
        return lambda log: bool(pending(log.stable, part)) is waits

    for part in system.parts:
        yield LeadsTo("NoOffsetIsPendingForever", (LOG,), of(part, waits=True), of(part, waits=False))


def every_wait_ends(system: OffsetsSystem) -> Iterable[Part]:
    """Every wait for an answer ends."""
    for endpoint in system.endpoints:
        yield LeadsTo(
            "EveryWaitEnds",
            (endpoint,),
            lambda endpoint: endpoint.member.waiting,
            lambda endpoint: not endpoint.member.waiting,
        )


# ---- witnesses: each says "never" about something that must be reachable ---------------------------------------------


def no_committed_offset_is_ever_fetched(system: OffsetsSystem) -> Iterable[Part]:
    """An owner continues where another one has stopped."""
    for endpoint in system.endpoints:
        yield Invariant(
            "NoCommittedOffsetIsEverFetched",
            (endpoint,),
            lambda endpoint: all(not entry.offset for entry in offset_answers(endpoint.replies)),
        )


def no_fetch_ever_finds_a_pending_offset(system: OffsetsSystem) -> Iterable[Part]:
    """A fetch waits for a transaction to end."""

    def holds(endpoint: Endpoint, log: Log) -> bool:
        return all(not pending(log.newest, each.part) for each in endpoint.requests if each.api == "Fetch")

    return (Invariant("NoFetchEverFindsAPendingOffset", (endpoint, LOG), holds) for endpoint in system.endpoints)


def no_commit_is_ever_rejected(system: OffsetsSystem) -> Iterable[Part]:
    """A commit is refused for its epoch."""

    def holds(endpoint: Endpoint) -> bool:
        return all(each.api != "Commit" or each.error != "STALE_MEMBER_EPOCH" for each in endpoint.replies)

    return (Invariant("NoCommitIsEverRejected", (endpoint,), holds) for endpoint in system.endpoints)


CATALOGUE: Final[Mapping[str, Callable[[OffsetsSystem], Iterable[Part]]]] = {
    "EveryVariableHasItsType": every_variable_has_its_type,
    "OnlyOwnersCommit": only_owners_commit,
    "NoAcknowledgedWriteIsLost": no_acknowledged_write_is_lost,
    "NoOwnerIsBehindACommittedOffset": no_owner_is_behind_a_committed_offset,
    "NoAnswerContainsAPendingOffset": no_answer_contains_a_pending_offset,
    "EveryStableFetchWaitsForTransactions": every_stable_fetch_waits_for_transactions,
    "NoAbortedOffsetIsVisible": no_aborted_offset_is_visible,
    "EveryPendingOffsetHasAnUnfinishedTransaction": every_pending_offset_has_an_unfinished_transaction,
    "TheGroupRefinesOwnership": the_group_refines_ownership,
    "TheOffsetsRefineDurable": the_offsets_refine_durable,
    "EveryEndedTransactionFreesItsOffsets": every_ended_transaction_frees_its_offsets,
    "NoOffsetIsPendingForever": no_offset_is_pending_forever,
    "EveryWaitEnds": every_wait_ends,
    "NoCommittedOffsetIsEverFetched": no_committed_offset_is_ever_fetched,
    "NoFetchEverFindsAPendingOffset": no_fetch_ever_finds_a_pending_offset,
    "NoCommitIsEverRejected": no_commit_is_ever_rejected,
}
