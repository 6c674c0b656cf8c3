"""Requests to a leader of partitions of the offsets topic: the first and last offsets, and the batches between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kio.schema.errors import ErrorCode as Code

from ..wire.questions import Questions
from .rows import TOPIC

EARLIEST: Final = -2
LATEST: Final = -1
#: bytes of a partition in one answer
PIECE: Final = 4 << 20
NEEDS: Final = f"the rights DESCRIBE and READ on the topic {TOPIC} are needed"


class Refused(Exception):
    """The broker refused to read a partition. ``code``: kio's error code."""

    def __init__(self, text: str, code: Any = None) -> None:
        super().__init__(text)
        self.code = code


def _refusal(code: Any) -> Refused | None:
    """Return the refusal that an error code stands for."""
    if code is Code.topic_authorization_failed:
        return Refused(f"no right to read it; {NEEDS}", code)
    return None if code is Code.none else Refused(code.name, code)


async def offsets_at(broker: Questions, partitions: Iterable[int], time: int) -> dict[int, int | Refused]:
    """Return the first offset (``EARLIEST``) of each partition, or its end (``LATEST``)."""
    rows = [{"partition_index": each, "current_leader_epoch": -1, "timestamp": time} for each in partitions]
    answer = await broker.ask(
        "list_offsets", 1, 7, replica_id=-1, isolation_level=0, topics=[{"name": TOPIC, "partitions": rows}]
    )
    found: dict[int, int | Refused] = {}
    for row in answer.topics[0].partitions if answer.topics else ():
        found[int(row.partition_index)] = _refusal(row.error_code) or int(row.offset)
    return found


async def offset_at(broker: Questions, partition: int, time: int) -> int:
    """Return the offset of one partition. Raises ``Refused``."""
    found = (await offsets_at(broker, [partition], time))[partition]
    if isinstance(found, Refused):
        raise found
    return found


async def fetch(
    broker: Questions, offsets: Mapping[int, int], *, least: int = 1, wait_ms: int = 500, piece: int = PIECE
) -> dict[int, bytes | Refused]:
    """Return the batches from these offsets on, by partition, or why the broker refuses them. ``least``: bytes to wait
    for, up to ``wait_ms``. Raises ``Refused`` if the broker refuses the whole request."""
    rows: list[dict[str, Any]] = [
        {
            "partition": partition,
            "current_leader_epoch": -1,
            "fetch_offset": offset,
            "last_fetched_epoch": -1,
            "log_start_offset": -1,
            "partition_max_bytes": piece,
        }
        for partition, offset in offsets.items()
    ]
    answer = await broker.ask(
        "fetch",
        4,
        12,
        replica_id=-1,
        max_wait=wait_ms,
        min_bytes=least,
        max_bytes=piece,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": TOPIC, "partitions": rows}],
        forgotten_topics_data=[],
    )
    whole = _refusal(getattr(answer, "error_code", Code.none))
    if whole is not None:
        raise whole
    found: dict[int, bytes | Refused] = {}
    for row in answer.responses[0].partitions if answer.responses else ():
        found[int(row.partition_index)] = _refusal(row.error_code) or bytes(row.records or b"")
    return found
