"""Runs a plan: members, coordinator, network and time in one loop, with every event checked.

Time is virtual. The network may lose a request or its answer, deliver a request twice, and lets every message take its
own time, so that later ones overtake earlier ones. The log may refuse an append, or take long. The coordinator may move
to another broker, which loads what was replicated and, perhaps, a little more (F-LOAD-01). When the chaos is over the
environment is quiet, and the group must settle (12.5).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from fencepost.member.consumer import ConsumerMember
from fencepost.member.events import (
    Answered,
    CloseOption,
    CoordinatorFound,
    EnforceRebalance,
    LookupFailed,
    MetadataChanged,
    RequestLost,
    Send,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    LoadStarted,
    Request,
    TaskDone,
    TaskKey,
    TimerFired,
    Topic,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    RequestBody,
    SyncGroupRequest,
)

from ..generate.world import APPEND_ERRORS
from ..targets.base import Observation
from .broken import Broken
from .consumer_host import ConsumerHost
from .consumer_rules import check_holders
from .host import AnyHost, Host
from .liveness import Settling
from .member_rules import Holder, check_owners
from .plan import Disruption, Fault, HostPlan, NetworkPlan, Plan
from .session import WatchedSession

QUIET = NetworkPlan(0.0, 0.0, 1, 0.0, 0.0, 0.0)
#: API versions of clients that know KIP-814, and of older ones.
_NEW = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    ConsumerGroupHeartbeatRequest: 1,
}
_OLD = {JoinGroupRequest: 5, SyncGroupRequest: 3, HeartbeatRequest: 3, LeaveGroupRequest: 3}
LAST_LINES = 40
#: more turns than this in one millisecond are a loop: no timer of a client is that short
MOST_AT_ONCE = 10_000


class RandomChoices:
    """Member ids in order, every other choice drawn."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._count = 0

    def member_id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}-{self._count}"

    def leader(self, group_id: str, candidates: object) -> str:
        return self._rng.choice(list(candidates))  # type: ignore[call-overload,no-any-return]

    def protocol(self, group_id: str, tied: object) -> str:
        return self._rng.choice(list(tied))  # type: ignore[call-overload,no-any-return]

    def uuid(self) -> str:
        return self.member_id("uuid")

    def assignor(self, group_id: str, tied: Sequence[str]) -> str:
        return self._rng.choice(tied)

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return self._rng.sample(keys, len(keys))

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids


@dataclass(frozen=True, slots=True)
class Report:
    """How a plan went. ``broken``: the first property that did not hold; ``last``: what happened before, line by line.

    ``settled_ms``: how long the slowest group took to settle once the environment was quiet."""

    plan: Plan
    events: int
    member_steps: int
    generations: int
    settled_ms: int
    broken: Broken | None = None
    last: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"seed {self.plan.seed}: {self.events} events, {self.member_steps} member steps"
        if self.broken is None:
            return f"{head}, settled after {self.settled_ms} ms"
        schedule = "\n".join(map(str, self.plan.disruptions)) or "  (no disruption but the network's)"
        lines = "\n".join(self.last)
        return f"{head}\nbroken: {self.broken}\nschedule:\n{schedule}\nlast events:\n{lines}"


def simulate(plan: Plan) -> Report:
    """Run the plan to its end, or to the first property that does not hold."""
    return Simulation(plan).run()


