"""How much may happen in an exploration, and what the moves of its clients are chosen from."""

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
    """A request that a client may send now: who sends it, and what it does. ``wait_ms``: it comes so much later."""

    who: str
    what: str
    body: RequestBody
    wait_ms: int = 0


class Scene(NamedTuple):
    """What can be seen now: the group, of the one kind or the other, how many member ids were handed out, the time."""

    classic: GroupView | None
    consumer: ConsumerGroupView | None
    made: int
    now: int


@dataclass(frozen=True, slots=True)
class Client:
    """A process that speaks the protocol of KIP-848. ``subscriptions``: what it may subscribe to, names or a regex."""

    member_id: str
    instance_id: str | None = None
    subscriptions: tuple[tuple[str, ...] | str, ...] = (("t",),)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much may happen.

    ``ids``: member ids that the coordinator ever hands out. ``generation``: classic members do not rejoin in it; None
    if they always do, and states are then equal up to the order of their epochs. ``depth``: events of one run.
    ``prompt``: the next event after a write is its replication or its failure. ``images``: the topics, first those from
    the start, then what they become.
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
    """``trail``: the events of a shortest run to the ``problem``. ``states``: those that are told apart; ``inputs`` and
    ``answers``: how often each kind of event and each error code was seen."""

    states: int
    transitions: int
    complete: bool
    inputs: dict[str, int]
    answers: dict[str, int]
    problem: str | None = None
    trail: tuple[str, ...] = ()


#: What clients may do next.
Moves: TypeAlias = Callable[[Bounds, Scene], Iterator[Move]]
