"""The interfaces between the parts of a simulation. ``run.Simulation`` is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Protocol

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Event, Request, TimerKey, Topic
from fencepost.protocol.view import GroupView

from .host import AnyHost, Surroundings, Wires
from .plan import HostPlan, NetworkPlan, Plan


class Paths(Wires, Protocol):
    """The network. ``plan``: how bad it is now."""

    plan: NetworkPlan

    def delay(self) -> int:
        """Draw the delay of a message, in ms."""


class Partition(Protocol):
    """The broker around the coordinator, see ``broker.Broker``."""

    topics: dict[str, Topic]
    leader_epoch: int

    @property
    def active(self) -> bool: ...
    def fail_over(self, gap_ms: int) -> None: ...


class Coordinators(Protocol):
    """The views of the groups from their coordinators. ``unanswered``: requests that still wait."""

    @property
    def groups(self) -> Mapping[str, GroupView]: ...
    @property
    def consumer_groups(self) -> Mapping[str, ConsumerGroupView]: ...
    @property
    def armed(self) -> Mapping[TimerKey, int]: ...
    @property
    def unanswered(self) -> Sequence[Request]: ...


class World(Surroundings, Protocol):
    """The whole of a simulation. ``now`` is virtual time in ms."""

    plan: Plan
    rng: Random
    hosts: list[AnyHost]

    @property
    def core(self) -> Coordinators: ...
    @property
    def network(self) -> Paths: ...
    @property
    def broker(self) -> Partition: ...
    def feed(self, event: Event) -> None: ...
    def life(self, host: AnyHost) -> tuple[int, int]: ...
    def host(self, plan: HostPlan) -> AnyHost: ...
    def publish_topics(self) -> None: ...
