"""The plan of a trace, drawn from its seed before the first event: settings, groups, clients, and its mood."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from random import Random

from fencepost.protocol.embedded import HIGHEST_VERSION, Subscription, encode_subscription
from fencepost.protocol.messages import Protocol
from fencepost.protocol.settings import Settings

UNBOUNDED = 2_147_483_647


class GroupProtocol(StrEnum):
    """The protocol that the clients of a trace use."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    MIXED = "mixed"  #: both, in the same groups


#: assignor lists that clients offer; real ones, several in one list, and some that no other client knows
PROTOCOL_LISTS = (
    ("range",),
    ("range",),
    ("range", "cooperative-sticky"),
    ("range", "cooperative-sticky"),
    ("cooperative-sticky", "range"),
    ("cooperative-sticky",),
    ("roundrobin", "range"),
    ("sticky", "roundrobin", "range"),
    ("range", "roundrobin", "sticky", "cooperative-sticky"),
    ("exotic", "range"),
)
PROTOCOL_TYPES = ("consumer",) * 6 + ("connect",)
SESSION_TIMEOUTS = (6_000, 6_000, 10_000, 10_000, 30_000, 45_000, 1_800_000)
REBALANCE_TIMEOUTS = (0, 1, 500, 2_000, 5_000, 10_000, 60_000, 60_000, 300_000, 300_000, 400_000)
INITIAL_DELAYS = (0, 3_000, 3_000, 3_000, 500, 10_000)
GROUP_SIZES = (UNBOUNDED,) * 6 + (1, 2, 2, 3, 4)
TOPICS = ("orders", "payments", "clicks")


@dataclass(frozen=True, slots=True)
class Mood:
    """The tendencies of a trace; each is the probability of a step, or a weight."""

    hostile: float  #: a request is not one that a client would send
    prompt: float  #: records are replicated directly after the step that made them
    append_fails: float  #: a step with records is followed by a failed append
    fail_over: float  #: weight of losing and winning the partition
    late_timers: float  #: a due timer waits behind other events
    restart: float  #: a client restarts rather than heartbeats
    admin: float  #: weight of describe, list and delete
    duplicate: float  #: a client sends its last request again
    old_versions: bool  #: clients use any version of each API, not only the newest


@dataclass(frozen=True, slots=True)
class Wide:
    """Rarer features of a trace, each a probability; 0: the trace has none of it."""

    odd_epochs: float = 0.0  #: the partition is won or lost at an old or known epoch (F-LOAD-03, F-LOAD-08)
    abrupt: float = 0.0  #: the partition is lost after any step
    late_tasks: float = 0.0  #: a background task ends after its coordinator has lost the partition
    cleaned: float = 0.0  #: a load finds a log that a cleaner has compacted or is compacting (F-REPLAY-18)
    burst: float = 0.0  #: a failed append is followed by others, or by a loss
    long_waits: float = 0.0  #: hours, days or weeks pass at once


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """The plan of a client program. ``protocols`` are in order of preference. ``reason``: its reason text; None: a
    word."""

    group_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    protocol_type: str
    protocols: tuple[str, ...]
    topics: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    join_version: int
    sync_version: int
    heartbeat_version: int
    leave_version: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerPlan:
    """The plan of a client program that uses the consumer protocol. ``names`` and ``regex``: its first subscription;
    ``moods``: how likely it is to change them, and to report owned partitions correctly. ``ids`` and ``regexes``:
    sources of its member id and its next regular expression; none: fresh ids, and the usual ones."""

    group_id: str
    client_id: str
    client_host: str
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    names: tuple[str, ...] | None
    regex: str | None
    assignor: str | None
    version: int
    fickle: float
    honest: float
    ids: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    settings: Settings
    groups: tuple[str, ...]
    clients: tuple[ClientPlan, ...]
    mood: Mood
    preloaded: bool  #: the log has groups when the first coordinator loads it
    consumers: tuple[ConsumerPlan, ...] = ()
    wide: Wide = Wide()


