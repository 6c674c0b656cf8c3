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


@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional producer, as the broker knows it."""

    transactional_id: str
    producer_id: int
    epoch: int


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


def groups_apart(prefix: str, nodes: int) -> tuple[str, ...]:
    """Groups that no client joins: one for offsets alone, and one that is only asked for. None in a cluster, where
    other brokers may coordinate them."""
    return (f"{prefix}-simple", f"{prefix}-missing") if nodes == 1 else ()


def around(plan: Plan, clients: Sequence[_Program], nodes: int) -> Around[_Program]:
    """In a cluster a group of no name may be coordinated by another broker, so that a forger leaves it alone."""
    return Around(plan, clients) if nodes == 1 else Around(plan, clients, strange_groups=plan.groups)


class Cast(Protocol):
    """``groups``: those of clients, by their names on the broker. ``apart``: groups that no client joins.
    ``longest_s``: how long a request may be parked by what clients say."""

    apart: Sequence[str]

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

    def aside(self, rng: Random, client: Player) -> tuple[int, RequestBody] | None:
        """A commit or a fetch that a client sends before its next request, if any."""

    def forged(self, rng: Random) -> tuple[int, RequestBody] | None:
        """A request that no client would send, and that is answered at once."""

    def parked(self, rng: Random) -> tuple[int, RequestBody] | None:
        """Likewise one that the broker may answer late: JoinGroup or SyncGroup."""

    def transaction(self, rng: Random, producer: Producer) -> tuple[int, RequestBody] | None:
        """A commit within a transaction; None where offsets are not tested."""

    def heard(self, body: ResponseBody) -> None:
        """An answer that any client got."""
