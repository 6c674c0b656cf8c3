"""What Kafka and ``fencepost serve`` know after a restart about producers whose records were deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.server import run
from fencepost_conformance.judge.server.brokers import kafka, served
from fencepost_conformance.judge.server.lines import Place
from fencepost_conformance.judge.server.play import Player
from fencepost_conformance.judge.server.script import TRANSACTIONAL, Kept, Move, Records, Run
from fencepost_conformance.targets.jvm import jars, releases

RELEASE: Final = "4.4.0"
_KEEPS: Final = {"p id": ("producer_id",), "p epoch": ("producer_epoch",)}


def _begun(transactional_id: str | None) -> list[Move]:
    topic = {"name": "~t", "num_partitions": 1, "replication_factor": 1}
    asked = {"transactional_id": transactional_id, "transaction_timeout": 60_000}
    return [
        Move("create_topics", 4, {"topics": [topic], "timeout": 10_000}),
        Move("init_producer_id", 4, {**asked, "producer_id": -1, "producer_epoch": -1}, _KEEPS),
    ]


def _produce(sequence: int, flags: int = 0) -> Move:
    records = Records(producer_id=Kept("p id"), epoch=Kept("p epoch"), sequence=sequence, flags=flags)
    rows = [{"name": "~t", "partition_data": [{"index": 0, "records": records}]}]
    asked = {"transactional_id": "~x" if flags else None, "acks": -1, "timeout": 5_000, "topic_data": rows}
    return Move("produce", 11, asked)


def _in_transaction(sequence: int) -> Move:
    return _produce(sequence, TRANSACTIONAL)


_PRODUCER: Final = {"transactional_id": "~x", "producer_id": Kept("p id"), "producer_epoch": Kept("p epoch")}
_ADDED: Final = {**_PRODUCER, "topics": [{"name": "~t", "partitions": [0]}]}
_ADD: Final = Move("add_partitions_to_txn", 3, {f"v3_and_below_{key}": value for key, value in _ADDED.items()})
_END: Final = Move("end_txn", 4, {**_PRODUCER, "committed": True})


def _delete(offset: int = -1) -> Move:
    rows = [{"name": "~t", "partitions": [{"partition_index": 0, "offset": offset}]}]
    return Move("delete_records", 2, {"topics": rows, "timeout": 5_000})


_STABLE: Final = Move(
    "list_offsets", 2,
    {"replica_id": -1, "isolation_level": 1,
     "topics": [{"name": "~t", "partitions": [{"partition_index": 0, "timestamp": -1}]}]},
)  # fmt: skip

#: requests before the restart, and after it; error and offset of each Produce, and offset of each ListOffsets
SCENARIOS: Final[Mapping[str, tuple[Sequence[Move], Sequence[Move]]]] = {
    "an idempotent producer": (
        [*_begun(None), *map(_produce, (0, 1, 2)), _delete()],
        [*map(_produce, (4, 2, 3, 3, 9))],
    ),
    "an idempotent producer with a record": (
        [*_begun(None), *map(_produce, (0, 1, 2)), _delete(2)],
        [*map(_produce, (4, 2, 3, 3, 9))],
    ),
    "a transaction that has ended with a marker": (
        [*_begun("~x"), _ADD, *map(_in_transaction, (0, 1)), _END, _delete(2)],
        [_ADD, *map(_in_transaction, (3, 2)), _END, _STABLE],
    ),
    "a transaction that has ended": (
        [*_begun("~x"), _ADD, *map(_in_transaction, (0, 1)), _END, _delete()],
        [_ADD, *map(_in_transaction, (3, 2)), _END, _STABLE],
    ),
    "an open transaction": (
        [*_begun("~x"), _ADD, _in_transaction(0), _delete(), _in_transaction(1)],
        [_STABLE, _in_transaction(1), _in_transaction(2), _STABLE, _END, _STABLE, _produce(3)],
    ),
    "only a marker": (
        [*_begun("~x"), _ADD, _END, _delete()],
        [_ADD, *map(_in_transaction, (2, 0, 1)), _END, _STABLE],
    ),
}  # fmt: skip
#: Kafka's answers after the restart
ANSWERS: Final[Mapping[str, list[Any]]] = {
    "an idempotent producer": [(0, 3), (45, -1), (45, -1), (45, -1), (45, -1)],
    "an idempotent producer with a record": [(45, -1), (0, 2), (0, 3), (0, 3), (45, -1)],
    "a transaction that has ended with a marker": [(45, -1), (0, 3), 5],
    "a transaction that has ended": [(0, 3), (45, -1), 5],
    "an open transaction": [1, (0, 1), (0, 2), 1, 4, (0, 4)],
    "only a marker": [(0, 1), (45, -1), (45, -1), 3],
}


async def _asked(place: Place, moves: Sequence[Move], mine: Run) -> list[Any]:
    player = Player(place, mine)
    try:
        answers = [(move.api, await player.ask(move)) for move in moves]
    finally:
        await player.close()
    found = []
    for api, answer in answers:
        if api == "produce":
            ((row,),) = [each["partition_responses"] for each in answer["responses"]]
            found.append((row["error_code"], row["base_offset"]))
        elif api == "list_offsets":
            ((row,),) = [each["partitions"] for each in answer["topics"]]
            found.append(row["offset"])
    return found


def _run() -> Run:
    return Run(f"s{run.token()}0000-", int(time.time() * 1_000))


@pytest.mark.broker
@pytest.mark.slow
@pytest.mark.all
def test_kafka_after_a_clean_restart() -> None:
    try:
        jars.fetch(*releases.broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    runs = {name: _run() for name in SCENARIOS}
    with kafka(RELEASE) as broker:
        for name, (before, _) in SCENARIOS.items():
            asyncio.run(_asked(broker.place, before, runs[name]))
        assert broker.broker is not None
        broker.broker.restart(cleanly=True)
        found = {name: asyncio.run(_asked(broker.place, after, runs[name])) for name, (_, after) in SCENARIOS.items()}
    assert found == ANSWERS


def test_serve_after_a_restart(tmp_path: Path) -> None:
    runs = {name: _run() for name in SCENARIOS}
    with served(data=tmp_path) as place:
        for name, (before, _) in SCENARIOS.items():
            asyncio.run(_asked(place, before, runs[name]))
    with served(data=tmp_path) as place:
        found = {name: asyncio.run(_asked(place, after, runs[name])) for name, (_, after) in SCENARIOS.items()}
    assert found == ANSWERS