def draw_plan(rng: Random) -> Plan:
    """Draw everything that is fixed before the trace begins."""
    settings = Settings(
        group_initial_rebalance_delay_ms=rng.choice(INITIAL_DELAYS),
        group_max_size=rng.choice(GROUP_SIZES),
        offsets_commit_timeout_ms=rng.choice((5_000, 5_000, 5_000, 1_000, 20_000)),
    )
    # names outside ASCII and outside the BMP: Kafka orders by the hash of UTF-16 units
    head = rng.choice(("group",) * 12 + ("gruppe-ß", "\U0001f980"))
    groups = tuple(f"{head}-{n}" for n in range(rng.choice((1, 1, 1, 2, 2, 3))))
    mood = Mood(
        hostile=rng.choice((0.02, 0.08, 0.2)),
        prompt=rng.choice((1.0, 0.95, 0.9, 0.6, 0.2)),
        append_fails=rng.choice((0.0, 0.0, 0.03, 0.15)),
        fail_over=rng.choice((0.0, 0.3, 1.0)),
        late_timers=rng.choice((0.0, 0.1, 0.5)),
        restart=rng.choice((0.02, 0.05, 0.15)),
        admin=rng.choice((1.0, 2.0, 4.0)),
        duplicate=rng.choice((0.0, 0.03, 0.1)),
        old_versions=rng.random() < 0.5,
    )
    static_share = rng.choice((0.0, 0.0, 0.3, 0.6, 1.0))
    offers = [rng.choice(PROTOCOL_LISTS) for _ in range(rng.choice((1, 1, 2, 3)))]
    kind = {group: rng.choice(PROTOCOL_TYPES) for group in groups}
    clients = []
    for n in range(rng.choice((1, 2, 2, 3, 3, 4, 5, 6))):
        group = rng.choice(groups)
        static = rng.random() < static_share
        clients.append(
            ClientPlan(
                group_id=group,
                client_id=rng.choice((f"client-{n}",) * 18 + ("", f"\U0001d4b3-{n}")),
                client_host=f"/127.0.0.{n + 1}",
                # a clash of instance ids: two programs started with the same one
                instance_id=f"static-{n if rng.random() < 0.85 else 0}" if static else None,
                protocol_type=kind[group] if rng.random() < 0.97 else rng.choice(PROTOCOL_TYPES),
                protocols=rng.choice(offers) if rng.random() < 0.95 else rng.choice(PROTOCOL_LISTS),
                topics=tuple(topic for topic in TOPICS if rng.random() < 0.6),
                session_timeout_ms=rng.choice(SESSION_TIMEOUTS),
                rebalance_timeout_ms=rng.choice(REBALANCE_TIMEOUTS),
                join_version=_version(rng, mood, 9, 5 if static else 0),
                sync_version=_version(rng, mood, 5, 3 if static else 0),
                heartbeat_version=_version(rng, mood, 4, 3 if static else 0),
                leave_version=_version(rng, mood, 5, 0),
            )
        )
    return Plan(settings, groups, tuple(clients), mood, preloaded=rng.random() < 0.25)


def _version(rng: Random, mood: Mood, newest: int, oldest: int) -> int:
    return rng.randint(oldest, newest) if mood.old_versions else newest


def offered(plan: ClientPlan, round_: int, owned: bytes = b"") -> tuple[Protocol, ...]:
    """Return the protocol list of a JoinGroup; ``round_`` changes its metadata, as owned partitions do (C-JOIN-62)."""
    if plan.protocol_type != "consumer":
        return tuple(Protocol(name, b"%s %d" % (name.encode(), round_)) for name in plan.protocols)
    user_data = round_.to_bytes(4, "big") + owned if round_ else None
    metadata = encoded(Subscription(plan.topics, user_data))
    return tuple([Protocol(name, metadata) for name in plan.protocols])


@lru_cache(maxsize=1 << 12)
def encoded(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """Encode a subscription, cached because a client sends the same at most of its joins."""
    return encode_subscription(subscription, version)