class Simulation:
    """One run. ``now`` is virtual time in ms."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.now = 0
        self.network = plan.network
        self._rng = Random(f"run {plan.seed}")
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0
        self._lines: deque[str] = deque(maxlen=LAST_LINES)
        self._at_once = 0
        self._steps = 0
        self.topics = {name: Topic(name, name.encode().ljust(16, b"\0"), size) for name, size in plan.topics}
        self.core = WatchedSession(plan.settings, plan.profile, RandomChoices(Random(f"choices {plan.seed}")))
        self.events = 0
        self.tenure = 0
        self.active = False
        self._replicated = 0
        self._askers: dict[int, tuple[AnyHost, int, int]] = {}
        self._heard: set[tuple[str, int, int]] = set()
        self._next_request = 0
        self._image = 0
        self.hosts = [self._host(host) for host in plan.hosts]
        self._settling = Settling(self)

    # --- the loop ---

    def run(self) -> Report:
        broken: Broken | None = None
        try:
            self._load(0)
            self._publish_topics()
            for host in self.hosts:
                self.later(host.plan.start_ms, host.start)
            for disruption in self.plan.disruptions:
                self.later(disruption.at_ms, lambda each=disruption: self._disrupt(each))  # type: ignore[misc]
            self._until(self.plan.chaos_ms)
            self._calm_down()
            self._settling.run(self._until)
        except Broken as found:
            broken = found
        generations = sum(group.generation_id for group in self.core.groups.values())
        generations += sum(group.group_epoch for group in self.core.consumer_groups.values())
        return Report(
            self.plan,
            self.events,
            self._steps,
            generations,
            self._settling.settled_ms,
            broken,
            tuple(self._lines) if broken else (),
        )

    def _host(self, plan: HostPlan) -> AnyHost:
        return ConsumerHost(plan, self) if plan.is_consumer else Host(plan, self)

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + delay_ms, self._count, what))

    def _until(self, end: int) -> None:
        """Let everything happen that is due before ``end``."""
        while True:
            timers = self.core.armed
            first = min(timers.values(), default=end)
            if self._agenda and self._agenda[0][0] <= first:
                at, _, what = self._agenda[0]
                if at >= end:
                    break
                heapq.heappop(self._agenda)
                self._at_once = 0 if at > self.now else self._at_once + 1
                if self._at_once > MOST_AT_ONCE:
                    raise Broken("LIV-12", f"somebody goes round and round: {MOST_AT_ONCE} turns in one millisecond")
                self.now = max(self.now, at)
                what()
            elif first < end:
                self.now = max(self.now, first)
                due = sorted((key for key, at in timers.items() if at <= self.now), key=str)
                self.feed(TimerFired(self.now, self._rng.choice(due)))
            else:
                break
        self.now = end

    def note(self, text: str) -> None:
        self._steps += 1
        self._lines.append(f"{self.now:>7} ms  {text}")

    def rival(self, host: AnyHost) -> bool:
        """Does another process run under the host's instance id?"""
        instance = host.plan.settings.group_instance_id
        return instance is not None and any(
            each.running and each is not host and each.plan.settings.group_instance_id == instance
            for each in self.hosts
        )

    def jitter(self) -> float:
        return self._rng.uniform(0.8, 1.2)

    # --- the coordinator ---

    def feed(self, event: Event) -> None:
        self.events += 1
        seen = self.core.feed(event)
        self._note_event(event, seen)
        for reply in seen.replies:
            asker = self._askers.pop(reply.request_id, None)
            if asker is not None:
                host, process, number = asker
                if isinstance(reply.body, JoinGroupResponse):
                    tenure = self.tenure
                    self._answer(host, process, Answered(self.now, number, reply.body), tenure)
                else:
                    self._answer(host, process, Answered(self.now, number, reply.body), None)
        if seen.records:
            self._append()
        for name, group in seen.consumer_groups.items():
            if group is not None:
                check_holders(group, self._consumers(name))
        for key in seen.tasks:
            self._run_task(key)

    def _run_task(self, key: TaskKey) -> None:
        tenure = self.tenure

        def done() -> None:
            if tenure == self.tenure and self.active:
                self.feed(TaskDone(self.now, key))

        self.later(self._delay(), done)

    def _consumers(self, group: str) -> dict[str, ConsumerMember]:
        """The running members of a consumer group."""
        return {
            host.plan.name: host.member
            for host in self.hosts
            if isinstance(host, ConsumerHost) and host.running and host.plan.settings.group_id == group
        }

    def _publish_topics(self) -> None:
        """Only consumer groups look at the topics."""
        if any(host.plan.is_consumer for host in self.hosts):
            self._image += 1
            self.feed(TopicsChanged(self.now, tuple(self.topics.values()), self._image))

    def _append(self) -> None:
        draw, network, tenure, end = self._rng.random(), self.network, self.tenure, len(self.core.log)
        if draw < network.append_fails:
            self.feed(AppendFailed(self.now, self._rng.choice(APPEND_ERRORS)))
            return
        draw -= network.append_fails
        if draw < network.append_slow:
            delay = self.plan.settings.offsets_commit_timeout_ms + self._rng.randint(1, 3_000)
        elif draw < network.append_slow + network.append_waits:
            delay = self._rng.randint(1, 2 * network.delay_ms)
        else:
            self._replicate(tenure, end)
            return
        self.later(delay, lambda: self._replicate(tenure, end))

    def _replicate(self, tenure: int, offset: int) -> None:
        if tenure == self.tenure and self.active and self._replicated < offset <= len(self.core.log):
            self._replicated = offset
            self.feed(Appended(self.now, offset))

    def _load(self, kept: int) -> None:
        """The next broker has the partition, with the first ``kept`` records."""
        self.tenure += 1
        self.active = True
        self._replicated = kept
        if self._rng.random() < 0.5:
            self.feed(LoadStarted(self.now, self.tenure))
        self.feed(Load(self.now, self.tenure, tuple(self.core.log[:kept])))

    def fail_over(self, gap_ms: int) -> None:
        """Lose the partition and win it again later; that the groups then go on (LIV-09) is for ``liveness`` to see."""
        if not self.active:
            return
        self.active = False
        kept = self._rng.randint(self._replicated, len(self.core.log))
        self.feed(Unload(self.now, None))
        self.later(gap_ms, lambda: self._load(kept))

    # --- the network ---

    def send(self, host: AnyHost, command: Send) -> None:
        body, process = command.body, host.process
        if self._rng.random() < self.network.lose:
            lost = RequestLost(self.now, command.request_id)
            self.later(self._rng.randint(1, 2_000), lambda: host.receive(process, lost))
            return
        self.later(self._delay(), lambda: self._arrive(host, process, command.request_id, body))
        if self._rng.random() < self.network.duplicate:
            self.later(2 * self._delay(), lambda: self._arrive(host, process, command.request_id, body))

    def _arrive(self, host: AnyHost, process: int, number: int, body: RequestBody) -> None:
        version = (_OLD if host.plan.old else _NEW)[type(body)]
        if host.plan.old and isinstance(body, SyncGroupRequest):
            body = replace(body, protocol_type=None, protocol_name=None)  # fields of v5 (G-WIRE-02)
        self._next_request += 1
        copy = (host.plan.name, process, number) in self._heard
        if isinstance(host, ConsumerHost):
            # An answer tells an assignment once: the one to a copy would hide it, and TCP makes no copies.
            self._heard.add((host.plan.name, process, number))
        if not copy:
            self._askers[self._next_request] = (host, process, number)
        self.feed(Request(self.now, self._next_request, version, host.plan.name, "/host", body))

    def _answer(self, host: AnyHost, process: int, answer: Answered, tenure: int | None) -> None:
        def deliver() -> None:
            if tenure is not None and process == host.process:
                host.tenure = tenure
            host.receive(process, replace(answer, at_ms=self.now))

        if self._rng.random() < self.network.lose:
            lost = RequestLost(self.now, answer.request_id)
            self.later(self._rng.randint(1, 2_000), lambda: host.receive(process, lost))
        else:
            self.later(self._delay(), deliver)

    def _delay(self) -> int:
        return self._rng.randint(0, self.network.delay_ms)

    def find_coordinator(self, host: AnyHost) -> None:
        process = host.process

        def answer() -> None:
            if self.active:
                host.receive(process, CoordinatorFound(self.now, self.tenure))
            else:
                host.receive(process, LookupFailed(self.now, ErrorCode.COORDINATOR_NOT_AVAILABLE))

        self.later(self._delay(), answer)

    def fetch_metadata(self, host: AnyHost) -> None:
        process = host.process
        self.later(
            self._delay(),
            lambda: host.receive(process, MetadataChanged(self.now, tuple(self.topics.values()))),
        )

    def adopted(self, host: AnyHost) -> None:
        """A member has taken up partitions: nobody else of its generation, or whom the coordinator counts, may hold
        them."""
        group_id = host.plan.settings.group_id
        view = self.core.consumer_groups.get(group_id)
        if view is not None:
            check_holders(view, self._consumers(group_id))
        holders = {
            other.plan.name: Holder(other.member, other.tenure)
            for other in self.hosts
            if isinstance(other, Host) and other.running and other.plan.settings.group_id == group_id
        }
        if host.plan.name in holders:
            check_owners(holders, host.plan.name)

    # --- what goes wrong ---

    def _disrupt(self, what: Disruption) -> None:
        host, amount = self.hosts[what.host], what.amount
        self.note(f"-- {what.fault.name}: m{what.host} {what.fault.value} ({amount})")
        match what.fault:
            case Fault.CRASH | Fault.DEATH:
                host.crash()
                if what.fault is Fault.CRASH:
                    self._restart(host, amount)
            case Fault.STALL:
                host.stall(amount)
            case Fault.CLOSE:
                host.close(self._rng.choice(list(CloseOption)))
                self._restart(host, amount)
            case Fault.UNSUBSCRIBE:
                host.unsubscribe()
                self.later(amount, lambda: host.subscribe(host.plan.topics))
            case Fault.RESUBSCRIBE:
                names = sorted(self.topics)
                host.subscribe(frozenset(self._rng.sample(names, self._rng.randint(1, len(names)))))
            case Fault.ENFORCE:
                host.call(EnforceRebalance(self.now, "asked"))
            case Fault.LISTENER:
                host.listener_fails = True
                host.listener_delay_ms = amount
                self.later(amount, lambda: setattr(host, "listener_delay_ms", host.plan.listener_ms))
            case Fault.TWIN:
                if host.plan.settings.group_instance_id is not None:
                    alike = sum(each.plan.name.startswith(host.plan.name) for each in self.hosts)
                    twin = self._host(replace(host.plan, name=host.plan.name + alike * "'"))
                    self.hosts.append(twin)
                    twin.start()
            case Fault.GROW:
                name = self._rng.choice(sorted(self.topics))
                topic = self.topics[name]
                self.topics[name] = replace(topic, partitions=topic.partitions + 1)
                self._publish_topics()
                for each in self.hosts:
                    self.later(self._rng.randint(0, amount), lambda to=each: self.fetch_metadata(to))  # type: ignore[misc]
            case Fault.FAIL_OVER:
                self.fail_over(amount)
            case Fault.SLOW:
                host.processing_ms = amount

    def _restart(self, host: AnyHost, after_ms: int) -> None:
        def restart() -> None:
            if not host.running and host.given_up is None:
                host.start()

        self.later(after_ms, restart)

    def _calm_down(self) -> None:
        """From now on nothing goes wrong any more; what is under way comes to its end."""
        self.note("-- the environment is quiet")
        self.network = QUIET
        for host in self.hosts:
            host.listener_fails = False
            host.listener_delay_ms = host.plan.listener_ms
            host.processing_ms = 0
        if self.active:
            self._replicate(self.tenure, len(self.core.log))

    def _note_event(self, event: Event, seen: Observation) -> None:
        groups = ", ".join(
            f"{name} {group.state.value} {group.generation_id}" if group is not None else f"{name} gone"
            for name, group in seen.groups.items()
        )
        groups += ", ".join(
            f"{name} {group.state.value} {group.assignment_epoch}/{group.group_epoch}" if group is not None else name
            for name, group in seen.consumer_groups.items()
        )
        what = type(event.body).__name__ if isinstance(event, Request) else type(event).__name__
        if isinstance(event, TimerFired):
            what = f"timer {event.key.kind.value} {event.key.member_id or event.key.operation or ''}"
        elif isinstance(event, Request):
            what = f"{what} #{event.id} of {getattr(event.body, 'member_id', '')!r} ({event.client_id})"
        answers = ", ".join(
            f"#{reply.request_id} {getattr(reply.body, 'error_code', ErrorCode.NONE).name}" for reply in seen.replies
        )
        self._lines.append(
            f"{self.now:>7} ms  coordinator: {what} → {groups or 'same'}" + (f"; answers {answers}" if answers else "")
        )
