"""Run a plan: members, coordinator, network and time in one loop, with every event checked.

Time is virtual. The network may lose a request or its answer, deliver a request twice, and delay every message, so that
later ones overtake earlier ones. The log may reject an append, or take long. The coordinator may move to another
broker, which loads the replicated records and perhaps a few more (F-LOAD-01). Programs may come back with the other
protocol, so that their group changes its kind (X-ROLL-02). After the chaos the environment is quiet, and the group must
settle (12.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Event, TimerFired, TimerKey
from fencepost.protocol.view import GroupView

from ...traces.observation import Observation
from .broken import Broken
from .broker import Broker
from .choices import RandomChoices
from .clockwork import Clockwork
from .consumer_host import ConsumerHost
from .disruptions import disrupt
from .host import AnyHost, Host
from .liveness import Settling
from .network import Network
from .owners import check_owners
from .plan import HostPlan, Plan
from .programs import Programs
from .report import Report, line_of
from .session import WatchedSession


def simulate(plan: Plan) -> Report:
    """Run the plan to its end, or to the first broken property."""
    return Simulation(plan).run()


class Simulation(Programs, Clockwork[TimerKey]):
    """One run."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(f"run {plan.seed}")
        self.plan = plan
        self.events = 0
        self.core = WatchedSession(plan.settings, plan.profile, RandomChoices(Random(f"choices {plan.seed}")))
        self.network = Network(self, plan.network)
        self.broker = Broker(self, self.core, dict(plan.topics))
        self._lives: Counter[str] = Counter()
        self.hosts = [self.host(host) for host in plan.hosts]
        self._settling = Settling(self)

    # --- the loop ---

    def run(self) -> Report:
        broken: Broken | None = None
        try:
            self.broker.load(0)
            self.publish_topics()
            for host in self.hosts:
                self.later(host.plan.start_ms, lambda each=host: self._start(each))  # type: ignore[misc]
            for disruption in self.plan.disruptions:
                self.later(disruption.at_ms, lambda each=disruption: disrupt(self, each))  # type: ignore[misc]
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

    @property
    def timers(self) -> Mapping[TimerKey, int]:
        return self.core.armed

    def fire(self, timer: TimerKey) -> None:
        self.feed(TimerFired(self.now, timer))

    def _calm_down(self) -> None:
        """Stop all faults; what is in progress ends normally."""
        self.note("-- the environment is quiet")
        self._quieten()
        self.broker.replicate_all()

    # --- programs ---

    def host(self, plan: HostPlan) -> AnyHost:
        return ConsumerHost(plan, self) if plan.is_consumer else Host(plan, self)

    def adopted(self, host: AnyHost) -> None:
        """Check the partitions that a member has just adopted."""
        self._check_owners(host.plan.settings.group_id, host)

    def _check_owners(self, group_id: str, adopted: AnyHost | None = None) -> None:
        ids = {name: topic.topic_id for name, topic in self.broker.topics.items()}
        check_owners(self.core.consumer_groups.get(group_id), self._running(group_id), ids, adopted)

    def _running(self, group_id: str) -> list[AnyHost]:
        return [host for host in self.hosts if host.running and host.plan.settings.group_id == group_id]

    # --- the coordinator ---

    def feed(self, event: Event) -> None:
        self.events += 1
        before: dict[str, GroupView | ConsumerGroupView] = {**self.core.groups, **self.core.consumer_groups}
        seen = self.core.feed(event)
        self._lines.append(f"{self.now:>7} ms  {line_of(event, seen)}")
        self._note_change(seen, before)
        self.network.answer(seen.replies)
        self.broker.carry_out(seen)
        for name, group in seen.consumer_groups.items():
            if group is not None:
                self._check_owners(name)

    def _note_change(self, seen: Observation, before: dict[str, GroupView | ConsumerGroupView]) -> None:
        """Start a new life for a group without members; its kind may then change (C-JOIN-10, M-VAL-22)."""
        for name, group in (*seen.groups.items(), *seen.consumer_groups.items()):
            old = before.get(name)
            if group is not None and group.members and (old is None or not old.members):
                self._lives[name] += 1

    def life(self, host: AnyHost) -> tuple[int, int]:
        """Return the life of the host's group; generations mean something only within one (NOT-08)."""
        return self.broker.leader_epoch, self._lives[host.plan.settings.group_id]

    def publish_topics(self) -> None:
        """Publish topics if the group's kind uses them: only consumer groups do."""
        if any(host.plan.is_consumer or host.plan.other is not None for host in self.hosts):
            self.broker.publish_topics()
