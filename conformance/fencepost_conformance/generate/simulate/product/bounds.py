"""The bounds of an exploration, and the values that its clients' moves use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

GROUP = "g"


class Move(NamedTuple):
    """A request that a client may send now: its sender and its meaning. ``wait_ms``: it is sent that much later."""

    who: str
    what: str
    body: RequestBody
    wait_ms: int = 0


class Scene(NamedTuple):
    """The visible state: the group, of either kind, the number of member ids handed out, and the time."""

    classic: GroupView | None
    consumer: ConsumerGroupView | None
    made: int
    now: int


@dataclass(frozen=True, slots=True)
class Client:
    """A process that uses the protocol of KIP-848. ``subscriptions``: possible subscriptions, names or a regex."""

    member_id: str
    instance_id: str | None = None
    subscriptions: tuple[tuple[str, ...] | str, ...] = (("t",),)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of an exploration.

    ``ids``: number of member ids that the coordinator may hand out. ``generation``: the generation in which classic
    members stop rejoining; None if they always rejoin, and states are then equal up to the order of their epochs.
    ``depth``: events of one run. ``prompt``: the next event after a write is its replication or its failure.
    ``images``: the initial topics, then their later versions.
    """

    ids: int = 3
    generation: int | None = 2
    depth: int = 12
    transitions: int = 10_000
    max_size: int = 2
    static: bool = True
    prompt: bool = False
    settings: Settings = field(
        default_factory=lambda: Settings(group_min_session_timeout_ms=1, group_initial_rebalance_delay_ms=10)
    )
    profile: Profile = INTENDED
    clients: tuple[Client, ...] = ()
    images: tuple[tuple[Topic, ...], ...] = ((),)


@dataclass(frozen=True, slots=True)
class Explored:
    """The result. ``trail``: the events of a shortest run to ``problem``. ``states``: number of distinct states.
    ``inputs`` and ``answers``: how often each kind of event and each error code occurred."""

    states: int
    transitions: int
    complete: bool
    inputs: dict[str, int]
    answers: dict[str, int]
    problem: str | None = None
    trail: tuple[str, ...] = ()


#: Generates the next requests of clients.
Moves: TypeAlias = Callable[[Bounds, Scene], Iterator[Move]]
