"""The plan of a seed: groups of either protocol or both, and faults of the brokers that coordinate them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from fencepost.member.settings import ConsumerSettings, MemberSettings
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..consumer_plan import draw_consumer_plan
from ..mixed_plan import draw_mixed_plan
from ..plan import Disruption, Fault, HostPlan, Plan, draw_plan

_CHAOS_MS: Final = 20_000
#: The groups of a plan: functions that draw one group each.
_KINDS: Final[tuple[tuple[Callable[[int, Profile], Plan], ...], ...]] = (
    (draw_plan, draw_consumer_plan),
    (draw_consumer_plan, draw_plan),
    (draw_mixed_plan, draw_consumer_plan),
    (draw_plan, draw_mixed_plan),
)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """The plan of a cluster. ``groups``: the programs and disruptions of all groups in one plan. ``news_ms``: how long
    a broker may take to learn of an election; ``deaf``: the probability that it takes much longer. ``every_ms``: mean
    time between two broker events. ``transactions``: number of groups to which producers commit."""

    seed: int
    brokers: int
    partitions: int
    groups: Plan
    news_ms: int
    deaf: float
    every_ms: int
    transactions: int


def draw_cluster_plan(
    seed: int, profile: Profile = INTENDED, *, brokers: int | None = None, partitions: int | None = None
) -> ClusterPlan:
    """Draw the plan of a seed, the same on every machine. ``brokers``, ``partitions``: drawn if None."""
    rng = Random(f"cluster plan {seed}")
    drawn = rng.choice((2, 3, 3, 5)), rng.choice((1, 2, 3, 7))
    first, second = rng.choice(_KINDS)
    plan = first(seed, profile)
    if rng.random() < 0.7:
        plan = _beside(plan, second(seed + 1, profile))
    return ClusterPlan(
        seed,
        brokers or drawn[0],
        partitions or drawn[1],
        _fitting(plan),
        news_ms=rng.choice((1, 300, 2_000)),
        deaf=rng.choice((0.0, 0.2, 0.5)),
        every_ms=rng.choice((300, 1_000, 3_000)),
        transactions=rng.choice((0, 1, 2)),
    )


def _beside(one: Plan, other: Plan) -> Plan:
    """Merge two plans; the groups, programs and topics of the second are renamed."""
    count = len(one.hosts)
    hosts = [_renamed(host, count + number) for number, host in enumerate(other.hosts)]
    moved = [replace(each, host=each.host + count) for each in other.disruptions]
    classic, consumer = (one, other) if one.settings.group_min_session_timeout_ms == 1_000 else (other, one)
    settings = replace(
        consumer.settings,
        group_min_session_timeout_ms=1_000,
        group_initial_rebalance_delay_ms=classic.settings.group_initial_rebalance_delay_ms,
    )
    return replace(
        one,
        settings=settings,
        topics=(*one.topics, *((f"u{name}", size) for name, size in other.topics)),
        hosts=(*one.hosts, *hosts),
        disruptions=(*one.disruptions, *moved),
        chaos_ms=max(one.chaos_ms, other.chaos_ms),
    )


def _renamed(host: HostPlan, number: int) -> HostPlan:
    def elsewhere(settings: MemberSettings | ConsumerSettings) -> MemberSettings | ConsumerSettings:
        instance = settings.group_instance_id
        return replace(settings, group_id=f"u{settings.group_id}", group_instance_id=instance and f"u{instance}")

    return replace(
        host,
        name=f"m{number}",
        settings=elsewhere(host.settings),
        other=host.other and elsewhere(host.other),
        topics=frozenset(f"u{name}" for name in host.topics),
        regex=host.regex and f"u{host.regex}",
    )


def _fitting(plan: Plan) -> Plan:
    """Shorten a plan. Drop changes of topics if a static classic member might not notice them (C-STATIC-07), and drop
    fail-overs, since the cluster has its own events for those."""
    static = any(host.settings.group_instance_id is not None for host in plan.hosts)
    left = [Fault.FAIL_OVER, *([Fault.GROW, Fault.RESUBSCRIBE] if static else [])]
    chaos = min(plan.chaos_ms, _CHAOS_MS)
    kept: list[Disruption] = []
    for each in sorted(plan.disruptions, key=lambda one: one.at_ms):
        if each.fault not in left:
            kept.append(replace(each, at_ms=min(each.at_ms, each.at_ms * chaos // plan.chaos_ms)))
    network = replace(plan.network, duplicate=0.0, append_waits=0.0, append_slow=0.0)
    return replace(plan, disruptions=tuple(kept), chaos_ms=chaos, network=network)
