"""The start of a session: the release, the topic, the network and the timeouts; and the settings of a new client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Final

from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.settings import ConsumerSettings, MemberSettings
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import PROFILES
from fencepost.protocol.settings import Settings

from ..simulate.plan import HostPlan

GROUP: Final = "billing"
TOPIC: Final = "orders"


class ActionError(ValueError):
    """A start or an action that cannot be played; the message says what is wrong and what is possible."""


class Protocol(StrEnum):
    """How a client takes part in the group."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    CONSUMER = "consumer"


#: Numbers of a start: name to least and greatest value.
BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "seed": (0, 1_000_000),
    "partitions": (1, 24),
    "delay_ms": (1, 2_000),
    "session_ms": (1_000, 600_000),
    "heartbeat_ms": (100, 60_000),
    "poll_interval_ms": (1_000, 600_000),
    "initial_delay_ms": (0, 60_000),
    "commit_ms": (200, 600_000),
    "listener_ms": (0, 60_000),
}


@dataclass(frozen=True, slots=True)
class Start:
    """How a session begins. Times in ms.

    ``delay_ms``: how long a message travels. ``session_ms``, ``heartbeat_ms``, ``poll_interval_ms``: the timeouts of
    clients, and of the consumer group. ``initial_delay_ms``: how long a new classic group waits for more members
    (C-JOIN-43). ``commit_ms``: interval of automatic commits; ``listener_ms``: how long a rebalance listener takes.
    ``other``: the release that each message is compared with.
    """

    seed: int = 1
    profile: str = "kafka-4.3"
    other: str = "intended"
    partitions: int = 6
    delay_ms: int = 20
    session_ms: int = 10_000
    heartbeat_ms: int = 2_000
    poll_interval_ms: int = 20_000
    initial_delay_ms: int = 1_000
    commit_ms: int = 5_000
    listener_ms: int = 100

    @property
    def release(self) -> Profile:
        """The profile that the coordinator and the members follow."""
        return PROFILES[self.profile]

    def settings(self) -> Settings:
        """Return the broker's settings. The least values are low, so that a session may be quick."""
        return Settings(
            group_min_session_timeout_ms=1_000,
            group_initial_rebalance_delay_ms=self.initial_delay_ms,
            group_consumer_session_timeout_ms=self.session_ms,
            group_consumer_min_session_timeout_ms=1_000,
            group_consumer_max_session_timeout_ms=600_000,
            group_consumer_heartbeat_interval_ms=self.heartbeat_ms,
            group_consumer_min_heartbeat_interval_ms=100,
            group_consumer_max_heartbeat_interval_ms=60_000,
        )

    def client(self, name: str, protocol: Protocol, *, static: bool) -> HostPlan:
        """Return the plan of a client that starts now."""
        instance = f"{name}-instance" if static else None
        settings: MemberSettings | ConsumerSettings
        if protocol is Protocol.CONSUMER:
            settings = ConsumerSettings(
                GROUP,
                group_instance_id=instance,
                max_poll_interval_ms=self.poll_interval_ms,
                auto_commit=True,
                profile=self.release,
            )
        else:
            settings = MemberSettings(
                GROUP,
                group_instance_id=instance,
                session_timeout_ms=self.session_ms,
                heartbeat_interval_ms=self.heartbeat_ms,
                max_poll_interval_ms=self.poll_interval_ms,
                auto_commit=True,
                assignors=(RangeAssignor() if protocol is Protocol.EAGER else CooperativeStickyAssignor(),),
                profile=self.release,
            )
        return HostPlan(
            name,
            settings,
            frozenset({TOPIC}),
            old=False,
            poll_every_ms=500,
            start_ms=0,
            listener_ms=self.listener_ms,
        )


def parse_start(data: object) -> Start:
    """Return the start in JSON data. Raises ``ActionError`` for an unknown field, and for a value out of bounds."""
    if not isinstance(data, dict):
        raise ActionError(f"start must be an object (got {type(data).__name__})")
    known = [field.name for field in fields(Start)]
    for name, value in data.items():
        if name not in known:
            raise ActionError(f"start has no field {name!r}; it has {', '.join(known)}")
        if name in BOUNDS:
            number("start", name, value, *BOUNDS[name])
        elif not isinstance(value, str) or value not in PROFILES:
            raise ActionError(f"start.{name} must be one of {', '.join(PROFILES)} (got {value!r})")
    start = replace(Start(), **data)
    if start.heartbeat_ms >= start.session_ms:
        raise ActionError(
            f"start.heartbeat_ms must be less than start.session_ms (got {start.heartbeat_ms} and {start.session_ms})"
        )
    return start


def number(where: str, name: str, value: Any, least: int, most: int) -> int:
    """Return the value if it is an integer within the bounds; else raise ``ActionError``."""
    if type(value) is not int or not least <= value <= most:
        raise ActionError(f"{where}.{name} must be an integer from {least} to {most} (got {value!r})")
    return value
