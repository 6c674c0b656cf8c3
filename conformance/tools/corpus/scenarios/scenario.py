"""The class of scenarios, and steps that many of them share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..stage import Player, Stage

PYTHON = ("confluent-kafka", "kafka-python", "aiokafka")
ALL = (*PYTHON, "java")
#: aiokafka has no cooperative assignor.
COOPERATIVE = ("confluent-kafka", "kafka-python", "java")
#: librdkafka's sticky assignor is its cooperative one.
STICKY = ("kafka-python", "aiokafka", "java")
#: Libraries with the consumer protocol (KIP-848).
CONSUMER = ("confluent-kafka", "java")


@dataclass(frozen=True, slots=True)
class Scenario:
    """``play``: the function of that name; played with each of ``libraries``. ``about``: text in the traces'
    headers."""

    name: str
    play: Callable[[Stage], Awaitable[None]]
    libraries: tuple[str, ...]
    assignors: tuple[str, ...]
    about: str
    initial_delay_ms: int  #: of the broker
    protocol: str = "classic"  #: the default of its members
    own_broker: bool = False  #: it disturbs the broker, so it cannot share one
    topics_before: bool = False  #: its topics exist before the recording begins
    seeks: bool = False  #: its members seek instead of using the group's offsets

    @property
    def title(self) -> str:
        return self.name.replace("_", "-")


SCENARIOS: dict[str, Scenario] = {}
_Play = Callable[[Stage], Awaitable[None]]


def scenario(  # noqa: PLR0917
    libraries: tuple[str, ...] = ALL,
    assignors: tuple[str, ...] = ("range",),
    initial_delay_ms: int = 500,
    protocol: str = "classic",
    own_broker: bool = False,
    seeks: bool = False,
    topics_before: bool = False,
) -> Callable[[_Play], _Play]:
    """Register the decorated function as a scenario."""

    def register(play: _Play) -> _Play:
        name = getattr(play, "__name__", "")
        about = (play.__doc__ or "").strip().removesuffix(".")
        SCENARIOS[name] = Scenario(
            name, play, libraries, assignors, about, initial_delay_ms, protocol, own_broker, topics_before, seeks
        )
        return play

    return register


async def quiet(seconds: float = 1.2) -> None:
    """Let some heartbeats pass."""
    await asyncio.sleep(seconds)


async def leader_and_follower(stage: Stage, **settings: Any) -> tuple[Player, Player]:
    """Return two members, of which the first was in the group before the second joined."""
    one = await stage.member("one", **settings)
    await stage.settled(one)
    two = await stage.member("two", **settings)
    await stage.settled(one, two)
    return one, two


async def static_pair(stage: Stage) -> tuple[Player, Player]:
    """Return two static members that join at once, with instance ids s1 and s2."""
    one = await stage.member("one", instance_id="s1")
    two = await stage.member("two", instance_id="s2")
    await stage.settled(one, two)
    return one, two
