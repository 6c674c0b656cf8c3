"""The plan of a trace with clients of the consumer protocol, drawn from its seed before the first event."""

from __future__ import annotations

from random import Random

from fencepost.protocol.settings import MigrationPolicy, Settings

from .plan import UNBOUNDED, ConsumerPlan, Mood, Plan, draw_plan

#: topics that exist at times; more than clients name, since a regex also matches others
TOPICS = ("orders", "payments", "clicks", "orders-eu", "orders-us", "audit", "audit.log")
REGEXES = ("orders.*", "orders.*", ".*", "orders-(eu|us)", "audit\\.log", "(orders|clicks)", "nothing-.*", "[a-c].*")
RACKS = ("rack-a", "rack-b", "rack-c")
_NAMES = (
    ("orders",), ("orders",), ("orders",), ("orders", "payments"), ("orders", "payments"), ("payments", "clicks"),
    ("orders", "payments", "clicks"), ("ghosts",), ("orders", "ghosts"), (),
)  # fmt: skip
_REBALANCE_TIMEOUTS = (0, 1, 1_000, 5_000, 5_000, 45_000, 60_000, 300_000, 300_000)
_ASSIGNORS = (("uniform", "range"),) * 3 + (("range", "uniform"), ("range",), ("uniform",))
#: session timeout with its bounds, and heartbeat interval with its bounds
_SESSIONS = (
    (45_000, 45_000, 60_000), (45_000, 45_000, 60_000), (10_000, 6_000, 60_000), (6_000, 6_000, 6_000),
)  # fmt: skip
_HEARTBEATS = ((5_000, 5_000, 15_000), (5_000, 5_000, 15_000), (3_000, 1_000, 5_000))
_INTERVALS = (1_000, 1_000, 1_000, 0, 0, 5_000, 15_000)


def draw_consumer_plan(rng: Random, *, mixed: bool) -> Plan:
    """Draw everything that is fixed before the trace begins; ``mixed``: with classic clients in the same groups."""
    base = draw_plan(rng)
    groups, mood = base.groups, base.mood
    static_share = rng.choice((0.0, 0.0, 0.3, 0.6, 1.0))
    regex_share = rng.choice((0.0, 0.0, 0.3, 0.7))
    assignor_share = rng.choice((0.0, 0.3, 0.8))
    consumers = tuple(
        _consumer(rng, n, groups, mood, static=static_share, regex=regex_share, assignor=assignor_share)
        for n in range(rng.choice((1, 2, 2, 3, 3, 4, 5)))
    )
    clients = base.clients[: rng.choice((1, 1, 2, 3))] if mixed else ()
    settings = _settings(rng, base.settings, mixed=mixed)
    return Plan(settings, groups, clients, mood, rng.random() < 0.25, consumers)


def _settings(rng: Random, base: Settings, *, mixed: bool) -> Settings:
    session, least_session, most_session = rng.choice(_SESSIONS)
    heartbeat, least_heartbeat, most_heartbeat = rng.choice(_HEARTBEATS)
    return Settings(
        group_initial_rebalance_delay_ms=base.group_initial_rebalance_delay_ms,
        group_max_size=base.group_max_size if mixed else UNBOUNDED,
        offsets_commit_timeout_ms=base.offsets_commit_timeout_ms,
        consumer_protocol_enabled=rng.random() < 0.98,
        group_consumer_session_timeout_ms=session,
        group_consumer_min_session_timeout_ms=least_session,
        group_consumer_max_session_timeout_ms=most_session,
        group_consumer_heartbeat_interval_ms=heartbeat,
        group_consumer_min_heartbeat_interval_ms=least_heartbeat,
        group_consumer_max_heartbeat_interval_ms=most_heartbeat,
        group_consumer_max_size=rng.choice((UNBOUNDED,) * 6 + (1, 2, 2, 3)),
        group_consumer_assignors=rng.choice(_ASSIGNORS),
        group_consumer_migration_policy=rng.choice(
            (MigrationPolicy.BIDIRECTIONAL,) * 4 + tuple(MigrationPolicy) if mixed else tuple(MigrationPolicy)
        ),
        group_consumer_assignment_interval_ms=rng.choice(_INTERVALS),
        group_consumer_regex_refresh_interval_ms=rng.choice((600_000, 600_000, 10_000, 30_000)),
    )


def _consumer(
    rng: Random, n: int, groups: tuple[str, ...], mood: Mood, *, static: float, regex: float, assignor: float
) -> ConsumerPlan:
    matches = rng.random() < regex
    return ConsumerPlan(
        group_id=rng.choice(groups),
        client_id=rng.choice((f"client-{n}",) * 18 + ("", f"\U0001d4b3-{n}")),
        client_host=f"/127.0.1.{n + 1}",
        # a clash of instance ids: two programs started with the same one
        instance_id=f"static-{n if rng.random() < 0.85 else 0}" if rng.random() < static else None,
        rack_id=rng.choice((None, None, *RACKS)),
        rebalance_timeout_ms=rng.choice(_REBALANCE_TIMEOUTS),
        names=None if matches and rng.random() < 0.8 else rng.choice(_NAMES),
        regex=rng.choice(REGEXES) if matches else None,
        assignor=rng.choice(("uniform", "range")) if rng.random() < assignor else None,
        version=0 if mood.old_versions and not matches and rng.random() < 0.5 else 1,
        fickle=rng.choice((0.02, 0.05, 0.15)),
        honest=rng.choice((0.95, 0.8, 0.5)),
    )
