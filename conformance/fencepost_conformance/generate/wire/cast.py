"""The interfaces of the clients in a trace that is played over the wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.view import GroupView

from ..plan import Plan

_Program = TypeVar("_Program")

#: Sends a request that is not of a group API; it is noted like all others. Arguments: API, version, fields.
AskPlain: TypeAlias = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional producer, as the broker knows it."""

    transactional_id: str
    producer_id: int
    epoch: int


class ClientPlan(Protocol):
    """The fixed settings of a client."""

    @property
    def client_id(self) -> str: ...


class Player(Protocol):
    """A client program: its next request depends on the answers it got. ``silent``: it has crashed for a while."""

    silent: bool

    @property
    def plan(self) -> ClientPlan: ...

    def next_request(self, rng: Random, restart: float) -> tuple[int, RequestBody] | None: ...

    def sent(self, request_id: int, version: int, body: RequestBody) -> None: ...

    def answered(self, request_id: int, body: ResponseBody) -> None: ...


@dataclass(slots=True)
class ForgerKnowledge(Generic[_Program]):
    """A forger's knowledge of a played trace (``hostile.Surroundings``), without the state of groups."""

    plan: Plan
    clients: Sequence[_Program]
    known_ids: list[str] = field(default_factory=list)
    groups: dict[str, GroupView] = field(default_factory=dict)
    consumer_groups: dict[str, ConsumerGroupView] = field(default_factory=dict)
    strange_groups: Sequence[str] = ("",)


def group_names(prefix: str, step: int) -> Callable[[int], str]:
    """Return a function that names a trace's groups by number. Consecutive numbers are in consecutive partitions
    (F-LOC-02), which different brokers lead; with another ``step`` they are further apart."""
    return lambda number: f"{prefix}-{number * step}"


def groups_apart(prefix: str, nodes: int) -> tuple[str, ...]:
    """Return groups that no client joins: one for offsets alone, and one that is only asked for. None in a cluster,
    where other brokers may coordinate them."""
    return (f"{prefix}-simple", f"{prefix}-missing") if nodes == 1 else ()


def knowledge(plan: Plan, clients: Sequence[_Program], nodes: int) -> ForgerKnowledge[_Program]:
    """Return a forger's surroundings. In a cluster they lack the nameless group: another broker may coordinate it."""
    return ForgerKnowledge(plan, clients) if nodes == 1 else ForgerKnowledge(plan, clients, strange_groups=plan.groups)


class Cast(Protocol):
    """``groups``: the clients' groups, by their names on the broker. ``apart``: groups that no client joins.
    ``longest_s``: how long the clients' timeouts may park a request."""

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
        """Prepare before a client joins; noted in the trace. Raises ``CannotRun``."""

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """Act as an administrator during the trace; noted."""

    async def clear_away(self, ask: AskPlain) -> None:
        """Clean up after the trace; not noted."""

    def as_sent(self, body: RequestBody) -> RequestBody:
        """Return a request with the broker's names."""

    def aside(self, rng: Random, client: Player) -> tuple[int, RequestBody] | None:
        """Return a commit or a fetch that a client sends before its next request, or None."""

    def forged(self, rng: Random) -> tuple[int, RequestBody] | None:
        """Return a request that no client would send, and that is answered at once, or None."""

    def parked(self, rng: Random) -> tuple[int, RequestBody] | None:
        """Return such a request that the broker may answer late, JoinGroup or SyncGroup, or None."""

    def transaction(self, rng: Random, producer: Producer) -> tuple[int, RequestBody] | None:
        """Return a commit within a transaction; None where offsets are not tested."""

    def heard(self, body: ResponseBody) -> None:
        """Take note of an answer to any client."""
