"""The predicted state after the requests of a script, from which its next ones are drawn; it may be wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar
from zlib import crc32

from fencepost_server.apis.table import TABLE

from .script import OWN, Kept, Move

_RANGES: Final = {api.name: range(max(api.low, api.least), api.high + 1) for api in TABLE.values()}
_T = TypeVar("_T")
Partition = tuple[str, int]
Path = tuple[str | int, ...]

#: an id that no broker generates
NO_TOPIC_ID: Final = b"\x07" * 16
#: a producer id that no broker generates
NO_PRODUCER_ID: Final = 10**15
#: the id of a fetch session that no broker has
NO_SESSION: Final = 77
MOST_PARTITIONS: Final = 3


@dataclass(slots=True)
class Producer:
    """A producer. ``name``: of its id and epoch among the kept values. ``transactional_id``: None for an idempotent
    producer. ``sequences``: the next one of each partition. ``open``: partitions of the open transaction. ``last``: its
    last batches, to send them again."""

    name: str
    transactional_id: str | None = None
    sequences: dict[Partition, int] = field(default_factory=dict)
    open: set[Partition] = field(default_factory=set)
    ongoing: bool = False
    last: list[tuple[Partition, Any]] = field(default_factory=list)

    def id(self) -> Kept:
        return Kept(f"{self.name} id", NO_PRODUCER_ID)

    def epoch(self, plus: int = 0) -> Kept:
        return Kept(f"{self.name} epoch", 0, plus)

    @property
    def keeps(self) -> dict[str, Path]:
        """The paths of its id and epoch in an answer."""
        return {f"{self.name} id": ("producer_id",), f"{self.name} epoch": ("producer_epoch",)}

    def bump(self) -> None:
        """Note a new epoch, with which sequences begin again."""
        self.sequences.clear()
        self.open.clear()
        self.last.clear()
        self.ongoing = False


@dataclass(slots=True)
class Session:
    """A fetch session. ``epoch``: that of its next request. ``by_id``: requests name its topics by id. ``partitions``:
    the partitions in it."""

    name: str
    by_id: bool
    epoch: int = 1
    partitions: set[Partition] = field(default_factory=set)

    def id(self) -> Kept:
        return Kept(f"{self.name} id", NO_SESSION)

    @property
    def keeps(self) -> dict[str, Path]:
        """The path of its id in an answer."""
        return {f"{self.name} id": ("session_id",)}


@dataclass(slots=True)
class World:
    """The predicted state. ``topics``: partitions by name. ``ends``: the next offset of each partition. ``now_ms``: the
    time of the next batch. ``with_settings``: the topic whose settings are changed exists."""

    rng: Random
    topics: dict[str, int] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    producers: list[Producer] = field(default_factory=list)
    ends: dict[Partition, int] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    now_ms: int = 0
    with_settings: bool = False

    def version(self, api: str, least: int = 0, most: int = 99) -> int:
        """A random version of the API, among those that serve announces."""
        return self.rng.choice([each for each in _RANGES[api] if least <= each <= most])

    def move(
        self, api: str, values: dict[str, Any], keeps: Mapping[str, Path] | None = None, *, version: int | None = None
    ) -> Move:
        """A request of that version, or of a random one. ``keeps``: as in ``Move``."""
        return Move(api, self.version(api) if version is None else version, values, keeps or {})

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choice(self, rows: Sequence[_T]) -> _T:
        return self.rng.choice(rows)

    def some(self, rows: Sequence[_T], most: int = 3) -> list[_T]:
        """Some of the values, each once."""
        return self.rng.sample(rows, min(len(rows), self.rng.randint(1, most)))

    def topic(self) -> str:
        """A topic, which usually exists."""
        if not self.topics or self.chance(0.05):
            return self.choice([f"{OWN}nobody", *sorted(self.gone)])
        return self.choice(sorted(self.topics))

    def partition(self) -> Partition:
        """A partition, which usually exists."""
        name = self.topic()
        count = self.topics.get(name, 1)
        return name, self.choice((count, -1, 99)) if self.chance(0.04) else self.rng.randrange(count)

    def partitions(self, most: int = 4) -> dict[str, list[int]]:
        """Several partitions, by topic."""
        found: dict[str, list[int]] = {}
        for _ in range(self.rng.randint(1, most)):
            name, index = self.partition()
            if index not in found.setdefault(name, []):
                found[name].append(index)
        return found

    def topic_id(self, name: str) -> Kept:
        """The id that the topic has or had."""
        return Kept(f"{name} topic id", NO_TOPIC_ID[:12] + crc32(name.encode()).to_bytes(4, "big"))

    def offset(self, partition: Partition) -> int:
        """An offset in the partition, or near its ends."""
        end = self.ends.get(partition, 0)
        if self.chance(0.15):
            return self.choice((-1, -2, end + 1, end + 50, 1 << 40))
        return self.choice((0, end, self.rng.randint(0, max(end, 0)), max(end - 1, 0)))

    def leader_epoch(self) -> int:
        return self.choice((-1, -1, -1, -1, 0, 0, 1, -2)) if self.chance(0.3) else -1
