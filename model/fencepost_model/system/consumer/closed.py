"""The closed consumer group as the explorer sees it: components, actions, updates.

Components: 0 the group, 1 the log (what is replicated, and the open batches with the answers that wait for them), 2 the
counters (ids made, faults left, existing partitions), then one endpoint per client. ``coordinator`` has the
coordinator's steps, ``client`` the member's. This module has the guards of the contract and delivers the messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

from ...explore.interface import Action, Label, Outcome, Permutation, Properties, State, Value, View
from .. import commits
from ..environment import Counters, Environment, Updates, deliverable, expects_answer, forget_answers
from . import client as clients
from .config import ConsumerConfig
from .coordinator import Coordinator, Result
from .state import Batch, Client, Endpoint, Group, Hard, Heartbeat, Log, Reply

GROUP, LOG, COUNTERS, FIRST_ENDPOINT = 0, 1, 2, 3

#: How a client stops or is stopped: action, and the endpoint afterwards.
STOPS: Final[dict[str, Callable[[Endpoint, str], Endpoint | None]]] = {
    "ClientGivesUp": clients.give_up,
    "ClientCrashes": clients.crash,
    "ClientLeaves": clients.leave,
    "ClientLeavesPermanently": clients.leave_permanently,
    "ClientChangesInstance": clients.change_instance,
}


def sent_at_once(answers: frozenset[tuple[int, Reply]]) -> frozenset[tuple[int, Reply]]:
    """Return the answers to an append that do not wait for it (M-HB-11): none."""
    return frozenset()


def waits_for_open_batches(is_open: bool, answers: frozenset[tuple[int, Reply]]) -> bool:
    """Return whether answers without their own batch wait for the open ones (F-RT-16). Errors do not (F-RT-07)."""
    return is_open and bool(answers) and all(reply.error == "NONE" for _, reply in answers)


def awaited(number: int, log: Log) -> bool:
    """Return whether an answer to the client waits for a batch."""
    return any(to == number for batch in log.open for to, _ in batch.answers)


def is_open(log: Log) -> bool:
    return bool(log.open)


def surviving(log: Log, survive: int) -> Hard:
    """Return what the log holds if so many open batches survive (F-LOAD-01)."""
    return log.open[survive - 1].hard if survive else log.replicated


class ConsumerSystem:
    """``explore.System`` for a configuration. ``properties``: those to check."""

    def __init__(self, config: ConsumerConfig, properties: Properties | None = None) -> None:
        self.config = config
        self.coordinator = Coordinator(config)
        self.environment = Environment(config, COUNTERS)
        self.properties = properties or Properties()
        count = len(config.clients)
        self.endpoints = range(FIRST_ENDPOINT, FIRST_ENDPOINT + count)
        self.components: Sequence[str] = ("group", "log", "counters", *config.clients)
        first = FIRST_ENDPOINT + count
        self.ids_used, self.existing, self.open, self.replicated = range(first, first + 4)
        self.members = range(first + 4, first + 4 + count)
        self.requests = range(self.members.stop, self.members.stop + count)
        self.held = range(self.requests.stop, self.requests.stop + count)
        self.awaited = range(self.held.stop, self.held.stop + count)
        self.hard = self.awaited.stop
        self.views: Sequence[View] = (
            View(COUNTERS, lambda counters: counters.ids_used),
            View(COUNTERS, lambda counters: counters.existing),
            View(LOG, is_open),
            View(LOG, lambda log: log.replicated),
            *(View(endpoint, lambda endpoint: endpoint.client) for endpoint in self.endpoints),
            *(View(endpoint, lambda endpoint: endpoint.requests) for endpoint in self.endpoints),
            *(View(endpoint, lambda endpoint: endpoint.client.member_id) for endpoint in self.endpoints),
            *(View(LOG, partial(awaited, number)) for number in range(count)),
            View(GROUP, lambda group: group.hard),
        )

    def initial(self) -> Iterable[State]:
        counters = Counters(0, self.environment.full, self.config.first_parts)
        return [(self.coordinator.load(Hard(), False), Log(), counters, *(Endpoint() for _ in self.config.clients))]

    @property
    def symmetry(self) -> Sequence[Permutation]:
        """There is none: member ids are made in the order in which clients start."""
        return ()

    # ---- updates ------------------------------------------------------------------------------------------------

    def update(self, component: int, value: Any, token: Any) -> Value | None:
        if component == COUNTERS:
            after = self.environment.count(value, token)
            grows = after is not None and token == "TopicGrows"
            return after._replace(existing=after.existing + 1) if after is not None and grows else after
        if component == LOG:
            return _log(value, *token)
        endpoint: Endpoint = value
        for kind, what in token:
            if kind == "take":
                endpoint = endpoint._replace(requests=endpoint.requests - {what})
            else:
                endpoint = endpoint._replace(replies=endpoint.replies | {what})
        return endpoint

    def _update_group(
        self,
        label: Label,
        before: Group,
        result: Result,
        is_open: bool,
        *more: tuple[int, Value],
        taken: tuple[int, Heartbeat] | None = None,
        answers: frozenset[tuple[int, Reply]] = frozenset(),
    ) -> Outcome:
        """Set the memory to that of the result; answers are released as F-RT-04, F-RT-07 and F-RT-16 say."""
        after = result.group
        updates: list[tuple[int, Value]] = [*more]
        now = answers
        if after.hard != before.hard:
            if self.config.slow_appends:
                now = sent_at_once(answers)
                updates.append((LOG, ("append", Batch(after.hard, answers - now))))
            else:
                updates.append((LOG, ("store", after.hard)))
        elif waits_for_open_batches(is_open, answers):
            now = frozenset()
            updates.append((LOG, ("wait", answers)))
        updates += self._deliver(now, taken)
        return Outcome(label, ((GROUP, after),), tuple(updates), result.step)

    def _deliver(
        self, answers: Iterable[tuple[int, Reply]], taken: tuple[int, Heartbeat] | None = None
    ) -> Iterator[tuple[int, Value]]:
        tokens: dict[int, list[tuple[str, Any]]] = {}
        if taken is not None:
            tokens[taken[0]] = [("take", taken[1])]
        for to, reply in sorted(answers, key=repr):
            tokens.setdefault(to, []).append(("reply", reply))
        return ((FIRST_ENDPOINT + to, tuple(each)) for to, each in sorted(tokens.items()))

    # ---- actions ------------------------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Sequence[Action]:
        allowed = self.config.allowed
        found = [Action("AppendSucceeds", (LOG,), self._append_succeeds)]
        if self.config.interval:
            found.append(Action("IntervalPasses", (GROUP,), _interval_passes))
        for number in range(len(self.config.clients)):
            found += self._of_client(number)
        reads = (GROUP, self.existing, self.open, *self.held)
        for kind in ("SessionTimerFires", "RebalanceTimerFires"):
            found.append(Action(kind, reads, partial(self._fire, kind)))
        if "CoordinatorFailsOver" in allowed:
            found.append(Action("CoordinatorFailsOver", (GROUP, LOG), self._fail_over))
        if "TopicGrows" in allowed:
            found.append(Action("TopicGrows", (self.existing,), self._grow))
        return tuple(found)

    def _of_client(self, number: int) -> Iterator[Action]:
        config, endpoint, name = self.config, self.endpoints[number], self.config.clients[number]

        def own(action: str, step: Callable[[Endpoint], Iterable[Endpoint]], *more: tuple[int, Value]) -> Action:
            """Make an action of the client, or of the network on the client's messages."""
            return Action(
                action,
                (endpoint,),
                lambda before: (Outcome((action, name), ((endpoint, after),), more) for after in step(before)),
            )

        yield Action("ClientSendsHeartbeat", (GROUP, self.existing, endpoint), partial(self._send, number))
        yield Action("ClientReceivesReply", (endpoint,), partial(_get_replies, endpoint, name))
        yield own("ClientReconciles", _reconcile)
        yield Action("ClientTimesOut", (self.awaited[number], endpoint), partial(self._time_out, number))
        getting = (GROUP, self.existing, self.open, self.requests[number])
        yield Action("CoordinatorHandlesRequest", getting, partial(self._get_requests, number))
        if "ClientStarts" in config.allowed:
            yield Action("ClientStarts", (self.ids_used, endpoint), partial(self._start, number))
        for action in STOPS:
            if action in config.allowed:
                yield Action(action, (self.awaited[number], endpoint), partial(self._stop, number, action))
        for action, step, fault in self.environment.network():
            yield own(action, step, fault)
        if commits.COMMITS in config.allowed:
            yield Action(commits.COMMITS, (self.hard, self.members[number]), partial(self._commit, number))
        for action in ("AppendFails", "LeaveAppendFails"):
            if action in config.allowed:
                refusing = (GROUP, self.existing, self.requests[number])
                yield Action(action, refusing, partial(self._reject, number, action))

    # ---- members ------------------------------------------------------------------------------------------------

    def _has_effect(self, group: Group, existing: int, client: Client, heartbeat: Heartbeat) -> bool:
        """Return whether a bare heartbeat would change something or bring news now."""
        return any(
            result.reply.error != "NONE"
            or result.reply.assignment is not None
            or result.reply.epoch != client.epoch
            or result.group.hard != group.hard
            for result in self.coordinator.get(group, heartbeat, existing)
        )

    def _send(self, number: int, group: Group, existing: int, endpoint: Endpoint) -> Iterator[Outcome]:
        client = endpoint.client
        if client.state not in clients.RUNNING or client.waiting:
            return
        heartbeat = clients.next_heartbeat(self.config, client)
        reports_nothing = client.state == "member" and not client.unsure and not client.unacknowledged
        if reports_nothing and not self._has_effect(group, existing, client, heartbeat):
            return
        after = endpoint._replace(client=clients.after_sending(client), requests=endpoint.requests | {heartbeat})
        yield Outcome(("ClientSendsHeartbeat", self.config.clients[number]), ((self.endpoints[number], after),))

    def _start(self, number: int, ids_used: int, endpoint: Endpoint) -> Iterator[Outcome]:
        ids = self.config.member_ids
        if endpoint.client.state == "down" and ids_used < len(ids):
            client = clients.joining_client(ids[ids_used], self.config.instance(number))
            after = endpoint._replace(client=client)
            label = ("ClientStarts", self.config.clients[number])
            yield Outcome(label, ((self.endpoints[number], after),), ((COUNTERS, "id"),))

    def _time_out(self, number: int, waits_for_batch: bool, endpoint: Endpoint) -> Iterator[Outcome]:
        if endpoint.client.waiting and not expects_answer(endpoint, waits_for_batch):
            yield self._stopped(number, "ClientTimesOut", waits_for_batch, clients.give_up(endpoint, ""))

    def _stop(self, number: int, action: str, waits_for_batch: bool, endpoint: Endpoint) -> Iterator[Outcome]:
        after = STOPS[action](endpoint, self.config.new_instance(number))
        if after is not None:
            yield self._stopped(number, action, waits_for_batch, after, self.environment.fault(action))

    def _stopped(
        self, number: int, action: str, waits_for_batch: bool, after: Endpoint | None, *more: tuple[int, Value]
    ) -> Outcome:
        forgotten: Updates = ((LOG, ("forget", number)),) if waits_for_batch else ()
        return Outcome((action, self.config.clients[number]), ((self.endpoints[number], after),), (*forgotten, *more))

    def commit_is_accepted(self, hard: Hard, client: Client, partition: str) -> bool:
        """Return what the model's check of commits decides for a commit of the client for the partition, sent now."""
        return self.coordinator.accepts_commit(hard, client.member_id, client.instance, client.epoch, partition)

    def _commit(self, number: int, hard: Hard, client: Client) -> Iterator[Outcome]:
        if client.state in clients.RUNNING and client.epoch > 0:
            taken = (self.commit_is_accepted(hard, client, partition) for partition in client.owned)
            yield from commits.outcomes(self.config.clients[number], taken)

    # ---- coordinator --------------------------------------------------------------------------------------------

    def _get_requests(
        self, number: int, group: Group, existing: int, is_open: bool, requests: frozenset[Heartbeat]
    ) -> Iterator[Outcome]:
        name = self.config.clients[number]
        for heartbeat in deliverable(requests, self.config.reorder):
            taken = (number, heartbeat)
            for result in self.coordinator.get(group, heartbeat, existing):
                if heartbeat.epoch < 0:
                    yield self._update_group(("CoordinatorHandlesLeave", name), group, result, is_open, taken=taken)
                    continue
                answers = frozenset({(number, result.reply)} if heartbeat.awaited else ())
                label = (
                    "CoordinatorHandlesHeartbeat",
                    name,
                    result.reply.error,
                    *(() if heartbeat.awaited else ("late",)),
                )
                yield self._update_group(label, group, result, is_open, taken=taken, answers=answers)

    def _reject(
        self, number: int, action: str, group: Group, existing: int, requests: frozenset[Heartbeat]
    ) -> Iterator[Outcome]:
        """Refuse the records of a request: AppendFails those of a heartbeat, LeaveAppendFails those of a leave."""
        leaves = action == "LeaveAppendFails"
        for heartbeat in deliverable(requests, self.config.reorder):
            if (heartbeat.epoch < 0) != leaves:
                continue
            for result in self.coordinator.get(group, heartbeat, existing):
                if result.group.hard != group.hard:
                    answers = [(number, Reply("COORDINATOR_NOT_AVAILABLE"))] if heartbeat.awaited and not leaves else []
                    updates = (self.environment.fault(action), *self._deliver(answers, (number, heartbeat)))
                    writes = ((GROUP, self.coordinator.revert(group, result.group)),)
                    yield Outcome((action, self.config.clients[number]), writes, updates, result.step)

    def _append_succeeds(self, log: Log) -> Iterator[Outcome]:
        if log.open:
            batch = log.open[0]
            updates = tuple(self._deliver(batch.answers))
            yield Outcome(("AppendSucceeds",), ((LOG, Log(batch.hard, log.open[1:])),), updates)

    def _fail_over(self, group: Group, log: Log) -> Iterator[Outcome]:
        answers = {(to, Reply("NOT_COORDINATOR")) for batch in log.open for to, _ in batch.answers}
        # The interval does not matter in an empty group. It may still run in a group with members that the fail-over
        # restores.
        clock = {False, self.config.interval} if self.coordinator.is_unassigned(group.hard) else {group.blocked}
        for survive in range(len(log.open) + 1):
            hard = surviving(log, survive)
            for loaded in sorted({self.coordinator.load(hard, blocked) for blocked in clock}):
                writes = ((GROUP, loaded), (LOG, Log(hard)))
                updates = (*self._deliver(answers), self.environment.fault("CoordinatorFailsOver"))
                yield Outcome(("CoordinatorFailsOver", str(survive)), writes, updates)

    def _fire(self, kind: str, group: Group, existing: int, is_open: bool, *held: str) -> Iterator[Outcome]:
        session = kind == "SessionTimerFires"
        armed = sorted(group.session_timers) if session else [name for name, _ in group.rebalance_timers]
        expire = self.coordinator.expire_session if session else self.coordinator.expire_rebalance
        for member in armed:
            fires = self.environment.firing(kind, member not in held)
            if fires is not None:
                action, fault = fires
                yield self._update_group((action, member), group, expire(group, member, existing), is_open, *fault)

    def _grow(self, existing: int) -> Iterator[Outcome]:
        if existing < len(self.config.partitions):
            yield Outcome(("TopicGrows",), (), (self.environment.fault("TopicGrows"),))


def _log(log: Log, kind: str, what: Any) -> Log:
    if kind == "store":
        return Log(what)
    if kind == "append":
        return log._replace(open=(*log.open, what))
    if kind == "wait":
        last = log.open[-1]
        return log._replace(open=(*log.open[:-1], last._replace(answers=last.answers | what)))
    return log._replace(open=forget_answers(log.open, what))


def _interval_passes(group: Group) -> Iterator[Outcome]:
    if group.blocked:
        yield Outcome(("IntervalPasses",), ((GROUP, group._replace(blocked=False)),))


def _get_replies(endpoint: int, name: str, before: Endpoint) -> Iterator[Outcome]:
    for reply in before.replies:
        after = before._replace(client=clients.get_reply(before.client, reply), replies=before.replies - {reply})
        yield Outcome(("ClientReceivesReply", name, reply.error), ((endpoint, after),))


def _reconcile(endpoint: Endpoint) -> Iterator[Endpoint]:
    if endpoint.client.reconciling:
        yield endpoint._replace(client=clients.after_callbacks(endpoint.client))
