"""The plan of a seed whose members speak the protocol of KIP-848."""

from __future__ import annotations

from random import Random

from fencepost.member.settings import ConsumerSettings
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from .plan import HostPlan, Plan, draw_disruption, draw_network

SESSION_MS = 6_000


def draw_consumer_plan(seed: int, profile: Profile = INTENDED) -> Plan:
    """Draw the plan of a seed, the same on every machine."""
    rng = Random(f"consumer plan {seed}")
    network = draw_network(rng)
    settings = Settings(
        group_consumer_session_timeout_ms=SESSION_MS,
        group_consumer_min_session_timeout_ms=SESSION_MS,
        group_consumer_heartbeat_interval_ms=1_000,
        group_consumer_min_heartbeat_interval_ms=1_000,
        group_consumer_assignors=rng.choice([("uniform", "range"), ("range", "uniform")]),
        group_consumer_assignment_interval_ms=rng.choice([0, 1_000]),
        group_consumer_regex_refresh_interval_ms=10_000,
    )
    topics = tuple((f"t{number}", rng.randint(1, 5)) for number in range(rng.randint(1, 3)))
    names = [name for name, _ in topics]
    hosts: list[HostPlan] = []
    alike = rng.random() < 0.6
    for number in range(rng.randint(1, 4)):
        regex = "t.*" if rng.random() < 0.15 else None
        member = ConsumerSettings(
            "g",
            group_instance_id=f"i{number}" if rng.random() < 0.3 else None,
            max_poll_interval_ms=rng.choice([5_000, 20_000]),
            auto_commit=rng.random() < 0.3,
            listener=rng.random() < 0.9,
            server_assignor=rng.choice([None, None, "range"]),
            profile=profile,
        )
        wanted = names if alike else rng.sample(names, rng.randint(1, len(names)))
        hosts.append(
            HostPlan(
                f"m{number}",
                member,
                frozenset(wanted),
                old=False,
                poll_every_ms=rng.choice([400, 1_000]),
                start_ms=rng.choice([0, rng.randint(0, 8_000)]),
                regex=regex,
                listener_ms=rng.choice([0, 0, 300, 1_500]),
            )
        )
    chaos = rng.choice([10_000, 30_000, 60_000])
    drawn = (draw_disruption(rng, chaos, hosts) for _ in range(rng.randint(0, 8)))
    disruptions = sorted(drawn, key=lambda each: each.at_ms)
    return Plan(seed, settings, profile, network, topics, tuple(hosts), tuple(disruptions), chaos)
