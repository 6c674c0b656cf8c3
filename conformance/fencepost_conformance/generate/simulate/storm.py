"""Rebalance storms: whole groups whose members leave and come back faster than the group settles.

*Slow programs* (SCN-STORM-01). The processing time of every member exceeds its poll interval, so each leaves and joins
again at its next poll. Nothing else goes wrong, so the shape of the storm is known: the group becomes Stable again and
again, never for longer than a poll interval, and its generation keeps growing.

*Bursts* (LIV-12). Many members crash, close, stall or start within a moment, wave after wave, dynamic and static ones,
with faults of the network and the log and a coordinator that moves.

Both run under the rules that always hold. After the storm the group must settle in few rounds: each member can cause
only a few (LIV-05, LIV-06).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from fencepost.member.assignors.base import Assignor, RebalanceProtocol
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.settings import MemberSettings
from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState

from .broken import demand
from .cooperative import GradualAssignor
from .plan import Disruption, Fault, HostPlan, NetworkPlan, Plan
from .report import Report
from .run import Simulation

GROUP = "g"
#: Rounds that one member may cause after the storm: it leaves or is removed, and it comes back.
_ROUNDS_A_MEMBER = 2
#: Each change takes a cooperative group two rounds: one to revoke, one to assign (LIV-06).
_COOPERATIVE_ROUNDS = 2
#: Time for answers on their way and for the application's loop, in ms.
_SLACK_MS = 2_000
_WAVES = (Fault.CRASH, Fault.CLOSE, Fault.STALL, Fault.UNSUBSCRIBE, Fault.ENFORCE)


def draw_slow_storm(seed: int, profile: Profile = INTENDED) -> Plan:
    """Draw SCN-STORM-01: programs that process a poll for longer than their poll interval."""
    rng = Random(f"slow storm {seed}")
    poll = rng.choice([3_000, 6_000])
    chaos = 12 * poll
    hosts = _draw_hosts(rng, profile, poll, static=0.0)
    slow = [Disruption(0, Fault.SLOW, number, rng.randint(poll + 1_500, 2 * poll)) for number in range(len(hosts))]
    network = NetworkPlan(0.0, rng.choice([0.0, 0.2]), rng.choice([1, 30, 200]), 0.0, rng.choice([0.0, 0.3]), 0.0)
    topics = (("t", len(hosts)),)  # a partition for each, so that every program has records to process
    return Plan(seed, _settings(rng), profile, network, topics, tuple(hosts), tuple(slow), chaos)


def draw_burst_storm(seed: int, profile: Profile = INTENDED) -> Plan:
    """Draw LIV-12: waves in which most members leave and return, faster than sessions and join phases end."""
    rng = Random(f"burst storm {seed}")
    hosts = _draw_hosts(rng, profile, rng.choice([4_000, 8_000]), static=0.4)
    disruptions = []
    at, waves = 6_000, rng.randint(5, 9)
    for _ in range(waves):
        width = rng.choice([1, 50, 800])
        for number in rng.sample(range(len(hosts)), rng.randint(len(hosts) // 2, len(hosts))):
            amount = rng.choice([20, 400, 3_000, 9_000])
            disruptions.append(Disruption(at + rng.randrange(width), rng.choice(_WAVES), number, amount))
        if rng.random() < 0.3:
            disruptions.append(Disruption(at + width, Fault.FAIL_OVER, 0, rng.choice([20, 1_500])))
        at += rng.choice([300, 2_000, 5_000])
    network = NetworkPlan(
        lose=rng.choice([0.0, 0.05]),
        duplicate=rng.choice([0.0, 0.1]),
        delay_ms=rng.choice([1, 30, 400]),
        append_fails=rng.choice([0.0, 0.1]),
        append_waits=rng.choice([0.0, 0.3]),
        append_slow=rng.choice([0.0, 0.05]),
    )
    ordered = tuple(sorted(disruptions, key=lambda each: each.at_ms))
    return Plan(seed, _settings(rng), profile, network, (("t", len(hosts)),), tuple(hosts), ordered, at)


def _draw_hosts(rng: Random, profile: Profile, poll: int, static: float) -> list[HostPlan]:
    assignors: tuple[Assignor, ...] = rng.choice([(RangeAssignor(),), (GradualAssignor(),)])
    session = rng.choice([2_000, 6_000])
    return [
        HostPlan(
            f"m{number}",
            MemberSettings(
                GROUP,
                group_instance_id=f"i{number}" if rng.random() < static else None,
                session_timeout_ms=session,
                heartbeat_interval_ms=rng.choice([300, 600]),
                max_poll_interval_ms=poll,
                assignors=assignors,
                profile=profile,
            ),
            frozenset({"t"}),
            old=rng.random() < 0.1,
            poll_every_ms=rng.choice([200, 500]),
            start_ms=rng.randint(0, 1_500),
        )
        for number in range(rng.randint(8, 14))
    ]


def _settings(rng: Random) -> Settings:
    return Settings(group_min_session_timeout_ms=1_000, group_initial_rebalance_delay_ms=rng.choice([0, 500]))


@dataclass(frozen=True, slots=True)
class StormReport:
    """``storm_rounds``, ``quiet_rounds``: generations made during the storm and after it. ``stable_ms``: lengths of the
    periods in which the group was Stable during the storm."""

    report: Report
    storm_rounds: int
    quiet_rounds: int
    stable_ms: tuple[int, ...]


def simulate_storm(plan: Plan) -> StormReport:
    """Run the storm until the group has settled, or to the first broken property."""
    storm = Storm(plan)
    report = storm.run()
    return StormReport(report, storm.rounds - storm.quiet_rounds, storm.quiet_rounds, tuple(storm.stable_ms))


class Storm(Simulation):
    """A simulation that counts rounds and measures how long the group is Stable."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.rounds = 0
        self.quiet_rounds = 0
        self.stable_ms: list[int] = []
        self._raging = True
        self._stable_since: int | None = None
        self._slow = any(each.fault is Fault.SLOW for each in plan.disruptions)

    def feed(self, event: Event) -> None:
        before = self.core.groups.get(GROUP)
        super().feed(event)
        after = self.core.groups.get(GROUP)
        if before is not None and after is not None and after.generation_id > before.generation_id:
            self._count_round()
        self._watch_stable(after is not None and after.state is GroupState.STABLE)

    def _count_round(self) -> None:
        self.rounds += 1
        if self._raging:
            return
        self.quiet_rounds += 1
        bound = most_rounds(self.plan)
        demand(
            self.quiet_rounds <= bound, "LIV-05", f"{self.quiet_rounds} rounds since the storm ended, more than {bound}"
        )

    def _watch_stable(self, stable: bool) -> None:
        if not self._raging or not self._slow:
            return
        if self._stable_since is not None:
            lasted, settings = self.now - self._stable_since, self.plan.hosts[0].settings
            assert isinstance(settings, MemberSettings)
            longest = settings.max_poll_interval_ms + settings.heartbeat_interval_ms + _SLACK_MS
            demand(lasted <= longest, "SCN-STORM-01", f"Stable for {lasted} ms while every program is too slow")
            if not stable:
                self.stable_ms.append(lasted)
        if not stable:
            self._stable_since = None
        elif self._stable_since is None:
            self._stable_since = self.now

    def _calm_down(self) -> None:
        self._raging = False
        if self._slow:
            # At most: the work, then the join phase, whose timer is the poll interval, then being Stable.
            poll = self.plan.hosts[0].settings.max_poll_interval_ms
            work = max(each.amount for each in self.plan.disruptions)
            delay = self.plan.settings.group_initial_rebalance_delay_ms
            least = self.plan.chaos_ms // (work + 2 * poll + delay + _SLACK_MS)
            demand(self.rounds >= least, "SCN-STORM-01", f"{self.rounds} rounds in the storm, fewer than {least}")
        super()._calm_down()


def most_rounds(plan: Plan) -> int:
    """Return the most rounds allowed between the end of the storm and a settled group."""
    settings = plan.hosts[0].settings
    assert isinstance(settings, MemberSettings)
    gradual = settings.assignors[0].protocols - {RebalanceProtocol.EAGER}
    return len(plan.hosts) * _ROUNDS_A_MEMBER * (_COOPERATIVE_ROUNDS if gradual else 1)
