"""The plan of a seed whose programs change from one protocol to the other, in one group (X-ROLL-02).

A roll moves the programs one by one to the other protocol, and perhaps back. Meanwhile the same faults happen as in
other plans. But static members keep their subscription and their topics, as in groups of classic members alone.

The network duplicates JoinGroups that reach consumer groups. A late copy frees no partition that its sender still owns,
unless it fences the sender (X-JOIN-12 fixed). Yet it may get the member a partition in the same generation in an answer
that is never delivered (X-JOIN-22, X-HB-06). TCP makes no copies, so in plans with copies each program asks for a
rebalance once all copies have arrived. Classic groups get no copies: a copy would stand for its sender's current claims
when the group is upgraded (X-UP-05). Other requests are not copied either: the answer that is dropped may be the only
one that gives a member of the consumer protocol its assignment (M-RSP-01).
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from fencepost.member.assignors.base import Assignor
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.round_robin import RoundRobinAssignor
from fencepost.member.settings import ConsumerSettings, MemberSettings
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from .consumer_plan import SESSION_MS
from .cooperative import GradualAssignor
from .plan import Disruption, Fault, HostPlan, NetworkPlan, Plan, draw_disruption

GROUP = "g"
_LATE_MS = 8_000


def draw_mixed_plan(seed: int, profile: Profile = INTENDED) -> Plan:
    """Draw the plan of a seed, the same on every machine."""
    rng = Random(f"mixed plan {seed}")
    calm, copies = rng.random() < 0.3, Random(f"mixed copies {seed}").choice([0.0, 0.0, 0.0, 0.05, 0.2])
    network = NetworkPlan(
        lose=0.0 if calm else rng.choice([0.0, 0.02, 0.08]),
        duplicate=0.0 if calm else copies,
        delay_ms=rng.choice([1, 30, 300]),
        append_fails=0.0 if calm else rng.choice([0.0, 0.03, 0.1]),
        append_waits=rng.choice([0.0, 0.3]),
        append_slow=0.0 if calm else rng.choice([0.0, 0.0, 0.05]),
        late_joins_ms=_LATE_MS,
    )
    settings = Settings(
        group_min_session_timeout_ms=1_000,
        group_initial_rebalance_delay_ms=rng.choice([0, 200, 3_000]),
        group_consumer_session_timeout_ms=SESSION_MS,
        group_consumer_min_session_timeout_ms=SESSION_MS,
        group_consumer_heartbeat_interval_ms=1_000,
        group_consumer_min_heartbeat_interval_ms=1_000,
        group_consumer_assignors=rng.choice([("uniform", "range"), ("range", "uniform")]),
        group_consumer_assignment_interval_ms=rng.choice([0, 1_000]),
    )
    topics = tuple((f"t{number}", rng.randint(1, 4)) for number in range(rng.randint(1, 2)))
    drawn, slow = _draw_hosts(rng, [name for name, _ in topics], profile), Random(f"mixed commits {seed}")
    hosts = [replace(host, commit_ms=slow.choice([1, 1, 1_500])) for host in drawn]
    chaos = rng.choice([20_000, 40_000])
    disruptions = [*_draw_roll(rng, chaos, len(hosts)), *(_draw(rng, chaos, hosts) for _ in range(rng.randint(0, 5)))]
    if network.duplicate:
        disruptions += (Disruption(chaos + _LATE_MS, Fault.ENFORCE, number, 0) for number in range(len(hosts)))
    ordered = tuple(sorted(disruptions, key=lambda each: each.at_ms))
    return Plan(seed, settings, profile, network, topics, tuple(hosts), ordered, chaos)


def _draw_hosts(rng: Random, topics: list[str], profile: Profile) -> list[HostPlan]:
    assignors: tuple[Assignor, ...] = rng.choice(
        [(RangeAssignor(),), (RangeAssignor(), RoundRobinAssignor()), (GradualAssignor(),)]
    )
    alike, commits = rng.random() < 0.7, rng.random() < 0.4
    first = rng.choice(["classic", "classic", "consumer", "either"])
    hosts = []
    for number in range(rng.randint(2, 4)):
        instance = f"i{number}" if rng.random() < 0.3 else None
        poll = rng.choice([5_000, 20_000])
        classic = MemberSettings(
            GROUP,
            group_instance_id=instance,
            session_timeout_ms=rng.choice([2_000, 6_000]),
            heartbeat_interval_ms=rng.choice([500, 900]),
            max_poll_interval_ms=poll,
            auto_commit=commits,
            assignors=assignors,
            profile=profile,
        )
        consumer = ConsumerSettings(
            GROUP,
            group_instance_id=instance,
            max_poll_interval_ms=poll,
            auto_commit=commits,
            server_assignor=rng.choice([None, None, "range"]),
            profile=profile,
        )
        consumers_first = first == "consumer" or (first == "either" and rng.random() < 0.5)
        hosts.append(
            HostPlan(
                f"m{number}",
                consumer if consumers_first else classic,
                frozenset(topics if alike else rng.sample(topics, rng.randint(1, len(topics)))),
                old=False,
                poll_every_ms=rng.choice([400, 1_000]),
                start_ms=rng.choice([0, rng.randint(0, 5_000)]),
                listener_ms=rng.choice([0, 0, 300]),
                other=classic if consumers_first else consumer,
            )
        )
    return hosts


def _draw_roll(rng: Random, chaos: int, hosts: int) -> list[Disruption]:
    """Draw a roll: one program after the other, and often back in another order."""
    found: list[Disruption] = []
    at, pace = rng.randint(3_000, 8_000), rng.choice([50, 1_500, 4_000])
    for _ in range(rng.choice([1, 2, 2])):
        for number in rng.sample(range(hosts), hosts if rng.random() < 0.8 else hosts - 1):
            found.append(Disruption(at, Fault.SWITCH, number, rng.choice([20, 500, 2_500])))
            at += rng.randint(1, 2 * pace)
        at += rng.choice([100, 6_000])
    return [each for each in found if each.at_ms < chaos]


def _draw(rng: Random, chaos: int, hosts: list[HostPlan]) -> Disruption:
    drawn = draw_disruption(rng, chaos, hosts)
    return drawn if rng.random() < 0.8 else Disruption(drawn.at_ms, Fault.SWITCH, drawn.host, drawn.amount)
