"""What the parts of a simulation see of it and of each other. ``run.Simulation`` is one."""

from __future__ import annotations

from random import Random
from typing import Protocol

from fencepost.protocol.events import Event, Topic

from .host import AnyHost, Surroundings, Wires
from .plan import HostPlan, NetworkPlan, Plan
from .session import WatchedSession


class Paths(Wires, Protocol):
    """The network; ``plan``: how bad it is now."""

    plan: NetworkPlan

    def delay(self) -> int:
        """How long a message is on its way, in ms."""


class Partition(Protocol):
    """The broker around the coordinator, see ``broker.Broker``."""

    topics: dict[str, Topic]
    tenure: int
    active: bool

    def fail_over(self, gap_ms: int) -> None: ...


class World(Surroundings, Protocol):
    """The whole of a simulation. ``now`` is virtual time in ms."""

    plan: Plan
    rng: Random
    core: WatchedSession
    hosts: list[AnyHost]

    @property
    def network(self) -> Paths: ...
    @property
    def broker(self) -> Partition: ...
    def feed(self, event: Event) -> None: ...
    def life(self, host: AnyHost) -> tuple[int, int]: ...
    def host(self, plan: HostPlan) -> AnyHost: ...
    def publish_topics(self) -> None: ...
