"""The closed mixed group as the explorer sees it: components, actions, updates.

Components: 0 the coordinator's memory, 1 the log, 2 the counters (ids taken, faults left), then one endpoint per
client. ``coordinator`` has the coordinator's steps, ``client`` the client's. This module has the guards of the contract
and delivers the messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final

from fencepost.protocol.events import TimerKind

from ...explore.interface import Action, Label, Outcome, Permutation, Properties, State, Value, View
from ...offsets.checks import AnyGroup
from ...switches import variant_of
from .. import client as classic_clients
from .. import commits
from ..consumer.state import Heartbeat
from ..consumer.state import Reply as ConsumerReply
from ..consumer.translate import TOPIC_ID
from ..environment import Counters, Environment, expects_answer
from ..values import Client as ClassicClient
from ..values import JoinReply, JoinRequest, LeaveRequest, SyncReply, SyncRequest
from . import client as clients
from .config import MixedConfig
from .coordinator import Coordinator, Done, armed, is_due, needs_id
from .machine import FIRST_LOG, Log, Memory, compacted, forget, interval_passes, parked
from .state import Endpoint, Process, Request

GROUP, LOG, COUNTERS, FIRST_ENDPOINT = 0, 1, 2, 3

#: Timers, by action.
TIMERS: Final = {
    "JoinTimerFires": TimerKind.JOIN,
    "SyncTimerFires": TimerKind.SYNC,
    "SessionTimerFires": TimerKind.SESSION,
    "RebalanceTimerFires": TimerKind.CONSUMER_REBALANCE,
    "MemberJoinTimerFires": TimerKind.CONSUMER_JOIN,
    "MemberSyncTimerFires": TimerKind.CONSUMER_SYNC,
}
_ACTIONS: Final[dict[type, str]] = {
    JoinRequest: "CoordinatorHandlesJoin",
    SyncRequest: "CoordinatorHandlesSync",
    LeaveRequest: "CoordinatorHandlesLeaveGroup",
}


class MixedSystem:
    """``explore.System`` for a configuration. ``properties``: those to check."""

    def __init__(self, config: MixedConfig, properties: Properties | None = None) -> None:
        self.config = config
        self.coordinator = Coordinator(config)
        self.environment = Environment(config, COUNTERS)
        self.properties = properties or Properties()
        self._classic, self._consumer = config.classic, config.consumer
        count = len(config.clients)
        self.endpoints = range(FIRST_ENDPOINT, FIRST_ENDPOINT + count)
        self.components: Sequence[str] = ("group", "log", "counters", *config.clients)
        self.ids_used = FIRST_ENDPOINT + count
        first = self.ids_used + 1
        self.held, self.requests, self.classics, self.processes, self.parked = (
            range(first + at * count, first + (at + 1) * count) for at in range(5)
        )
        self.group = self.parked.stop
        self.views: Sequence[View] = (
            View(COUNTERS, lambda counters: counters.ids_used),
            *(View(endpoint, clients.held_ids) for endpoint in self.endpoints),
            *(View(endpoint, partial(clients.deliverable, config.reorder)) for endpoint in self.endpoints),
            *(View(endpoint, lambda endpoint: endpoint.classic) for endpoint in self.endpoints),
            *(View(endpoint, lambda endpoint: endpoint.process) for endpoint in self.endpoints),
            *(View(GROUP, partial(_parked, number)) for number in range(count)),
            View(GROUP, lambda memory: memory.group),
        )

    def initial(self) -> Iterable[State]:
        memory = self.coordinator.machine.load(FIRST_LOG)
        return [(memory, FIRST_LOG, Counters(0, self.environment.full), *(Endpoint() for _ in self.config.clients))]

    @property
    def symmetry(self) -> Sequence[Permutation]:
        """There is none: member ids are taken in the order in which clients come."""
        return ()

    # ---- updates ------------------------------------------------------------------------------------------------

    def update(self, component: int, value: Any, token: Any) -> Value | None:
        if component == GROUP:
            return forget(value, token)
        if component == LOG:
            return compacted(value, token)
        if component == COUNTERS:
            return self.environment.count(value, token)
        endpoint: Endpoint = value
        for kind, what in token:
            if kind == "take":
                endpoint = endpoint._replace(requests=endpoint.requests - {what})
            elif kind == "reply":
                endpoint = endpoint._replace(replies=endpoint.replies | {what})
            else:
                endpoint = clients.get_heartbeat_reply(endpoint, what)
        return endpoint

    def _outcome(
        self,
        label: Label,
        done: Done,
        *more: tuple[int, Value],
        tokens: dict[int, list[tuple[str, Any]]] | None = None,
    ) -> Outcome:
        """Make the outcome of a coordinator step: its records are replicated, its answers are in flight."""
        tokens = tokens or {}
        for to, reply in done.replies:
            tokens.setdefault(to, []).append(("reply", reply))
        updates: list[tuple[int, Value]] = [(FIRST_ENDPOINT + to, tuple(each)) for to, each in sorted(tokens.items())]
        if done.records:
            updates.append((LOG, done.records))
        return Outcome(label, ((GROUP, done.memory),), (*updates, *more), done.events)

    # ---- actions ------------------------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Sequence[Action]:
        found: list[Action] = []
        if self.config.interval:
            found.append(Action("IntervalPasses", (GROUP,), _interval_passes))
        for number in range(len(self.config.clients)):
            found += self._of_client(number)
        for name, kind in TIMERS.items():
            found.append(Action(name, (GROUP, *self.held), partial(self._fire, name, kind)))
        if "CoordinatorFailsOver" in self.config.allowed:
            found.append(Action("CoordinatorFailsOver", (GROUP, LOG), self._fail_over))
        return tuple(found)

    def _of_client(self, number: int) -> Iterator[Action]:
        config, endpoint, name = self.config, self.endpoints[number], self.config.clients[number]

        def own(action: str, step: Callable[[Endpoint], Iterable[Endpoint | None]], *more: tuple[int, Value]) -> Action:
            """Make an action of the client, or of the network on the client's messages."""

            def outcomes(before: Endpoint) -> Iterator[Outcome]:
                for after in step(before):
                    if after is not None:
                        yield Outcome((action, name), ((endpoint, after),), more)

            return Action(action, (endpoint,), outcomes)

        yield own("ClientSendsJoin", lambda before: [clients.send_join(self._classic, before)])
        yield Action("ClientReceivesReply", (endpoint,), partial(self._get_replies, number))
        yield own("ClientReconciles", clients.reconcile)
        yield Action("ClientHeartbeats", (GROUP, self.classics[number]), partial(self._heartbeat, number))
        yield Action("ClientSendsHeartbeat", (GROUP, endpoint), partial(self._send_heartbeat, number))
        yield Action("ClientTimesOut", (self.parked[number], endpoint), partial(self._time_out, number))
        getting = (GROUP, self.ids_used, self.requests[number])
        yield Action("CoordinatorHandlesRequest", getting, partial(self._get_requests, number))
        if "ClientStarts" in config.allowed:
            yield Action("ClientStarts", (self.ids_used, endpoint), partial(self._start, number))
        for action in clients.STOPS:
            if action in config.allowed:
                yield Action(action, (self.parked[number], endpoint), partial(self._stop, number, action))
        if commits.COMMITS in config.allowed:
            yield Action(commits.COMMITS, (self.group, self.processes[number]), partial(self._commit, number))
        for action, step, fault in self.environment.network():
            yield own(action, step, fault)

    # ---- clients ------------------------------------------------------------------------------------------------

    def _get_replies(self, number: int, before: Endpoint) -> Iterator[Outcome]:
        for reply in before.replies:
            action = "ClientReceivesReply"
            if isinstance(reply, JoinReply | SyncReply):
                action = "ClientReceivesJoinReply" if isinstance(reply, JoinReply) else "ClientReceivesSyncReply"
            label = (action, self.config.clients[number], reply.error)
            for after in clients.get_reply(self._classic, before, reply):
                yield Outcome(label, ((self.endpoints[number], after),))

    def _heartbeat(self, number: int, memory: Memory, client: ClassicClient) -> Iterator[Outcome]:
        """Yield a whole heartbeat of the classic protocol, if it changes anything."""
        if client.state != "stable":
            return
        done, error = self.coordinator.heartbeat(memory, number, client)
        if error != "NONE" or done.memory != memory:
            label = ("ClientHeartbeats", self.config.clients[number], error)
            yield self._outcome(label, done, tokens={number: [("heartbeat", error)]})

    def _send_heartbeat(self, number: int, memory: Memory, endpoint: Endpoint) -> Iterator[Outcome]:
        heartbeat = clients.next_heartbeat(self._consumer, endpoint)
        if heartbeat is not None and self._has_effect(number, memory, endpoint, heartbeat):
            label = ("ClientSendsHeartbeat", self.config.clients[number])
            yield Outcome(label, ((self.endpoints[number], clients.send_heartbeat(endpoint, heartbeat)),))

    def _has_effect(self, number: int, memory: Memory, endpoint: Endpoint, heartbeat: Heartbeat) -> bool:
        """Return whether the heartbeat, handled now, would bring news or change anything. A join whose answer is
        only an error to retry would do neither (N-ERR-03)."""
        for done in self.coordinator.get(memory, number, heartbeat, ""):
            answer = dict(done.replies)[number]
            if clients.has_nothing_to_report(endpoint.consumer):
                if answer != ConsumerReply("NONE", endpoint.consumer.epoch) or done.memory.group != memory.group:
                    return True
            elif answer.error != "COORDINATOR_LOAD_IN_PROGRESS" or len(done.replies) > 1 or done.memory != memory:
                return True
        return False

    def _start(self, number: int, ids_used: int, endpoint: Endpoint) -> Iterator[Outcome]:
        name, config = self.config.clients[number], self.config
        if not clients.is_down(endpoint):
            return
        speaks = config.speaks(number)
        if "classic" in speaks:
            yield Outcome(
                ("ClientStarts", name, "classic"), ((self.endpoints[number], clients.start_classic(endpoint)),)
            )
        if "consumer" in speaks and ids_used < len(config.member_ids):
            after = clients.start_consumer(endpoint, config.member_ids[ids_used], config.instance(number))
            yield Outcome(("ClientStarts", name, "consumer"), ((self.endpoints[number], after),), ((COUNTERS, "id"),))

    def _time_out(self, number: int, is_parked: bool, endpoint: Endpoint) -> Iterator[Outcome]:
        if clients.waits(endpoint) and not expects_answer(endpoint, is_parked):
            yield from self._stopped(number, "ClientTimesOut", is_parked, clients.give_up(endpoint))

    def _stop(self, number: int, action: str, is_parked: bool, endpoint: Endpoint) -> Iterator[Outcome]:
        after = clients.STOPS[action](endpoint, self.config.instance(number))
        return self._stopped(number, action, is_parked, after, self.environment.fault(action))

    def _stopped(
        self, number: int, action: str, is_parked: bool, after: Endpoint | None, *more: tuple[int, Value]
    ) -> Iterator[Outcome]:
        if after is not None:
            forgotten = ((GROUP, number),) if is_parked else ()
            yield Outcome(
                (action, self.config.clients[number]), ((self.endpoints[number], after),), (*forgotten, *more)
            )

    def may_join(self, memory: Memory, number: int, client: ClassicClient) -> bool:
        """Return whether the coordinator would accept the client's JoinGroup, in flight or sent again."""
        request = classic_clients.join_request(self._classic, client)
        steps = self.coordinator.get(memory, number, request, "")
        return all(reply.error == "NONE" for done in steps for to, reply in done.replies if to == number)

    def sends_commits(self, process: Process) -> bool:
        """Return whether the client would send a commit: with the generation or epoch of its assignment, or not at all
        (K-OFF-02, N-CMT-01)."""
        if process.runs_classic:
            return classic_clients.has_its_generation(process.classic)
        return process.runs_consumer and process.consumer.epoch > 0

    def commit_is_accepted(self, group: AnyGroup, number: int, process: Process, partition: str) -> bool:
        """Return what the model's check of commits decides for a commit of the client for the partition, sent now."""
        epoch = process.classic.generation if process.runs_classic else process.consumer.epoch
        place = (TOPIC_ID, self.config.partitions.index(partition))
        by = commits.committer(process.member_id, self.config.instance(number), epoch, place)
        return commits.is_accepted(variant_of(self.config.profile), group, by)

    def _commit(self, number: int, group: AnyGroup, process: Process) -> Iterator[Outcome]:
        if self.sends_commits(process):
            taken = (self.commit_is_accepted(group, number, process, partition) for partition in process.owned)
            yield from commits.outcomes(self.config.clients[number], taken)

    # ---- coordinator --------------------------------------------------------------------------------------------

    def _get_requests(
        self, number: int, memory: Memory, ids_used: int, requests: tuple[Request, ...]
    ) -> Iterator[Outcome]:
        ids = self.config.member_ids
        for request in requests:
            new_id = ""
            more: tuple[tuple[int, Value], ...] = ()
            if isinstance(request, JoinRequest) and needs_id(self.config, memory, request):
                if ids_used == len(ids):
                    continue
                new_id, more = ids[ids_used], ((COUNTERS, "id"),)
            label = (_action_of(request), self.config.clients[number], *(() if request.awaited else ("late",)))
            for done in self.coordinator.get(memory, number, request, new_id):
                yield self._outcome(label, done, *more, tokens={number: [("take", request)]})

    def _fire(self, action: str, kind: TimerKind, memory: Memory, *held: frozenset[str]) -> Iterator[Outcome]:
        for timer, name in armed(memory, kind):
            fires = self.environment.firing(action, is_due(memory, timer, name, frozenset[str]().union(*held)))
            if fires is not None:
                label = (fires[0], *([name] if name else []))
                for done in self.coordinator.fire(memory, timer, name):
                    yield self._outcome(label, done, *fires[1])

    def _fail_over(self, memory: Memory, log: Log) -> Iterator[Outcome]:
        fault = self.environment.fault("CoordinatorFailsOver")
        yield self._outcome(("CoordinatorFailsOver",), self.coordinator.fail_over(memory, log), fault)


def _action_of(request: Request) -> str:
    if isinstance(request, Heartbeat):
        return "CoordinatorHandlesLeave" if request.epoch < 0 else "CoordinatorHandlesHeartbeat"
    return _ACTIONS[type(request)]


def _parked(number: int, memory: Memory) -> bool:
    return parked(memory, number)


def _interval_passes(memory: Memory) -> Iterator[Outcome]:
    after = interval_passes(memory)
    if after is not None:
        yield Outcome(("IntervalPasses",), ((GROUP, after),))
