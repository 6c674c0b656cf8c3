"""The plan of a seed: a group (or two), its brokers' settings, and every fault that will happen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from fencepost.member.assignors.base import Assignor
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.settings import ConsumerSettings, MemberSettings
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from .cooperative import GradualAssignor


class Fault(Enum):
    """A fault that a plan may contain. A disruption's ``amount`` is a time in ms, or a number."""

    CRASH = "crashes, then restarts"
    DEATH = "crashes and stays down"
    STALL = "does not poll"
    CLOSE = "closes, then restarts"
    UNSUBSCRIBE = "unsubscribes, then subscribes again"
    RESUBSCRIBE = "subscribes to other topics"
    ENFORCE = "asks for a rebalance"
    LISTENER = "has a listener that throws once"
    TWIN = "gets a second process with its instance id"
    GROW = "sees a topic get more partitions"
    FAIL_OVER = "loses its coordinator"
    SLOW = "needs long to process each poll"
    SWITCH = "closes, then restarts with the other protocol"


#: Faults of a group whose programs use only one protocol.
ANY = tuple(fault for fault in Fault if fault is not Fault.SWITCH)


@dataclass(frozen=True, slots=True)
class Disruption:
    at_ms: int
    fault: Fault
    host: int
    amount: int

    def __str__(self) -> str:
        return f"{self.at_ms:>7} ms  m{self.host} {self.fault.value} ({self.amount})"


@dataclass(frozen=True, slots=True)
class HostPlan:
    """The plan of a program. ``old``: it uses the API versions of a client older than KIP-814. ``poll_every_ms``:
    period of the application's loop. ``regex``: subscribe with it instead of to ``topics``. ``listener_ms``,
    ``commit_ms``: how long the rebalance listener and a commit take. ``other``: settings for the other protocol, if the
    program may switch to it."""

    name: str
    settings: MemberSettings | ConsumerSettings
    topics: frozenset[str]
    old: bool
    poll_every_ms: int
    start_ms: int
    regex: str | None = None
    listener_ms: int = 0
    commit_ms: int = 1
    other: MemberSettings | ConsumerSettings | None = None

    @property
    def is_consumer(self) -> bool:
        """Whether it uses the protocol of KIP-848."""
        return isinstance(self.settings, ConsumerSettings)

    def switched(self) -> HostPlan:
        """Return the plan of the same program with the other protocol."""
        assert self.other is not None
        return replace(self, settings=self.other, other=self.settings)


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """Probabilities per message; delays in ms. ``slow``: a record is replicated after the write timeout.
    ``late_joins_ms``: if set, only JoinGroups to consumer groups are copied, and copies are at most this late."""

    lose: float
    duplicate: float
    delay_ms: int
    append_fails: float
    append_waits: float
    append_slow: float
    late_joins_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    settings: Settings
    profile: Profile
    network: NetworkPlan
    topics: tuple[tuple[str, int], ...]
    hosts: tuple[HostPlan, ...]
    disruptions: tuple[Disruption, ...]
    chaos_ms: int  #: afterwards the environment is quiet


def draw_network(rng: Random) -> NetworkPlan:
    """Draw how bad the network and the log are; for one seed in five they have no faults."""
    calm = rng.random() < 0.2
    return NetworkPlan(
        lose=0.0 if calm else rng.choice([0.0, 0.02, 0.1]),
        duplicate=0.0 if calm else rng.choice([0.0, 0.05, 0.2]),
        delay_ms=rng.choice([1, 30, 400]),
        append_fails=0.0 if calm else rng.choice([0.0, 0.03, 0.15]),
        append_waits=rng.choice([0.0, 0.3]),
        append_slow=0.0 if calm else rng.choice([0.0, 0.0, 0.05]),
    )


def draw_plan(seed: int, profile: Profile = INTENDED) -> Plan:
    """Draw the plan of a seed, the same on every machine."""
    rng = Random(f"plan {seed}")
    network = draw_network(rng)
    settings = Settings(
        group_min_session_timeout_ms=1_000,
        group_initial_rebalance_delay_ms=rng.choice([0, 200, 3_000]),
    )
    topics = tuple((f"t{number}", rng.randint(1, 5)) for number in range(rng.randint(1, 3)))
    hosts: list[HostPlan] = []
    for group in ["g", "h"][: 1 + (rng.random() < 0.25)]:
        hosts += _draw_group(rng, group, len(hosts), [name for name, _ in topics], profile)
    chaos = rng.choice([10_000, 30_000, 60_000])
    drawn = (draw_disruption(rng, chaos, hosts) for _ in range(rng.randint(0, 8)))
    disruptions = sorted(drawn, key=lambda each: each.at_ms)
    return Plan(seed, settings, profile, network, topics, tuple(hosts), tuple(disruptions), chaos)


def _draw_group(rng: Random, group: str, first: int, topics: list[str], profile: Profile) -> list[HostPlan]:
    assignors: list[Assignor] = list(
        rng.choice([(RangeAssignor(),), (RangeAssignor(), RoundRobinAssignor()), (GradualAssignor(),)])
    )
    alike = rng.random() < 0.7
    session, poll = rng.choice([2_000, 6_000]), rng.choice([5_000, 20_000])
    hosts = []
    for number in range(first, first + rng.randint(1, 4)):
        static = rng.random() < 0.4
        if rng.random() < 0.3:
            assignors.reverse()
        settings = MemberSettings(
            group,
            group_instance_id=f"i{number}" if static else None,
            session_timeout_ms=session if alike else rng.choice([2_000, 6_000]),
            heartbeat_interval_ms=rng.choice([500, 900]),
            max_poll_interval_ms=poll if alike else rng.choice([5_000, 20_000]),
            auto_commit=rng.random() < 0.2,
            assignors=tuple(assignors),
            profile=profile,
        )
        wanted = topics if alike else rng.sample(topics, rng.randint(1, len(topics)))
        hosts.append(
            HostPlan(
                f"m{number}",
                settings,
                frozenset(wanted),
                old=rng.random() < 0.15,
                poll_every_ms=rng.choice([400, 1_000]),
                start_ms=rng.choice([0, rng.randint(0, 8_000)]),
            )
        )
    return hosts


def draw_disruption(rng: Random, chaos: int, hosts: list[HostPlan]) -> Disruption:
    number = rng.randrange(len(hosts))
    fault = rng.choice(ANY)
    # Kafka does not notice what a static member changed while it was away (C-STATIC-07), nor topic changes meanwhile
    # when its leader returns and skips the assignment (K-JOIN-11). Such groups do not settle on every change.
    static = [host.settings.group_instance_id is not None for host in hosts]
    if (fault is Fault.RESUBSCRIBE and static[number]) or (fault is Fault.GROW and any(static)):
        fault = Fault.ENFORCE
    return Disruption(rng.randrange(chaos), fault, number, rng.choice([50, 1_000, 4_000, 8_000, 25_000]))
