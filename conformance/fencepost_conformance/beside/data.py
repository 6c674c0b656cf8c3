"""Requests that write, read, find and delete records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .script import CONTROL, DAMAGES, GZIP, TRANSACTIONAL, At, Move, Records
from .world import NO_PRODUCER_ID, Partition, Producer, World

_TIMEOUT_MS: Final = 5_000
_HOUR_MS: Final = 3_600_000
_BY_ID: Final = 13
_MOST_BYTES: Final = (0, 1, 70, 150, 200, 300, 400, 1_000, 100_000, 100_000, 100_000)
_DAMAGED: Final = tuple(sorted({*DAMAGES} - {""}))


def plain_batch(world: World, **more: Any) -> Records:
    """A batch of records of some size."""
    world.now_ms += world.choice((0, 1, 7, 100))
    return Records(
        count=world.choice((1, 1, 2, 3, 5)),
        at_ms=world.now_ms - world.choice((0, 0, 0, 50)),
        step_ms=world.choice((0, 0, 1, 10)),
        codec=GZIP if world.chance(0.2) else 0,
        value_bytes=world.choice((0, 0, 10, 100)),
        key=world.chance(0.3),
        **more,
    )


def odd_batch(world: World) -> Records:
    """A batch that is invalid or unusual."""
    damage = world.choice(_DAMAGED)
    return world.choice(
        (
            Records(damage=damage, count=2),
            Records(damage=damage),
            Records(flags=CONTROL),
            Records(flags=CONTROL | TRANSACTIONAL),
            Records(flags=TRANSACTIONAL),
            Records(at_ms=2 * _HOUR_MS),
            Records(at_ms=-2 * _HOUR_MS),
            Records(count=0),
            Records(producer_id=NO_PRODUCER_ID, epoch=0, sequence=0),
            Records(producer_id=NO_PRODUCER_ID, epoch=0, sequence=5),
            Records(producer_id=NO_PRODUCER_ID, epoch=-1, sequence=0),
            Records(producer_id=NO_PRODUCER_ID, epoch=0, sequence=-1),
            Records(producer_id=-5, epoch=0, sequence=0),
        )
    )


def batch_of(world: World, producer: Producer, partition: Partition, flags: int = 0) -> Records:
    """The producer's next batch in the partition, or one that it has already sent, or one that is out of order."""
    if producer.last and world.chance(0.15):
        fitting = [records for there, records in producer.last[-7:] if there == partition]
        if fitting:
            records: Records = world.choice(fitting)
            return records
    sequence = producer.sequences.get(partition, 0)
    made = plain_batch(world, producer_id=producer.id(), epoch=producer.epoch(), sequence=sequence, flags=flags)
    if world.chance(0.12):
        epochs = producer.epoch(-1), producer.epoch(1), producer.epoch()
        odd = {"sequence": max(0, sequence + world.choice((-1, 0, 1, 3))), "epoch": world.choice(epochs)}
        return Records(**{**{name: getattr(made, name) for name in Records.__slots__}, **odd})
    producer.sequences[partition] = sequence + made.count
    producer.last.append((partition, made))
    return made


def rows_of(
    world: World, batches: dict[Partition, Records], *, by_id: bool, partitions: str = "partition_data"
) -> list[dict[str, Any]]:
    """The rows of a Produce request."""
    found: dict[str, list[dict[str, Any]]] = {}
    for (name, index), records in batches.items():
        found.setdefault(name, []).append({"index": index, "records": records})
    return [{"name": name, "topic_id": world.topic_id(name), partitions: rows} for name, rows in found.items()]


def produce_move(
    world: World, batches: dict[Partition, Records], *, transactional_id: str | None = None, version: int | None = None
) -> Move:
    """A Produce request; predicts the ends of the partitions after it."""
    version = world.version("produce") if version is None else version
    for partition, records in batches.items():
        if not records.damage:
            world.ends[partition] = world.ends.get(partition, 0) + records.count
    asked = {
        "transactional_id": transactional_id,
        "acks": -1 if transactional_id is not None or world.chance(0.9) else world.choice((0, 1, 2, -2)),
        "timeout": _TIMEOUT_MS,
        "topic_data": rows_of(world, batches, by_id=version >= _BY_ID),
    }
    return world.move("produce", asked, version=version)


