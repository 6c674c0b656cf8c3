"""Requests of transactional producers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from .data import batch_of, produce_move
from .script import OWN, TRANSACTIONAL, Kept, Move, Records
from .world import NO_PRODUCER_ID, Partition, Producer, World

TRANSACTIONAL_IDS: Final = (f"{OWN}x0", f"{OWN}x1")
_GROUPS: Final = (f"{OWN}g0", f"{OWN}g1")
#: the first versions in which a transaction has version 2 (KIP-890)
_IMPLICIT: Final = {"produce": 12, "txn_offset_commit": 5, "end_txn": 5}
_TIMEOUT_MS: Final = 60_000


def _producer(world: World) -> Producer | None:
    known = [each for each in world.producers if each.transactional_id is not None]
    return world.choice(known) if known else None


def _who(world: World, producer: Producer) -> dict[str, Any]:
    """The id and the epoch of the producer; rarely those of another one."""
    who: dict[str, Any] = {
        "transactional_id": producer.transactional_id,
        "producer_id": producer.id(),
        "producer_epoch": producer.epoch(),
    }
    if world.chance(0.1):
        odd: dict[str, Any] = world.choice(
            (
                {"producer_epoch": producer.epoch(-1)},
                {"producer_epoch": producer.epoch(1)},
                {"producer_epoch": -1},
                {"producer_id": NO_PRODUCER_ID},
                {"producer_id": -1},
                {"transactional_id": f"{OWN}nobody"},
                {"transactional_id": ""},
                {"transactional_id": world.choice(TRANSACTIONAL_IDS)},
            )
        )
        who.update(odd)
    return who


def init(world: World) -> Iterator[Move]:
    name = world.choice(TRANSACTIONAL_IDS)
    known = [each for each in world.producers if each.transactional_id == name]
    producer = known[0] if known else Producer(f"p{len(world.producers)}", name)
    asked: dict[str, Any] = {
        "transactional_id": name, "transaction_timeout": _TIMEOUT_MS, "producer_id": -1, "producer_epoch": -1,
    }  # fmt: skip
    version = world.version("init_producer_id")
    if world.chance(0.1):
        odd: tuple[dict[str, Any], ...] = (
            {"transactional_id": ""}, {"transaction_timeout": 0}, {"transaction_timeout": 900_001},
            {"transaction_timeout": -1}, {"transaction_timeout": 900_000}, {"transactional_id": None},
        )  # fmt: skip
        yield world.move("init_producer_id", {**asked, **world.choice(odd)})
        return
    if known and world.chance(0.5):
        epochs = (producer.epoch(), producer.epoch(), producer.epoch(-1), producer.epoch(1), -1)
        ids = (producer.id(), producer.id(), producer.id(), NO_PRODUCER_ID, -1)
        asked.update(producer_id=world.choice(ids), producer_epoch=world.choice(epochs))
    if not known:
        world.producers.append(producer)
    yield world.move("init_producer_id", asked, producer.keeps, version=version)
    producer.bump()


def add_partitions(world: World) -> Iterator[Move]:
    producer = _producer(world)
    if producer is None:
        yield from init(world)
        return
    who = _who(world, producer)
    topics = world.partitions(3)
    rows = [{"name": name, "partitions": indexes} for name, indexes in topics.items()]
    one = {**who, "topics": rows, "verify_only": world.chance(0.25)}
    several = [one]
    if world.chance(0.2) and (other := _producer(world)) is not None:
        several.append({**_who(world, other), "topics": rows, "verify_only": world.chance(0.5)})
    old = {f"v3_and_below_{key}": value for key, value in {**who, "topics": rows}.items()}
    move = world.move("add_partitions_to_txn", {**old, "transactions": several})
    yield move
    if move.version < 4 or not one["verify_only"]:
        producer.open.update((name, index) for name, indexes in topics.items() for index in indexes)
        producer.ongoing = True


def add_offsets(world: World) -> Iterator[Move]:
    producer = _producer(world)
    if producer is None:
        return
    group = world.choice(_GROUPS) if world.chance(0.95) else ""
    yield world.move("add_offsets_to_txn", {**_who(world, producer), "group_id": group})
    producer.ongoing = True


def _in_epoch(records: Records, producer: Producer) -> Records:
    """The batch, in the epoch of its producer if it is not transactional. After one of a later epoch, Kafka's partition
    would reject the marker of a transaction, which then never ends (docs/serving.md)."""
    later = isinstance(records.epoch, Kept) and records.epoch.plus > 0
    return replace(records, epoch=producer.epoch()) if later and not records.flags & TRANSACTIONAL else records


def write(world: World) -> Iterator[Move]:
    producer = _producer(world)
    if producer is None:
        yield from init(world)
        return
    implicit = world.chance(0.4)
    version = world.version("produce", _IMPLICIT["produce"]) if implicit else world.version("produce", 0, 11)
    places: list[Partition] = sorted(producer.open)
    if implicit or not places or world.chance(0.1):
        places = [(name, index) for name, indexes in world.partitions(3).items() for index in indexes]
    batches = {
        each: _in_epoch(batch_of(world, producer, each, 0 if world.chance(0.04) else TRANSACTIONAL), producer)
        for each in world.some(places)
    }
    name = None if world.chance(0.03) else _who(world, producer)["transactional_id"]
    yield produce_move(world, batches, transactional_id=name, version=version)
    producer.ongoing = True


def offsets(world: World) -> Iterator[Move]:
    producer = _producer(world)
    if producer is None:
        return
    group = world.choice(_GROUPS)
    topics = [
        {
            "name": name,
            "topic_id": world.topic_id(name),
            "partitions": [{"partition_index": index, "committed_offset": world.rng.randrange(9)} for index in indexes],
        }
        for name, indexes in world.partitions(2).items()
    ]
    yield world.move("txn_offset_commit", {**_who(world, producer), "group_id": group, "topics": topics})
    producer.ongoing = True


def committed(world: World) -> Iterator[Move]:
    rows = [
        {"name": name, "topic_id": world.topic_id(name), "partition_indexes": indexes}
        for name, indexes in world.partitions(3).items()
    ]
    groups = [{"group_id": group, "topics": rows if world.chance(0.8) else None} for group in world.some(_GROUPS, 2)]
    asked = {"groups": groups, "group_id": _GROUPS[0], "topics": rows, "require_stable": world.chance(0.5)}
    yield world.move("offset_fetch", asked)


def end(world: World) -> Iterator[Move]:
    producer = _producer(world)
    if producer is None:
        return
    version = world.version("end_txn")
    who = _who(world, producer)
    commit = world.chance(0.5)
    bumping = version >= _IMPLICIT["end_txn"]
    keeps = producer.keeps if bumping else {}
    yield world.move("end_txn", {**who, "committed": commit}, keeps, version=version)
    if bumping:
        producer.bump()
    producer.open.clear()
    producer.ongoing = False


MOVES: Final = (
    (init, 2), (add_partitions, 5), (add_offsets, 2), (write, 6), (offsets, 3), (committed, 2), (end, 4)
)  # fmt: skip
