"""Requests about topics and their partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from .script import OWN, Move
from .world import MOST_PARTITIONS, NO_TOPIC_ID, Path, World

_TIMEOUT_MS: Final = 10_000
_MOST_TOPICS: Final = 4
#: with the prefix of a run (ten characters), as long as a name may be
_LONGEST: Final = OWN + "l" * 239
_BAD_NAMES: Final = ("", ".", "..", "bad name", "a/b", "x" * 250)


def create(world: World) -> Iterator[Move]:
    rows: list[dict[str, Any]] = []
    made: dict[str, int] = {}
    for _ in range(world.rng.randint(1, 2)):
        free = [f"{OWN}t{at}" for at in range(_MOST_TOPICS) if f"{OWN}t{at}" not in world.topics]
        name = world.choice(free) if free and not world.chance(0.15) else world.topic()
        if world.chance(0.03):
            name = _LONGEST + world.choice(("", "l"))
        count = world.rng.randint(1, MOST_PARTITIONS)
        row: dict[str, Any] = {"name": name, "num_partitions": count, "replication_factor": world.choice((1, 1, -1))}
        if world.chance(0.1):
            at = {"partition_index": 0, "broker_ids": [1]}
            row.update(num_partitions=-1, replication_factor=-1, assignments=[at, {**at, "partition_index": 1}])
            count = 2
        if world.chance(0.2):
            _spoil(world, row)
        elif name not in world.topics and not name.startswith(_LONGEST):
            made[name] = count
        rows.append(row)
    if world.chance(0.05):
        rows.append(dict(rows[0]))
        made.pop(rows[0]["name"], None)
    validate_only = world.chance(0.1)
    yield world.move("create_topics", {"topics": rows, "timeout": _TIMEOUT_MS, "validate_only": validate_only})
    if validate_only or not made:
        return
    world.topics.update(made)
    for name in made:
        world.ends = {each: end for each, end in world.ends.items() if each[0] != name}
        for producer in world.producers:
            producer.sequences = {each: at for each, at in producer.sequences.items() if each[0] != name}
        keeps: dict[str, Path] = {f"{name} topic id": ("topics", 0, "topic_id")}
        yield world.move("metadata", {"topics": [{"name": name}]}, keeps, version=world.version("metadata", 10))


def _spoil(world: World, row: dict[str, Any]) -> None:
    at = {"partition_index": 0, "broker_ids": [1]}
    manual: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
    row.update(
        world.choice(
            (
                {"name": world.choice(_BAD_NAMES)},
                {"num_partitions": world.choice((0, -2, -9))},
                {"replication_factor": world.choice((0, 2, 3, -2))},
                {**manual, "num_partitions": 1, "assignments": [at]},
                {**manual, "replication_factor": 1, "assignments": [at]},
                {**manual, "assignments": [at, at]},
                {**manual, "assignments": [{**at, "partition_index": 1}]},
                {**manual, "assignments": [{**at, "broker_ids": []}]},
                {**manual, "assignments": [{**at, "broker_ids": [9]}]},
                {**manual, "assignments": [{**at, "broker_ids": [1, 1]}]},
                {**manual, "assignments": [{**at, "broker_ids": [1, 2]}]},
                {"configs": [{"name": "retention.ms", "value": None}]},
            )
        )
    )


def grow(world: World) -> Iterator[Move]:
    rows: list[dict[str, Any]] = []
    for _ in range(world.rng.randint(1, 2)):
        name = world.topic()
        now = world.topics.get(name, 1)
        count = world.choice((now + 1, now + 1, now, now - 1, 0, -1)) if world.chance(0.5) else now + 1
        if count > MOST_PARTITIONS + 2:
            count = now
        row: dict[str, Any] = {"name": name, "count": count}
        if world.chance(0.25):
            ids = world.choice(([1], [1], [9], [], [1, 1], [1, 2]))
            row["assignments"] = [{"broker_ids": ids}] * world.choice((max(count - now, 0), 1, 2))
        rows.append(row)
    validate_only = world.chance(0.15)
    yield world.move("create_partitions", {"topics": rows, "timeout": _TIMEOUT_MS, "validate_only": validate_only})
    if validate_only or len({row["name"] for row in rows}) < len(rows):
        return
    for row in rows:
        if row["count"] > world.topics.get(row["name"], 99) and "assignments" not in row:
            world.topics[row["name"]] = row["count"]


def delete(world: World) -> Iterator[Move]:
    names = world.some(sorted(world.topics) or [f"{OWN}nobody"], 2)
    if world.chance(0.2):
        names.append(world.choice((f"{OWN}nobody", *_BAD_NAMES, names[0])))
    rows: list[dict[str, Any]] = []
    for name in names:
        by_name, by_id = {"name": name}, {"name": None, "topic_id": world.topic_id(name)}
        rows.append(by_id if world.chance(0.4) else by_name)
    if world.chance(0.2):
        odd = {"name": None, "topic_id": bytes(16)}, {"name": names[0], "topic_id": NO_TOPIC_ID}
        rows.append(world.choice((*odd, {"name": None, "topic_id": NO_TOPIC_ID})))
    asked = {"topics": rows, "topic_names": names, "timeout": _TIMEOUT_MS}
    yield world.move("delete_topics", asked)
    for name in names:
        if world.topics.pop(name, None) is not None:
            world.gone.add(name)


def metadata(world: World) -> Iterator[Move]:
    rows: list[dict[str, Any]] | None = [{"name": world.topic()} for _ in range(world.rng.randint(1, 3))]
    version = world.version("metadata")
    if world.chance(0.15 if version else 0.6):
        rows = world.choice(([], None)) if version else []
    elif world.chance(0.3) and version >= 12:
        rows = [{"name": None, "topic_id": world.topic_id(row["name"])} for row in rows or ()]
    elif world.chance(0.2):
        rows = [{"name": world.choice(_BAD_NAMES)}]
    asked = {
        "topics": rows,
        "allow_auto_topic_creation": world.chance(0.3),
        "include_topic_authorized_operations": world.chance(0.3),
        "include_cluster_authorized_operations": world.chance(0.3),
    }
    yield world.move("metadata", asked, version=version)


def describe(world: World) -> Iterator[Move]:
    names = [world.topic() for _ in range(world.rng.randint(1, 4))]
    if world.chance(0.15):
        names.append(world.choice(_BAD_NAMES))
    cursor = None
    if world.chance(0.4):
        name = world.topic()
        cursor = {"topic_name": name, "partition_index": world.choice((0, 1, 2, world.topics.get(name, 0), 9, -1))}
    limit = world.choice((1, 2, 3, 4, 5, 2_000, 0, -1, 5_000))
    rows = [{"name": name} for name in names]
    yield world.move("describe_topic_partitions", {"topics": rows, "response_partition_limit": limit, "cursor": cursor})


def cluster(world: World) -> Iterator[Move]:
    asked = {
        "include_cluster_authorized_operations": world.chance(0.5),
        "endpoint_type": world.choice((1, 1, 1, 2, 3, 0)),
        "include_fenced_brokers": world.chance(0.3),
    }
    yield world.move("describe_cluster", asked)


MOVES: Final = ((create, 6), (grow, 3), (delete, 2), (metadata, 3), (describe, 4), (cluster, 1))
