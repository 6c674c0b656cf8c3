"""Transactional ids whose producer epochs are almost used up, on both brokers from the start.

After epoch 32,766 a producer gets another id. To get there by requests would take 32,766 of them, so both brokers start
in that state: Kafka loads it from records of its transaction log at a restart, serve from rows of its store.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from io import BytesIO
from random import Random
from typing import Any, Final

from kio.records.schema import NewRecordBatch, Record
from kio.records.writers import write_new_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from fencepost.store import Change, Put
from fencepost_server.transactions.coordinator import KIND
from fencepost_server.transactions.state import LAST_EPOCH, Transaction

#: producer ids that no broker generates; each seed has others, because partitions remember their epochs
_FIRST_ID: Final = 10**12
_OF_A_SEED: Final = 10**5
_TIMEOUT_MS: Final = 60_000
#: how far below the last epoch a script begins
_BELOW: Final = (0, 0, 1, 2, 4)
#: Kafka's transaction log, to which this client may write
_LOG: Final = "__transaction_state"
CLIENT: Final = "__admin_client"
PRODUCE: Final = 9
#: the fields of a value of version 0 behind the producer id and epoch: timeout, state Empty, null partitions, time of
#: the last update and of the start
_REST: Final = struct.Struct(">ibiqq")
_NONE: Final = -1


def transactions(seed: int, names: Sequence[str]) -> tuple[Transaction, ...]:
    """The initial state of these transactional ids."""
    rng = Random(f"exhausted/{seed}")
    first = _FIRST_ID + seed * _OF_A_SEED
    return tuple(
        Transaction(name, first + at, LAST_EPOCH - rng.choice(_BELOW), _TIMEOUT_MS) for at, name in enumerate(names)
    )


def stored(rows: Sequence[Transaction]) -> list[Change]:
    """Return the rows of serve's store."""
    return [Put(KIND, each.transactional_id, each.as_text()) for each in rows]


def produced(rows: Sequence[Transaction], now_ms: int) -> dict[str, Any]:
    """Return the values of a Produce request, for ``CLIENT``, that writes them to Kafka's log."""
    buffer = BytesIO()
    batch = NewRecordBatch(
        producer_id=i64(_NONE),
        producer_epoch=i16(_NONE),
        base_sequence=i32(_NONE),
        attributes=i16(0),
        records=tuple(_records(rows, now_ms)),
    )
    write_new_batch(buffer, batch)
    partition = {"index": 0, "records": buffer.getvalue()}
    return {
        "transactional_id": None,
        "acks": -1,
        "timeout": 10_000,
        "topic_data": [{"name": _LOG, "partition_data": [partition]}],
    }


def _records(rows: Sequence[Transaction], now_ms: int) -> Iterator[Record]:
    for at, each in enumerate(rows):
        name = each.transactional_id.encode()
        producer = struct.pack(">hqh", 0, each.producer_id, each.producer_epoch)
        yield Record(
            attributes=i8(0),
            timestamp=TZAwareMicros.parse(datetime.fromtimestamp(now_ms // 1_000, UTC)),
            offset=i64(at),
            key=struct.pack(">hh", 0, len(name)) + name,
            value=producer + _REST.pack(each.timeout_ms, 0, _NONE, now_ms, _NONE),
            headers=(),
        )
