"""The offsets topic of a running cluster, read once from its first record to its end. Nothing is written.

A partition is read from its leader. The end is that of the moment at which the reading of the partition begins, so a
busy cluster does not keep the reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from kio.schema.errors import ErrorCode as Code

from fencepost.sharding import partition_for
from fencepost_server.data.batches import CorruptBatch, OldBatch, batches

from ...common.addresses import Address
from ...common.errors import CannotRun
from ..wire.access import Access
from ..wire.brokers import Brokers, Failed, require_topics
from ..wire.questions import Questions
from .batches import Unreadable, rows_of
from .fetching import EARLIEST, LATEST, NEEDS, Refused, fetch, offset_at
from .rows import TOPIC, LogRow, Notices


async def _leaders(brokers: Brokers) -> dict[int, int]:
    """Return the leader of each partition. Raises ``CannotRun``."""
    (topic,) = await require_topics(brokers, [TOPIC])
    if topic.error_code is Code.topic_authorization_failed:
        raise CannotRun(f"{brokers.at}: no right to read {TOPIC}; {NEEDS}")
    if topic.error_code is Code.unknown_topic_or_partition:
        raise CannotRun(f"{brokers.at}: there is no topic {TOPIC}; no group has used this cluster yet")
    if topic.error_code is not Code.none:
        raise CannotRun(f"{brokers.at}: {TOPIC} cannot be read: {topic.error_code.name}")
    return {int(each.partition_index): int(each.leader_id) for each in topic.partitions}


def read_topic(at: Address, access: Access, notices: Notices, group: str | None = None) -> Iterator[LogRow]:
    """Yield the records of the topic; with ``group``, only those of its partition. Raises ``CannotRun`` if none can be
    read; a partition that cannot be read is noted."""
    with asyncio.Runner() as runner:
        brokers = Brokers(at, access)
        try:
            leaders = runner.run(_leaders(brokers))
            if group is not None and leaders:
                number = partition_for(group, len(leaders))
                leaders = {number: leaders.get(number, -1)}
            failed: list[str] = []
            for partition, node in sorted(leaders.items()):
                try:
                    yield from _partition(runner, runner.run(brokers.node(node)), partition, notices)
                except (*Failed, Refused) as wrong:
                    failed.append(str(wrong))
                    notices.add(f"partition {partition} cannot be read further: {wrong}")
            if failed and len(failed) == len(leaders):
                raise CannotRun(f"{at}: {TOPIC} cannot be read: {failed[0]}")
        finally:
            runner.run(brokers.close())


def _partition(runner: asyncio.Runner, broker: Questions, partition: int, notices: Notices) -> Iterator[LogRow]:
    offset = runner.run(offset_at(broker, partition, EARLIEST))
    end = runner.run(offset_at(broker, partition, LATEST))
    if offset >= end:
        runner.run(_fetched(broker, partition, offset, least=0))  # tells whether the client may read it
    while offset < end:
        data = runner.run(_fetched(broker, partition, offset))
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
            raise Refused(f"at offset {offset}: {wrong}") from None
        if offset == before:
            raise Refused(f"the broker returned no record at offset {offset}, below the end {end}")


async def _fetched(broker: Questions, partition: int, offset: int, least: int = 1) -> bytes:
    found = (await fetch(broker, {partition: offset}, least=least))[partition]
    if isinstance(found, Refused):
        raise found
    return found
