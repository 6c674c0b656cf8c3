"""The closed system of offsets as the explorer sees it: components for the group's decision, the log, the promised
offsets and the faults left, then one endpoint per holder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from ...explore.interface import Action, Label, Outcome, Permutation, Properties, State, View
from ...offsets.state import Offsets
from ..environment import Environment, Left
from . import member as members
from . import rules
from .config import OffsetsConfig
from .kept import MISSING, Entry
from .machine import Machine
from .state import Batch, Decision, Endpoint, Lease, Log, Producer, Reply, Request

DECISION, LOG, ACKNOWLEDGED, FAULTS, FIRST_ENDPOINT = 0, 1, 2, 3, 4
Acknowledged: TypeAlias = tuple[
    int, ...
]  #: by partition the highest offset that was acknowledged as committed, 0: none
UNSTABLE: Final = "UNSTABLE_OFFSET_COMMIT"


class Handled(NamedTuple):
    """A request that has arrived: its holder, and the holder's endpoint without it."""

    number: int
    request: Request
    left: Endpoint


class OffsetsSystem:
    """``explore.System`` for a configuration. ``properties``: those to check."""

    def __init__(self, config: OffsetsConfig, properties: Properties | None = None) -> None:
        self.config = config
        self.machine = Machine(config)
        self.environment = Environment(config, FAULTS)
        self.properties = properties or Properties()
        self.symmetry: Sequence[Permutation] = ()
        self.views: Sequence[View] = ()
        self.components: Sequence[str] = ("decision", "log", "acknowledged", "faults", *config.holders)
        self.numbers = range(len(config.holders))
        self.endpoints = range(FIRST_ENDPOINT, FIRST_ENDPOINT + len(config.holders))
        self.parts = range(len(config.parts))

    def initial(self) -> Iterable[State]:
        zeros = (0,) * len(self.config.parts)
        endpoint = Endpoint(Lease(), members.new_member(self.config), Producer(0, "none", zeros))
        nobody = Decision(0, (frozenset(),) * len(self.config.holders))
        yield nobody, Log(Offsets()), zeros, self.environment.full, *(endpoint for _ in self.numbers)

    def update(self, component: int, value: Any, token: Any) -> NoReturn:
        raise ValueError(f"the closed system of offsets has no updates (component {component}, {token!r} to {value!r})")

    # ---- actions ------------------------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Sequence[Action]:
        found = [Action("AppendSucceeds", (LOG, ACKNOWLEDGED, *self.endpoints), self._append_succeeds)]
        allowed = self.config.allowed
        if "GroupDecides" in allowed:
            found.append(Action("GroupDecides", (DECISION,), self._decide))
        if "CoordinatorFailsOver" in allowed:
            found.append(Action("CoordinatorFailsOver", (FAULTS, LOG, ACKNOWLEDGED, *self.endpoints), self._fail_over))
        for part in self.parts:
            for name in ("OffsetIsDeleted", "OffsetExpires"):
                if name in allowed:
                    found.append(Action(name, (DECISION, LOG), partial(self._remove_offset, name, part)))
        for number in self.numbers:
            found += self._of_holder(number)
        return tuple(found)

    def _of_holder(self, number: int) -> Iterator[Action]:
        config, endpoint = self.config, self.endpoints[number]
        name = config.holders[number]

        def alone(action: str, step: Callable[..., Endpoint | None], *more: int) -> Action:
            """Make an action of one endpoint, which may read more."""

            def outcomes(before: Endpoint, *seen: Any) -> Iterator[Outcome]:
                after = step(before, *seen)
                if after is not None:
                    yield Outcome((action, name), ((endpoint, after),))

            return Action(action, (endpoint, *more), outcomes)

        def of_part(action: str, step: Callable[[OffsetsConfig, Endpoint, int], Endpoint | None], part: int) -> Action:
            def outcomes(before: Endpoint) -> Iterator[Outcome]:
                after = step(config, before, part)
                if after is not None:
                    yield Outcome((action, name, config.parts[part]), ((endpoint, after),))

            return Action(action, (endpoint,), outcomes)

        yield alone(
            "MemberLearnsDecision",
            lambda before, decision: members.learn_decision(config, number, before, decision),
            DECISION,
        )
        yield alone("MemberAbortsTransaction", partial(members.abort, config))
        yield alone("TransactionIsAbandoned", _abandoned)
        yield Action("MemberCommitsTransaction", (endpoint, ACKNOWLEDGED), partial(self._commit_transaction, number))
        yield Action("MemberReceivesReply", (endpoint, DECISION), partial(self._receive_reply, number))
        for part in self.parts:
            yield of_part("MemberFetches", members.fetch, part)
            yield of_part("MemberProcesses", members.process, part)
            if name in config.plain_committers:
                yield of_part("MemberCommits", members.commit, part)
            if name in config.transactional_committers:
                yield of_part("MemberCommitsInTransaction", members.commit_in_transaction, part)
        reads = (endpoint, DECISION, LOG, ACKNOWLEDGED)
        yield Action("CoordinatorHandlesCommit", reads, partial(self._handle_commit, number))
        yield Action("CoordinatorHandlesTxnCommit", reads, partial(self._handle_txn_commit, number))
        yield Action("CoordinatorHandlesFetch", (endpoint, DECISION, LOG), partial(self._handle_fetch, number))
        yield Action("MarkerIsWritten", (endpoint, LOG, FAULTS), partial(self._marker, number))
        if "TransactionTimesOut" in config.allowed:
            yield alone("TransactionTimesOut", _timed_out)
        for action in ("MemberGivesUp", "MemberRestarts"):
            if action in config.allowed:
                yield Action(action, (FAULTS, endpoint, LOG), partial(self._stop, action, number))

    def _label(self, action: str, number: int, *more: str) -> Label:
        return (action, self.config.holders[number], *more)

    # ---- members ------------------------------------------------------------------------------------------------

    def _commit_transaction(self, number: int, endpoint: Endpoint, acknowledged: Acknowledged) -> Iterator[Outcome]:
        found = members.commit_transaction(endpoint)
        if found is not None:
            after, offsets = found
            now = tuple(max(pair) for pair in zip(acknowledged, offsets, strict=True))
            yield Outcome(
                self._label("MemberCommitsTransaction", number), ((self.endpoints[number], after), (ACKNOWLEDGED, now))
            )

    def _receive_reply(self, number: int, endpoint: Endpoint, decision: Decision) -> Iterator[Outcome]:
        for reply, after in members.answered(self.config, number, endpoint, decision):
            label = self._label("MemberReceivesReply", number, reply.api, reply.error)
            yield Outcome(label, ((self.endpoints[number], after),))

    def _stop(self, action: str, number: int, left: Left, endpoint: Endpoint, log: Log) -> Iterator[Outcome]:
        member, fresh = endpoint.member, members.new_member(self.config)
        gives_up = action == "MemberGivesUp"
        faults = self.environment.after(left, action)
        if faults is None or (not member.waiting if gives_up else member == fresh):
            return
        begun = member._replace(waiting=False, begun="failed" if member.begun == "open" else member.begun)
        quiet, heard = members.stop_listening(endpoint._replace(member=begun if gives_up else fresh), number, log)
        yield Outcome(self._label(action, number), ((FAULTS, faults), (self.endpoints[number], quiet), (LOG, heard)))

    # ---- the coordinator ----------------------------------------------------------------------------------------

    def _requests(self, number: int, endpoint: Endpoint, api: str) -> Iterator[tuple[Request, Endpoint]]:
        """Yield the requests that may arrive, and the endpoint without each."""
        for request in members.deliverable(self.config, endpoint, api):
            yield request, endpoint._replace(requests=endpoint.requests - {request})

    def _rejected(self, number: int, request: Request, left: Endpoint, error: str) -> Outcome:
        replies = frozenset({Reply(request.api, request.part, error)} if request.awaited else ())
        after = left._replace(replies=left.replies | replies)
        label = self._label(f"CoordinatorHandles{request.api}", number, error)
        return Outcome(label, ((self.endpoints[number], after),))

    def _written(
        self, handled: Handled, log: Log, acknowledged: Acknowledged, offsets: Offsets, entry: Entry
    ) -> Outcome:
        """Write these offsets for the request; its answer waits in the batch."""
        number, request, left = handled
        answers = frozenset({(number, Reply(request.api, request.part, "NONE", entry))} if request.awaited else ())
        early = rules.sent_at_once(answers)
        batch = Batch(offsets, answers - early)
        after = left._replace(replies=left.replies | {reply for _, reply in early})
        label = self._label(f"CoordinatorHandles{request.api}", number, "NONE")
        now = _acknowledged(acknowledged, early)
        return Outcome(
            label, ((self.endpoints[number], after), (LOG, log._replace(open=(*log.open, batch))), (ACKNOWLEDGED, now))
        )

    def _handle_commit(
        self, number: int, endpoint: Endpoint, decision: Decision, log: Log, acknowledged: Acknowledged
    ) -> Iterator[Outcome]:
        for request, left in self._requests(number, endpoint, "Commit"):
            found = self.machine.commit(decision, number, request, log.newest)
            if isinstance(found, str):
                yield self._rejected(number, request, left, found)
            else:
                yield self._written(Handled(number, request, left), log, acknowledged, found, Entry(request.offset))

    def _handle_txn_commit(
        self, number: int, endpoint: Endpoint, decision: Decision, log: Log, acknowledged: Acknowledged
    ) -> Iterator[Outcome]:
        name = self.config.holders[number]
        for request, left in self._requests(number, endpoint, "TxnCommit"):
            found = self.machine.commit(decision, number, request, log.newest)
            if isinstance(found, str):
                yield self._rejected(number, request, left, found)
            elif not rules.is_in_transaction(request, endpoint.producer):
                yield self._rejected(number, request, left, "INVALID_PRODUCER_EPOCH")
            else:
                entry = Entry(request.offset, name, request.number, True)
                yield self._written(Handled(number, request, left), log, acknowledged, found, entry)

    def _handle_fetch(self, number: int, endpoint: Endpoint, decision: Decision, log: Log) -> Iterator[Outcome]:
        for request, left in self._requests(number, endpoint, "Fetch"):
            stable = self.config.require_stable
            found = self.machine.fetch(decision, number, request, log.newest if stable else log.stable)
            label = self._label("CoordinatorHandlesFetch", number, "NONE")
            if found == UNSTABLE:
                continue  # it will be sent again, which is the same as a later fetch
            if isinstance(found, str):
                yield self._rejected(number, request, left, found)
                continue
            reply = Reply("Fetch", request.part, "NONE", found)
            if not request.awaited:
                yield Outcome(label, ((self.endpoints[number], left),))
            elif stable and log.open:
                waits = log.open[-1]._replace(answers=log.open[-1].answers | {(number, reply)})
                after = log._replace(open=(*log.open[:-1], waits))
                yield Outcome(label, ((self.endpoints[number], left), (LOG, after)))
            else:
                yield Outcome(label, ((self.endpoints[number], left._replace(replies=left.replies | {reply})),))

    def _marker(self, number: int, endpoint: Endpoint, log: Log, left: Left) -> Iterator[Outcome]:
        quiet = left == self.environment.full
        state = endpoint.producer.state
        if state not in {"committing", "aborting"} or rules.marker_is_in_flight(number, log, quiet=quiet):
            return
        batch = Batch(self.machine.ended(log.newest, number, committed=state == "committing"), ends=number)
        yield Outcome(self._label("MarkerIsWritten", number), ((LOG, log._replace(open=(*log.open, batch))),))

    # ---- the log ------------------------------------------------------------------------------------------------

    def _append_succeeds(self, log: Log, acknowledged: Acknowledged, *endpoints: Endpoint) -> Iterator[Outcome]:
        if not log.open:
            return
        batch, *rest = log.open
        gone = {batch.expired, batch.deleted}
        now = tuple(0 if part in gone else high for part, high in enumerate(_acknowledged(acknowledged, batch.answers)))
        writes: list[tuple[int, Any]] = [(LOG, Log(batch.store, tuple(rest))), (ACKNOWLEDGED, now)]
        for number, endpoint in enumerate(endpoints):
            replies = frozenset(reply for to, reply in batch.answers if to == number)
            producer = endpoint.producer
            offsets = [*producer.offsets]
            for reply in replies:
                if reply.api == "TxnCommit" and producer.state == "open" and reply.entry.number == producer.number:
                    offsets[reply.part] = max(offsets[reply.part], reply.entry.offset)
            if batch.deleted is not None:
                offsets[batch.deleted] = 0
            state = "none" if batch.ends == number else producer.state
            after = endpoint._replace(
                producer=producer._replace(state=state, offsets=tuple(offsets)), replies=endpoint.replies | replies
            )
            writes.append((self.endpoints[number], after))
        yield Outcome(("AppendSucceeds",), tuple(writes))

    def _fail_over(self, left: Left, log: Log, acknowledged: Acknowledged, *endpoints: Endpoint) -> Iterator[Outcome]:
        faults = self.environment.after(left, "CoordinatorFailsOver")
        if faults is None:
            return
        for survivors in range(len(log.open) + 1):
            kept = log.open[:survivors]
            deleted = {batch.deleted for batch in kept}
            gone = deleted | {batch.expired for batch in kept}
            writes: list[tuple[int, Any]] = [
                (FAULTS, faults),
                (LOG, Log(rules.loaded(log, survivors))),
                (ACKNOWLEDGED, tuple(0 if part in gone else high for part, high in enumerate(acknowledged))),
            ]
            for number, endpoint in enumerate(endpoints):
                lost = frozenset(
                    reply._replace(error="NOT_COORDINATOR", entry=MISSING)
                    for batch in log.open
                    for to, reply in batch.answers
                    if to == number
                )
                offsets = tuple(0 if part in deleted else each for part, each in enumerate(endpoint.producer.offsets))
                after = endpoint._replace(
                    producer=endpoint.producer._replace(offsets=offsets), replies=endpoint.replies | lost
                )
                writes.append((self.endpoints[number], after))
            yield Outcome(("CoordinatorFailsOver", str(survivors)), tuple(writes))

    # ---- environment --------------------------------------------------------------------------------------------

    def _decide(self, decision: Decision) -> Iterator[Outcome]:
        if decision.epoch < self.config.epochs:
            for grant in self.config.decisions:
                if grant != decision.grant:
                    grants = " ".join(
                        f"{holder}:{','.join(sorted(parts)) or '-'}"
                        for holder, parts in zip(self.config.holders, grant, strict=True)
                    )
                    yield Outcome(("GroupDecides", grants), ((DECISION, Decision(decision.epoch + 1, grant)),))

    def _remove_offset(self, action: str, part: int, decision: Decision, log: Log) -> Iterator[Outcome]:
        if action == "OffsetIsDeleted":
            gone = self.machine.deleted(decision, log.newest, part)
            batch = gone and Batch(gone, deleted=part)
        else:
            gone = self.machine.expired(decision, log.newest, part)
            batch = gone and Batch(gone, expired=part)
        if batch is not None:
            after = log._replace(open=(*log.open, batch))
            yield Outcome((action, self.config.parts[part]), ((LOG, after),))


def _acknowledged(acknowledged: Acknowledged, answers: Iterable[tuple[int, Reply]]) -> Acknowledged:
    """Return what is promised once these answers are out."""
    now = [*acknowledged]
    for _, reply in answers:
        if reply.api == "Commit" and reply.error == "NONE":
            now[reply.part] = max(now[reply.part], reply.entry.offset)
    return tuple(now)


def _abandoned(endpoint: Endpoint) -> Endpoint | None:
    return endpoint._replace(producer=members.aborting(endpoint.producer)) if rules.is_abandoned(endpoint) else None


def _timed_out(endpoint: Endpoint) -> Endpoint | None:
    if endpoint.producer.state != "open" or endpoint.member.begun == "none":
        return None
    return endpoint._replace(producer=members.aborting(endpoint.producer))
