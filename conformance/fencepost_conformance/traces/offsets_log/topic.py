"""The offsets topic of a running cluster, read once from its first record to its end. Nothing is written.

A partition is read from its leader. The end is that of the moment at which the reading of the partition begins, so a
busy cluster does not keep the reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from fencepost.sharding import partition_for
from fencepost.wire.frames import MalformedFrame
from fencepost_server.data.batches import CorruptBatch, OldBatch, batches

from ...common.addresses import Address
from ...common.errors import CannotRun
from ..wire.access import Access
from ..wire.questions import Questions, questions
from .batches import Unreadable, rows_of
from .rows import TOPIC, LogRow, Notices

_EARLIEST: Final = -2
_LATEST: Final = -1
#: bytes of a partition in one answer
_PIECE: Final = 4 << 20
_NEEDS: Final = f"the rights DESCRIBE and READ on the topic {TOPIC} are needed"


class _Cluster:
    """Connections to the brokers of a cluster."""

    def __init__(self, at: Address, access: Access) -> None:
        self._at = at
        self._access = access
        self._stack = AsyncExitStack()
        self._brokers: dict[int, Address] = {}
        self._open: dict[Address, Questions] = {}

    async def partitions(self) -> dict[int, int]:
        """Return the leader of each partition. Raises ``CannotRun``."""
        first = await self._to(self._at)
        answer = await first.ask(
            "metadata", 4, 12, topics=[{"name": TOPIC, "topic_id": None}], allow_auto_topic_creation=False
        )
        self._brokers = {int(each.node_id): Address(str(each.host), int(each.port)) for each in answer.brokers}
        (topic,) = answer.topics
        if topic.error_code is Code.topic_authorization_failed:
            raise CannotRun(f"{self._at}: no right to read {TOPIC}; {_NEEDS}")
        if topic.error_code is Code.unknown_topic_or_partition:
            raise CannotRun(f"{self._at}: there is no topic {TOPIC}; no group has used this cluster yet")
        if topic.error_code is not Code.none:
            raise CannotRun(f"{self._at}: {TOPIC} cannot be read: {topic.error_code.name}")
        return {int(each.partition_index): int(each.leader_id) for each in topic.partitions}

    async def _to(self, at: Address) -> Questions:
        if at not in self._open:
            self._open[at] = await self._stack.enter_async_context(questions(at.host, at.port, self._access))
        return self._open[at]

    async def leader(self, node: int) -> Questions:
        """Return a connection to a broker."""
        if node not in self._brokers:
            raise ConnectionError("the partition has no leader")
        return await self._to(self._brokers[node])

    async def close(self) -> None:
        await self._stack.aclose()


async def _offset(broker: Questions, partition: int, time: int) -> int:
    rows = [{"partition_index": partition, "current_leader_epoch": -1, "timestamp": time}]
    answer = await broker.ask(
        "list_offsets", 1, 7, replica_id=-1, isolation_level=0, topics=[{"name": TOPIC, "partitions": rows}]
    )
    (row,) = answer.topics[0].partitions
    _require(row.error_code)
    return int(row.offset)


async def _fetch(broker: Questions, partition: int, offset: int, least: int = 1) -> bytes:
    rows: list[dict[str, Any]] = [
        {
            "partition": partition,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": _PIECE,
        }
    ]
    answer = await broker.ask(
        "fetch",
        4,
        12,
        replica_id=-1,
        max_wait=500,
        min_bytes=least,
        max_bytes=_PIECE,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": TOPIC, "partitions": rows}],
        forgotten_topics_data=[],
    )
    if getattr(answer, "error_code", Code.none) is not Code.none:
        _require(answer.error_code)
    (row,) = answer.responses[0].partitions
    _require(row.error_code)
    return bytes(row.records or b"")


def _require(code: Any) -> None:
    if code is Code.topic_authorization_failed:
        raise _Refused(f"no right to read it; {_NEEDS}")
    if code is not Code.none:
        raise _Refused(code.name)


class _Refused(Exception):
    """The broker refused to read a partition."""


def read_topic(at: Address, access: Access, notices: Notices, group: str | None = None) -> Iterator[LogRow]:
    """Yield the records of the topic; with ``group``, only those of its partition. Raises ``CannotRun`` if none can be
    read; a partition that cannot be read is noted."""
    with asyncio.Runner() as runner:
        cluster = _Cluster(at, access)
        try:
            try:
                leaders = runner.run(cluster.partitions())
            except (OSError, MalformedFrame) as wrong:
                raise CannotRun(f"{at}: {wrong}") from None
            if group is not None and leaders:
                number = partition_for(group, len(leaders))
                leaders = {number: leaders.get(number, -1)}
            failed: list[str] = []
            for partition, node in sorted(leaders.items()):
                try:
                    yield from _partition(runner, cluster, partition, node, notices)
                except (OSError, MalformedFrame, _Refused) as wrong:
                    failed.append(str(wrong))
                    notices.add(f"partition {partition} cannot be read further: {wrong}")
            if failed and len(failed) == len(leaders):
                raise CannotRun(f"{at}: {TOPIC} cannot be read: {failed[0]}")
        finally:
            runner.run(cluster.close())


def _partition(
    runner: asyncio.Runner, cluster: _Cluster, partition: int, node: int, notices: Notices
) -> Iterator[LogRow]:
    broker = runner.run(cluster.leader(node))
    offset = runner.run(_offset(broker, partition, _EARLIEST))
    end = runner.run(_offset(broker, partition, _LATEST))
    if offset >= end:
        runner.run(_fetch(broker, partition, offset, least=0))  # tells whether the client may read it
    while offset < end:
        data = runner.run(_fetch(broker, partition, offset))
        before = offset
        try:
            for batch in batches(data):
                try:
                    for row in rows_of(batch, partition):
                        if row.offset >= offset:
                            yield row
                except Unreadable as wrong:
                    notices.add(f"partition {partition}: {wrong}; these records are missing")
                offset = max(offset, batch.last + 1)
        except (CorruptBatch, OldBatch) as wrong:
            raise _Refused(f"at offset {offset}: {wrong}") from None
        if offset == before:
            raise _Refused(f"the broker returned no record at offset {offset}, below the end {end}")