def produce(world: World) -> Iterator[Move]:
    places = [(name, index) for name, rows in world.partitions(3).items() for index in rows]
    yield produce_move(world, {each: odd_batch(world) if world.chance(0.2) else plain_batch(world) for each in places})


def produce_idempotent(world: World) -> Iterator[Move]:
    known = [each for each in world.producers if each.transactional_id is None]
    if not known or world.chance(0.15):
        producer = Producer(f"p{len(world.producers)}")
        world.producers.append(producer)
        asked = {"transactional_id": None, "transaction_timeout": 60_000, "producer_id": -1, "producer_epoch": -1}
        yield world.move("init_producer_id", asked, producer.keeps)
    else:
        producer = world.choice(known)
    for _ in range(world.choice((1, 1, 2, 6))):
        places = [(name, index) for name, rows in world.partitions(2).items() for index in rows]
        yield produce_move(world, {each: batch_of(world, producer, each) for each in places})


def fetch(world: World) -> Iterator[Move]:
    by_topic = world.partitions(5)
    topics = []
    for name, indexes in by_topic.items():
        rows = [
            {
                "partition": index,
                "fetch_offset": world.offset((name, index)) if world.chance(0.6) else 0,
                "partition_max_bytes": -1 if world.chance(0.02) else world.choice(_MOST_BYTES),
                "current_leader_epoch": world.leader_epoch(),
                "last_fetched_epoch": world.choice((0, 0, 1, 5)) if world.chance(0.1) else -1,
                "log_start_offset": -1,
            }
            for index in indexes
        ]
        topics.append({"topic": name, "topic_id": world.topic_id(name), "partitions": rows})
    session = world.choice(((0, 0), (77, 1), (77, 0), (0, 3), (77, -1))) if world.chance(0.08) else (0, -1)
    asked = {
        "replica_id": -1,
        "max_wait": world.choice((0, 1)),
        "min_bytes": world.choice((0, 1, 1, 1_000)),
        "max_bytes": -1 if world.chance(0.02) else world.choice(_MOST_BYTES),
        "isolation_level": world.choice((0, 1, 1)),
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": topics,
        "forgotten_topics_data": [],
    }
    yield world.move("fetch", asked)


def list_offsets(world: World) -> Iterator[Move]:
    def time() -> Any:
        if world.chance(0.5):
            return world.choice((-1, -2, -3, -4, -5, -6, -7))
        return At(world.choice((0, world.now_ms, world.now_ms + 1, world.rng.randint(0, world.now_ms + 20), -_HOUR_MS)))

    topics = [
        {
            "name": name,
            "partitions": [
                {"partition_index": index, "current_leader_epoch": world.leader_epoch(), "timestamp": time()}
                for index in indexes
            ],
        }
        for name, indexes in world.partitions().items()
    ]
    asked = {"replica_id": -1, "isolation_level": world.choice((0, 1)), "topics": topics, "timeout": _TIMEOUT_MS}
    yield world.move("list_offsets", asked)


def epochs(world: World) -> Iterator[Move]:
    topics = [
        {
            "topic": name,
            "partitions": [
                {
                    "partition": index,
                    "current_leader_epoch": world.leader_epoch(),
                    "leader_epoch": world.choice((0, 0, 0, 1, -1, 7)),
                }
                for index in indexes
            ],
        }
        for name, indexes in world.partitions().items()
    ]
    yield world.move("offset_for_leader_epoch", {"replica_id": -1, "topics": topics})


def delete_records(world: World) -> Iterator[Move]:
    topics = [
        {
            "name": name,
            "partitions": [{"partition_index": index, "offset": world.offset((name, index))} for index in indexes],
        }
        for name, indexes in world.partitions(2).items()
    ]
    yield world.move("delete_records", {"topics": topics, "timeout": _TIMEOUT_MS})


MOVES: Final = (
    (produce, 5), (produce_idempotent, 4), (fetch, 8), (list_offsets, 4), (epochs, 1), (delete_records, 2)
)  # fmt: skip
