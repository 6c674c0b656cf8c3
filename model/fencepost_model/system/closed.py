"""The closed system as the explorer sees it: components, actions, updates.

Components: 0 the group machine's state, 1 the log (last replicated record, records not yet replicated), 2 the counters
(member ids handed out, faults left), then one endpoint per client. An action that needs all clients only to know which
member ids are still held reads a *view* of each endpoint instead of the endpoint. So it too depends on few values.

``Coordinator`` computes each action's effect on the group, ``client`` each effect on a client. This module has the
guards of the contract and delivers the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from fencepost.protocol.records import Record

from ..classic import Timer
from ..classic.group import GroupState
from ..classic.state import JOIN_TIMER, SYNC_TIMER
from ..explore.interface import Action, Label, Outcome, Permutation, Properties, State, Value, View
from ..switches import variant_of
from . import client as clients
from . import commits
from .config import Config
from .coordinator import FIRST_RECORD, Coordinator, Result, existing, forget, knows, parked
from .environment import Counters, Environment, expects_answer
from .symmetry import renamings
from .values import Client, Endpoint, JoinReply, JoinRequest, LeaveRequest, Request, SyncReply, SyncRequest

GROUP, LOG, COUNTERS, FIRST_ENDPOINT = 0, 1, 2, 3


class Log(NamedTuple):
    """The last replicated record, and those appended after it."""

    replicated: Record = FIRST_RECORD
    open: tuple[Record, ...] = ()


def surviving(log: Log, survive: int) -> Record:
    """Return what the log holds if so many open records survive (F-LOAD-01)."""
    return log.open[survive - 1] if survive else log.replicated


class Shape(NamedTuple):
    """The values that fencing reads: state, generation, and the members with their instance ids."""

    state: str
    generation: int
    members: frozenset[tuple[str, str]]


def shape(state: GroupState) -> Shape:
    group = existing(state)
    return Shape(group.state, group.generation, frozenset((m.member_id, m.instance or "") for m in group.members))


def client_leases(endpoint: Endpoint) -> frozenset[tuple[str, int, frozenset[str]]]:
    """Return the assignments on their way to the client, and the one it believes in: (member id, generation,
    partitions)."""
    member = endpoint.client
    leases = {
        (member.member_id, member.generation, reply.assignment)
        for reply in endpoint.replies
        if isinstance(reply, SyncReply) and reply.assignment
    }
    if member.owned:
        leases.add((member.member_id, member.owned_generation, member.owned))
    return frozenset(leases)


STOPS: Final = {"ClientCrashes": clients.crash, "ClientLeaves": clients.leave, "ClientGivesUp": clients.give_up}
UNUSED = "?"  # stands for the next member id when all are used


class ClosedSystem:
    """``explore.System`` for a configuration. ``properties``: those to check."""

    def __init__(self, config: Config, properties: Properties | None = None) -> None:
        self.config = config
        self.coordinator = Coordinator(config)
        self.environment = Environment(config, COUNTERS)
        self.properties = properties or Properties()
        count = len(config.clients)
        self.endpoints = range(FIRST_ENDPOINT, FIRST_ENDPOINT + count)
        self.components: Sequence[str] = ("group", "log", "counters", *config.clients)
        first = FIRST_ENDPOINT + count
        self.ids_used = first
        self.held = range(first + 1, first + 1 + count)
        self.requests = range(first + 1 + count, first + 1 + 2 * count)
        self.calm = first + 1 + 2 * count
        self.shape = self.calm + 1
        self.record = self.calm + 2
        self.members = range(self.calm + 3, self.calm + 3 + count)
        self.leases = range(self.calm + 3 + count, self.calm + 3 + 2 * count)
        self.parked = range(self.calm + 3 + 2 * count, self.calm + 3 + 3 * count)
        self.syncs = range(self.calm + 3 + 3 * count, self.calm + 3 + 4 * count)
        self.may_fail = self.calm + 3 + 4 * count
        self.views: Sequence[View] = (
            View(COUNTERS, lambda counters: counters.ids_used),
            *(View(endpoint, clients.held_ids) for endpoint in self.endpoints),
            *(View(endpoint, partial(clients.deliverable, config)) for endpoint in self.endpoints),
            View(GROUP, self._log_is_ready),
            View(GROUP, shape),
            View(LOG, lambda log: log.replicated),
            *(View(endpoint, lambda endpoint: endpoint.client) for endpoint in self.endpoints),
            *(View(endpoint, client_leases) for endpoint in self.endpoints),
            *(View(GROUP, partial(_parked, number)) for number in range(count)),
            *(View(endpoint, partial(clients.deliverable_syncs, config)) for endpoint in self.endpoints),
            View(COUNTERS, lambda counters: any(counters.faults_left)),
        )

    def initial(self) -> Iterable[State]:
        group = self.coordinator.load(FIRST_RECORD)
        return [(group, Log(), Counters(0, self.environment.full), *(Endpoint() for _ in self.config.clients))]

    @cached_property
    def symmetry(self) -> Sequence[Permutation]:
        return tuple(renamings(self.config, GROUP, LOG, FIRST_ENDPOINT))

    # ---- updates ------------------------------------------------------------------------------------------------

    def update(self, component: int, value: Any, token: Any) -> Value | None:
        if component == GROUP:
            return forget(value, token)
        if component == COUNTERS:
            return self.environment.count(value, token)
        if component == LOG:
            return (
                Log(value.open[0], value.open[1:])
                if token == "replicate"
                else Log(value.replicated, value.open + token)
            )
        for kind, what in token:
            if kind == "take":
                value = value._replace(requests=value.requests - {what})
            elif kind == "reply":
                value = value._replace(replies=value.replies | {what})
            else:
                value = value._replace(client=clients.get_heartbeat_reply(value.client, what))
        return value  # type: ignore[no-any-return]

    def _effects(
        self, result: Result, endpoint_tokens: dict[int, list[tuple[str, Any]]] | None = None
    ) -> tuple[tuple[tuple[int, Value], ...], tuple[tuple[int, Value], ...]]:
        """Return the writes and updates of a coordinator step."""
        tokens = endpoint_tokens or {}
        for to, reply in result.replies:
            tokens.setdefault(to, []).append(("reply", reply))
        updates: list[tuple[int, Value]] = [(FIRST_ENDPOINT + to, tuple(each)) for to, each in sorted(tokens.items())]
        if result.records:
            updates.append((LOG, result.records))
        return ((GROUP, result.group),), tuple(updates)

    def _outcome(
        self,
        label: Label,
        result: Result,
        *more: tuple[int, Value],
        tokens: dict[int, list[tuple[str, Any]]] | None = None,
    ) -> Outcome:
        writes, updates = self._effects(result, tokens)
        return Outcome(label, writes, (*updates, *more), result.stimuli)

    # ---- actions ------------------------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Sequence[Action]:
        allowed = self.config.allowed
        found: list[Action] = [Action("AppendSucceeds", (GROUP,), self._append_succeeds)]
        numbers = range(len(self.config.clients))
        for number in numbers:
            found += self._of_client(number)
        found += self._timers("JoinTimerFires", self._join_timer)
        found += self._timers("SyncTimerFires", self._sync_timer)
        found += self._timers("SessionTimerFires", self._session_timers)
        if "OperatorRemovesMember" in allowed:
            found.append(self._fault("OperatorRemovesMember", (GROUP,), self._remove_member))
        if "CoordinatorFailsOver" in allowed:
            found.append(self._fault("CoordinatorFailsOver", (GROUP, LOG), self._fail_over))
        return tuple(found)

    def _fault(self, name: str, reads: tuple[int, ...], step: Callable[..., Iterable[Outcome]]) -> Action:
        """Make a fault that drives the group machine. It is evaluated only while a fault is left: most groups occur
        after the last."""

        def outcomes(may_fail: bool, *values: Any) -> Iterable[Outcome]:
            return step(*values) if may_fail else ()

        return Action(name, (self.may_fail, *reads), outcomes)

    def _log_is_ready(self, group: GroupState) -> bool:
        return self.config.slow_appends or not group.undurable

    def _of_client(self, number: int) -> Iterator[Action]:
        endpoint, name = self.endpoints[number], self.config.clients[number]
        allowed = self.config.allowed

        def alone(
            step: Callable[[Endpoint], Iterable[tuple[Label, Endpoint]]], *more: tuple[int, Value]
        ) -> Callable[..., Any]:
            """Make an action of the client alone, which the group only has to allow."""

            def outcomes(group: bool, before: Endpoint) -> Iterator[Outcome]:
                if group:
                    for label, after in step(before):
                        yield Outcome(label, ((endpoint, after),), more)

            return outcomes

        def own(
            action: str, step: Callable[[Endpoint], Iterable[tuple[Label, Endpoint]]], *more: tuple[int, Value]
        ) -> Action:
            return Action(action, (self.calm, endpoint), alone(step, *more))

        yield own(
            "ClientSendsJoin", lambda before: _one(("ClientSendsJoin", name), clients.send_join(self.config, before))
        )
        yield own("ClientReceivesReply", partial(self._get_replies, name))
        reads = (GROUP, self.ids_used, self.requests[number])
        yield Action("CoordinatorHandlesRequest", reads, partial(self._get_requests, number))
        yield Action("ClientHeartbeats", (GROUP, self.members[number]), partial(self._heartbeat, number))
        waits = (self.calm, self.parked[number], endpoint)
        yield Action("ClientTimesOut", waits, partial(self._stop, number, "ClientTimesOut"))
        for action in ("ClientCrashes", "ClientLeaves", "ClientGivesUp"):
            if action in allowed and not (action == "ClientLeaves" and self.config.instance(number)):
                yield Action(action, waits, partial(self._stop, number, action))
        if "ClientStarts" in allowed:
            yield own("ClientStarts", lambda before: _one(("ClientStarts", name), _start(before)))
        if "ClientRequestsRejoin" in allowed:
            rejoins = "ClientRequestsRejoin"
            fault = self.environment.fault(rejoins)
            yield own(rejoins, lambda before: _one((rejoins, name), _rejoin(before)), fault)
        for action, lose, fault in self.environment.network():
            yield own(action, partial(_each, (action, name), lose), fault)
        if commits.COMMITS in allowed:
            yield Action(commits.COMMITS, (GROUP, self.members[number]), partial(self._commit, number))
        if "AppendFails" in allowed:
            yield self._fault("AppendFails", (GROUP, self.syncs[number]), partial(self._append_fails, number))

    def _get_replies(self, name: str, before: Endpoint) -> Iterator[tuple[Label, Endpoint]]:
        for reply in before.replies:
            action = "ClientReceivesJoinReply" if isinstance(reply, JoinReply) else "ClientReceivesSyncReply"
            for after in clients.get_reply(self.config, before, reply):
                yield (action, name, reply.error), after

    def _get_requests(
        self, number: int, group: GroupState, ids_used: int, requests: tuple[Request, ...]
    ) -> Iterator[Outcome]:
        if not self._log_is_ready(group):
            return
        ids = (*self.config.member_ids, UNUSED)
        for request in requests:
            has_no_id = isinstance(request, JoinRequest) and not request.member_id
            new_id = ids[ids_used] if has_no_id else ""
            result = self.coordinator.get(group, number, request, new_id)
            made = has_no_id and knows(result.group, new_id)
            if made and new_id == UNUSED:
                continue
            kind = (
                "Join" if isinstance(request, JoinRequest) else "Sync" if isinstance(request, SyncRequest) else "Leave"
            )
            label = (f"CoordinatorHandles{kind}", self.config.clients[number], *([] if request.awaited else ["late"]))
            more = ((COUNTERS, "id"),) if made else ()
            yield self._outcome(label, result, *more, tokens={number: [("take", request)]})

    def _heartbeat(self, number: int, group: GroupState, member: Client) -> Iterator[Outcome]:
        if member.state == "stable" and not group.undurable:
            result = self.coordinator.heartbeat(group, number, member)
            label = ("ClientHeartbeats", self.config.clients[number], result.heartbeat or "")
            yield self._outcome(label, result, tokens={number: [("heartbeat", result.heartbeat)]})

    def commit_is_accepted(self, group: GroupState, number: int, member: Client) -> bool:
        """Return what the model's check of commits decides for a commit of the client, sent now."""
        by = commits.committer(member.member_id, self.config.instance(number), member.generation)
        return commits.is_accepted(variant_of(self.config.profile), existing(group), by)

    def _commit(self, number: int, group: GroupState, member: Client) -> Iterator[Outcome]:
        if member.owned and clients.has_its_generation(member):
            yield from commits.outcomes(self.config.clients[number], [self.commit_is_accepted(group, number, member)])

    def _stop(self, number: int, action: str, calm: bool, is_parked: bool, endpoint: Endpoint) -> Iterator[Outcome]:
        if not calm:
            return
        after: Endpoint | None = None
        if action != "ClientTimesOut":
            after = STOPS[action](endpoint)
        elif not expects_answer(endpoint, is_parked):
            after = clients.give_up(endpoint)
        if after is not None:
            updates: list[tuple[int, Value]] = [] if action == "ClientTimesOut" else [self.environment.fault(action)]
            if is_parked:
                updates.append((GROUP, number))
            label = (action, self.config.clients[number])
            yield Outcome(label, ((self.endpoints[number], after),), tuple(updates))

    def _append_succeeds(self, group: GroupState) -> Iterator[Outcome]:
        if group.undurable:
            yield self._outcome(("AppendSucceeds",), self.coordinator.replicate(group), (LOG, "replicate"))

    def _append_fails(self, number: int, group: GroupState, syncs: tuple[SyncRequest, ...]) -> Iterator[Outcome]:
        if not self._log_is_ready(group):
            return
        for request in syncs:
            result = self.coordinator.reject_append(group, number, request)
            if result is not None:
                label = ("AppendFails", self.config.clients[number])
                fault = self.environment.fault("AppendFails")
                yield self._outcome(label, result, fault, tokens={number: [("take", request)]})

    def _remove_member(self, group: GroupState) -> Iterator[Outcome]:
        if self._log_is_ready(group):
            for member in existing(group).members:
                leave = LeaveRequest("LeaveGroup", False, member.member_id)
                result = self.coordinator.get(group, 0, leave, "")
                label = ("OperatorRemovesMember", member.member_id)
                yield self._outcome(label, result, self.environment.fault("OperatorRemovesMember"))

    def _fail_over(self, group: GroupState, log: Log) -> Iterator[Outcome]:
        fault = self.environment.fault("CoordinatorFailsOver")
        for survive in range(len(log.open) + 1):
            record = surviving(log, survive)
            result = self.coordinator.fail_over(group, record)
            writes, updates = self._effects(result)
            label = ("CoordinatorFailsOver", str(survive))
            yield Outcome(label, (*writes, (LOG, Log(record))), (*updates, fault), result.stimuli)

    # ---- timers -------------------------------------------------------------------------------------------------

    def _timers(
        self, name: str, timers: Callable[[GroupState, frozenset[str]], Iterator[tuple[Timer, bool]]]
    ) -> Iterator[Action]:
        """Make the action of a timer that is due and, where allowed, of one that fires early."""

        def outcomes(may_fail: bool, group: GroupState, *held: frozenset[str]) -> Iterator[Outcome]:
            if not self._log_is_ready(group):
                return
            for timer, is_due in timers(group, _alive(group, held)):
                fires = self.environment.firing(name, is_due) if is_due or may_fail else None
                if fires is not None:
                    action, fault = fires
                    label = (action, *([timer.member_id] if timer.member_id else []))
                    yield self._outcome(label, self.coordinator.fire(group, timer), *fault)

        yield Action(name, (self.may_fail, GROUP, *self.held), outcomes)

    def _join_timer(self, state: GroupState, alive: frozenset[str]) -> Iterator[tuple[Timer, bool]]:
        if JOIN_TIMER in state.timers:
            group = existing(state)
            missing = {member.member_id for member in group.members if member.join is None} | group.pending_join
            yield JOIN_TIMER, state.delay is not None or not missing & alive

    def _sync_timer(self, state: GroupState, alive: frozenset[str]) -> Iterator[tuple[Timer, bool]]:
        if SYNC_TIMER in state.timers:
            yield SYNC_TIMER, not existing(state).pending_sync & alive

    def _session_timers(self, state: GroupState, alive: frozenset[str]) -> Iterator[tuple[Timer, bool]]:
        for timer in sorted(state.timers):
            if timer.kind == "session":
                yield timer, timer.member_id not in alive


def _parked(number: int, group: GroupState) -> bool:
    return parked(group, number)


def _alive(state: GroupState, held: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the ids that are not abandoned: held by a client or a reply, or parked for a client that still waits."""
    waiting = {m.member_id for m in existing(state).members if (m.join or 0) > 0 or (m.sync or 0) > 0}
    return frozenset(waiting).union(*held)


def _one(label: Label, after: Endpoint | None) -> Iterable[tuple[Label, Endpoint]]:
    return () if after is None else ((label, after),)


def _each(
    label: Label, step: Callable[[Endpoint], Iterable[Endpoint]], endpoint: Endpoint
) -> Iterator[tuple[Label, Endpoint]]:
    return ((label, after) for after in step(endpoint))


def _start(endpoint: Endpoint) -> Endpoint | None:
    return endpoint._replace(client=clients.UNJOINED) if endpoint.client.state == "down" else None


def _rejoin(endpoint: Endpoint) -> Endpoint | None:
    return (
        endpoint._replace(client=endpoint.client._replace(state="unjoined"))
        if endpoint.client.state == "stable"
        else None
    )
