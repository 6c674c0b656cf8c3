"""Requests that write, read, find and delete records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from .script import CONTROL, DAMAGES, GZIP, TRANSACTIONAL, At, Move, Records
from .world import NO_PRODUCER_ID, Partition, Producer, Session, World

_TIMEOUT_MS: Final = 5_000
_HOUR_MS: Final = 3_600_000
_LATEST, _NEWEST = -1, -3
_BY_ID: Final = 13
#: the first version in which a Fetch has a session
_SESSIONS: Final = 7
_LAST_EPOCHS: Final = (32_765, 32_766, 32_766, 32_767, 32_767, -32_768, 0)
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
            _at_last_epochs(world),
            _at_last_epochs(world),
        )
    )


def _at_last_epochs(world: World) -> Records:
    """A batch of a producer whose epochs are used up or almost used up."""
    epoch, sequence = world.choice(_LAST_EPOCHS), world.choice((0, 0, 1, 2, 2**31 - 1))
    return Records(producer_id=NO_PRODUCER_ID + world.choice((1, 2)), epoch=epoch, sequence=sequence)


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
    if world.chance(0.35):
        yield from fetch_in_session(world)
        return
    session = world.choice(((77, 1), (0, 3), (77, -1), (0, -5))) if world.chance(0.05) else (0, -1)
    yield world.move("fetch", _fetched(world, world.partitions(5), *session))


def fetch_in_session(world: World) -> Iterator[Move]:
    """Requests that begin, continue or end a fetch session, or do not fit it."""
    if not world.sessions or world.chance(0.2):
        yield _session_begun(world, 0)
    for _ in range(world.choice((1, 1, 2, 3))):
        if world.sessions:
            yield _in_session(world, world.choice(world.sessions))


def _in_session(world: World, session: Session) -> Move:
    if world.chance(0.04):
        return _session_begun(world, session.id())
    by_id = session.by_id if world.chance(0.97) else not session.by_id
    version = world.version("fetch", _BY_ID if by_id else _SESSIONS, 99 if by_id else _BY_ID - 1)
    if world.chance(0.05):
        world.sessions.remove(session)
        return world.move("fetch", _fetched(world, world.partitions(2), session.id(), -1), version=version)
    changed = world.partitions(2) if world.chance(0.4) else {}
    gone: list[Partition] = []
    if session.partitions and world.chance(0.15):
        gone = world.some(sorted(session.partitions), 2)
    epoch = session.epoch if world.chance(0.93) else max(1, session.epoch + world.choice((-1, 1, 5)))
    forgotten: dict[str, list[int]] = {}
    for name, index in gone:
        forgotten.setdefault(name, []).append(index)
    rows = [
        {"topic": name, "topic_id": world.topic_id(name), "partitions": indexes} for name, indexes in forgotten.items()
    ]
    asked = _fetched(world, changed, session.id(), epoch, rows)
    if epoch == session.epoch and by_id is session.by_id:
        session.epoch += 1
        session.partitions |= {(name, index) for name, indexes in changed.items() for index in indexes}
        session.partitions -= set(gone)
    return replace(world.move("fetch", asked, version=version), line=world.choice((0, 1)))


def _session_begun(world: World, number: Any) -> Move:
    version = world.version("fetch", _SESSIONS)
    session = Session(f"s{len(world.sessions)}", by_id=version >= _BY_ID)
    partitions = world.partitions(5)
    session.partitions = {(name, index) for name, indexes in partitions.items() for index in indexes}
    world.sessions.append(session)
    return world.move("fetch", _fetched(world, partitions, number, 0), session.keeps, version=version)


def _fetched(
    world: World, partitions: dict[str, list[int]], number: Any, epoch: int, forgotten: Sequence[Any] = ()
) -> dict[str, Any]:
    """The values of a Fetch. ``number``, ``epoch``: of its session; ``forgotten``: partitions to remove from it."""
    topics = []
    for name, indexes in partitions.items():
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
    return {
        "replica_id": -1,
        "max_wait": world.choice((0, 1)),
        "min_bytes": world.choice((0, 1, 1, 1_000)),
        "max_bytes": -1 if world.chance(0.02) else world.choice(_MOST_BYTES),
        "isolation_level": world.choice((0, 1, 1)),
        "session_id": number,
        "session_epoch": epoch,
        "topics": topics,
        "forgotten_topics_data": list(forgotten),
    }


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


def without_newest(moves: Iterable[Move]) -> Iterator[Move]:
    """The requests without those for the newest record of a partition from which records were deleted. Kafka may name a
    deleted record while its segment exists (docs/serving.md)."""
    gone: set[tuple[Any, Any]] = set()
    for move in moves:
        if move.api == "delete_records":
            gone |= {
                (row["name"], each["partition_index"]) for row in move.values["topics"] for each in row["partitions"]
            }
        if move.api != "list_offsets":
            yield move
            continue
        topics = [
            {**row, "partitions": [_last(each) if (row["name"], each["partition_index"]) in gone else each
                                   for each in row["partitions"]]}
            for row in move.values["topics"]
        ]  # fmt: skip
        yield replace(move, values={**move.values, "topics": topics})


def _last(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "timestamp": _LATEST} if row["timestamp"] == _NEWEST else row


MOVES: Final = (
    (produce, 5), (produce_idempotent, 4), (fetch, 8), (list_offsets, 4), (epochs, 1), (delete_records, 2)
)  # fmt: skip
