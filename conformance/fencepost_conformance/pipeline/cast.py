"""Who takes part in a trace that is played over the wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.view import GroupView

from ..generate.plan import Plan

_Program = TypeVar("_Program")

#: Sends a request that is no group's, noted like all others: API, version, fields.
AskPlain: TypeAlias = Callable[..., Awaitable[Any]]


class ClientPlan(Protocol):
    """What is fixed of a client."""

    @property
    def client_id(self) -> str: ...


class Player(Protocol):
    """A client program: what it sends next goes by the answers it has got. ``silent``: it has crashed for a while."""

    silent: bool

    @property
    def plan(self) -> ClientPlan: ...

    def next_request(self, rng: Random, restart: float) -> tuple[int, RequestBody] | None: ...

    def sent(self, request_id: int, version: int, body: RequestBody) -> None: ...

    def answered(self, request_id: int, body: ResponseBody) -> None: ...


@dataclass(slots=True)
class Around(Generic[_Program]):
    """What a forger can know of a trace that is played (``hostile.Surroundings``): not how groups stand."""

    plan: Plan
    clients: Sequence[_Program]
    known_ids: list[str] = field(default_factory=list)
    groups: dict[str, GroupView] = field(default_factory=dict)
    consumer_groups: dict[str, ConsumerGroupView] = field(default_factory=dict)
    strange_groups: Sequence[str] = ("",)


def group_names(prefix: str, step: int) -> Callable[[int], str]:
    """The names of a trace's groups by their number. Numbers that follow each other lie in partitions that do so
    (F-LOC-02), which different brokers lead; those of another ``step`` lie farther apart."""
    return lambda number: f"{prefix}-{number * step}"


def around(plan: Plan, clients: Sequence[_Program], nodes: int) -> Around[_Program]:
    """In a cluster a group of no name may be coordinated by another broker, so that a forger leaves it alone."""
    return Around(plan, clients) if nodes == 1 else Around(plan, clients, strange_groups=plan.groups)


class Cast(Protocol):
    """``groups``: by their names on the broker. ``longest_s``: how long a request may be parked by what clients say."""

    @property
    def groups(self) -> Sequence[str]: ...

    @property
    def clients(self) -> Sequence[Player]: ...

    @property
    def restart(self) -> float: ...

    @property
    def longest_s(self) -> float: ...

    async def set_up(self, ask: AskPlain) -> None:
        """Before anybody joins; noted in the trace. Raises ``CannotRun``."""

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """What an administrator does while they play; noted."""

    async def clear_away(self, ask: AskPlain) -> None:
        """Afterwards, and not noted."""

    def as_sent(self, body: RequestBody) -> RequestBody:
        """A request in the broker's names."""

    def forged(self, rng: Random) -> tuple[int, RequestBody]:
        """What no client would send, and is answered at once."""

    def heard(self, body: ResponseBody) -> None:
        """An answer that any client got."""
