"""The offsets topic of a running cluster, followed: first its records so far, then those that are added.

A partition that cannot be read now is tried again later, and ``problems`` says why. Positions survive the loss of the
cluster. A partition whose position is no longer in the log is read again from its first record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from fencepost_server.data.batches import CorruptBatch, OldBatch, batches

from ..wire.brokers import Brokers, Failed
from ..wire.questions import Questions
from .batches import Unreadable, rows_of
from .fetching import EARLIEST, LATEST, NEEDS, Refused, fetch, offsets_at
from .rows import TOPIC, LogRow, Notices

#: bytes in one answer: the records of an answer are decoded at one go
_PIECE: Final = 1 << 20
#: seconds until a partition that could not be read is tried again
_AGAIN_S: Final = 5.0
_NO_ROW: Final = Refused("the broker does not answer for this partition")


@dataclass(frozen=True, slots=True)
class Piece:
    """Records of one partition, in order. ``live``: how many of them, at the end, were added since the reading of the
    partition began. ``restarted``: the partition is read from its first record, and what it contained before does not
    count."""

    partition: int
    rows: tuple[LogRow, ...] = ()
    live: int = 0
    restarted: bool = False


@dataclass(slots=True)
class _Place:
    """A partition: the next offset to read, and the end of the log when the reading began."""

    offset: int
    end: int


class Follower:
    """Reads the topic from its first record on. ``problems``: why partitions are not read at the moment, by partition;
    -1: the whole topic. ``notices``: batches that cannot be read."""

    def __init__(self, brokers: Brokers, notices: Notices) -> None:
        self.problems: dict[int, str] = {}
        self._brokers = brokers
        self._notices = notices
        self._leaders: dict[int, int] = {}
        self._places: dict[int, _Place] = {}
        self._again_at: dict[int, float] = {}
        self._turn = 0
        self._absent = False  #: whether the topic did not exist at first, so that all its records are new

    @property
    def backlog(self) -> int | None:
        """The offsets between the positions and the ends when the reading began; None before the first read."""
        if not self._leaders.keys() <= self._places.keys() | self.problems.keys():
            return None
        if not self._leaders and not self.problems:
            return None
        return sum(max(each.end - each.offset, 0) for each in self._places.values())

    async def read(self, wait_ms: int) -> list[Piece]:
        """Return the next records; wait for them up to ``wait_ms``. Raises ``Failed`` if the cluster is away."""
        if not self._leaders and not await self._lead():
            return []
        now = asyncio.get_running_loop().time()
        by_node: dict[int, list[int]] = {}
        for partition, node in self._leaders.items():
            if self._again_at.get(partition, 0.0) <= now:
                by_node.setdefault(node, []).append(partition)
        if not by_node:
            await asyncio.sleep(wait_ms / 1_000)
        read = [self._from(node, partitions, wait_ms) for node, partitions in by_node.items()]
        found = await asyncio.gather(*read, return_exceptions=True)
        pieces: list[Piece] = []
        for (_, partitions), one in zip(by_node.items(), found, strict=True):
            if isinstance(one, BaseException):
                if not isinstance(one, (*Failed, Refused)):
                    raise one
                self.problems |= dict.fromkeys(partitions, str(one))
                self._leaders = {}
            else:
                pieces += one
        failed = [one for one in found if isinstance(one, Failed)]
        if failed and len(failed) == len(found):
            raise failed[0]
        return pieces

    async def _lead(self) -> bool:
        """Look up the leaders; return whether the topic can be read."""
        (topic,) = await self._brokers.topics([TOPIC])
        code = topic.error_code
        if code is not Code.none:
            self._absent = self._absent or code is Code.unknown_topic_or_partition
            self.problems.clear()
            self.problems[-1] = f"{TOPIC} cannot be read: {_reason(code)}"
            await asyncio.sleep(_AGAIN_S / 10)
            return False
        self.problems.pop(-1, None)
        self._leaders = {int(each.partition_index): int(each.leader_id) for each in topic.partitions}
        return True

    def _problem(self, partition: int, text: str) -> None:
        self.problems[partition] = text
        self._again_at[partition] = asyncio.get_running_loop().time() + _AGAIN_S

    async def _from(self, node: int, partitions: list[int], wait_ms: int) -> list[Piece]:
        """Read partitions from their leader."""
        broker = await self._brokers.node(node)
        pieces: list[Piece] = []
        fresh = [partition for partition in partitions if partition not in self._places]
        if fresh:
            pieces += await self._begin(broker, fresh)
        known = [partition for partition in partitions if partition in self._places]
        if not known:
            return pieces
        self._turn = (self._turn + 1) % len(known)  # an answer has a limit, so another partition is the first each time
        known = known[self._turn :] + known[: self._turn]
        offsets = {partition: self._places[partition].offset for partition in known}
        for partition, data in (await fetch(broker, offsets, wait_ms=wait_ms, piece=_PIECE)).items():
            if isinstance(data, Refused):
                await self._refused(partition, data)
                continue
            self.problems.pop(partition, None)
            rows = tuple(self._rows(partition, data))
            if rows:
                end = self._places[partition].end
                pieces.append(Piece(partition, rows, sum(row.offset >= end for row in rows)))
        return pieces

    async def _begin(self, broker: Questions, partitions: list[int]) -> list[Piece]:
        """Begin to read partitions from their first records."""
        first, end = await offsets_at(broker, partitions, EARLIEST), await offsets_at(broker, partitions, LATEST)
        pieces = []
        for partition in partitions:
            begin, until = first.get(partition, _NO_ROW), end.get(partition, _NO_ROW)
            if isinstance(begin, Refused) or isinstance(until, Refused):
                self._problem(partition, str(begin if isinstance(begin, Refused) else until))
                continue
            self._places[partition] = _Place(begin, begin if self._absent else until)
            pieces.append(Piece(partition, restarted=True))
        return pieces

    async def _refused(self, partition: int, refused: Refused) -> None:
        if refused.code is Code.offset_out_of_range:
            place = self._places.pop(partition)
            self._notices.add(
                f"partition {partition}: offset {place.offset} is no longer in the log; it is read again from its start"
            )
            return
        if refused.code in (Code.not_leader_or_follower, Code.unknown_topic_or_partition):
            self._leaders = {}
        self._problem(partition, str(refused))

    def _rows(self, partition: int, data: bytes) -> Iterator[LogRow]:
        place = self._places[partition]
        try:
            for batch in batches(data):
                begin = place.offset
                try:
                    for row in rows_of(batch, partition):
                        if row.offset >= begin:
                            yield row
                except Unreadable as wrong:
                    self._notices.add(f"partition {partition}: {wrong}; these records are missing")
                place.offset = max(begin, batch.last + 1)
        except (CorruptBatch, OldBatch) as wrong:
            self._problem(partition, f"at offset {place.offset}: {wrong}")


def _reason(code: Any) -> str:
    if code is Code.topic_authorization_failed:
        return f"no right to read it; {NEEDS}"
    if code is Code.unknown_topic_or_partition:
        return "it does not exist; no group has used this cluster yet"
    return str(code.name)
