"""Requests that describe and change settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from .script import OWN, Move
from .world import World

TOPIC: Final = 2
BROKER: Final = 4
GROUP: Final = 32
#: scripts write nothing to this topic, since its settings have effects in Kafka
_TOPIC: Final = f"{OWN}settings"
_GROUPS: Final = (f"{OWN}g0", f"{OWN}g1")
_GROUP_KEYS: Final = (
    "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms"
)  # fmt: skip
_GROUP_VALUES: Final = (
    "45000", "60000", "46000", "50000", "5000", "10000", "15000", "6000", "1000", "1", "0", "-1", "x", "", None,
    "60001", "46000.0", "99999999999",
)  # fmt: skip
TOPIC_KEYS: Final = ("retention.ms", "cleanup.policy", "segment.bytes", "max.message.bytes", "compression.type")
#: only valid values: serve accepts any (docs/serving.md)
_TOPIC_VALUES: Final = {
    "retention.ms": ("-1", "86400000", "86400001"),
    "cleanup.policy": ("delete",),  # Kafka refuses records without a key in a compacted topic, serve does not
    "segment.bytes": ("2097152", "4194304"),
    "max.message.bytes": ("1000", "2000"),
    "compression.type": ("gzip", "producer"),
}
_BROKER_KEYS: Final = (
    "group.min.session.timeout.ms", "group.consumer.session.timeout.ms", "group.consumer.assignors",
    "group.initial.rebalance.delay.ms", "offsets.retention.minutes", "group.max.size", "no.such.setting",
)  # fmt: skip
_NO_KIND: Final = (0, 1, 3, 77)
_SET, _DELETE = 0, 1


def _topic(world: World) -> Iterator[Move]:
    """A request that creates the topic of the settings, if no script has created it yet."""
    if world.with_settings:
        return
    world.with_settings = True
    rows = [{"name": _TOPIC, "num_partitions": 1, "replication_factor": 1}]
    yield world.move("create_topics", {"topics": rows, "timeout": 10_000, "validate_only": False})


def _group_row(world: World) -> dict[str, Any]:
    name = world.choice((_GROUPS[0], _GROUPS[0], _GROUPS[1])) if world.chance(0.95) else ""
    configs = []
    for known in world.some(_GROUP_KEYS, 2):
        key = "no.such.setting" if world.chance(0.05) else known
        operation = _SET if world.chance(0.7) else world.choice((_DELETE, _DELETE, 2, 3))
        configs.append({"name": key, "config_operation": operation, "value": world.choice(_GROUP_VALUES)})
    if world.chance(0.04):
        configs.append(configs[0])
    return {"resource_type": GROUP, "resource_name": name, "configs": configs}


def alter_group(world: World) -> Iterator[Move]:
    rows = [_group_row(world) for _ in range(world.choice((1, 1, 1, 2)))]
    validate_only = world.chance(0.25)
    yield world.move("incremental_alter_configs", {"resources": rows, "validate_only": validate_only})
    if validate_only:  # the request changes nothing
        yield _described([(GROUP, row["resource_name"], None) for row in rows], world)


def alter_topic(world: World) -> Iterator[Move]:
    yield from _topic(world)
    name = _TOPIC if world.chance(0.9) else world.choice((f"{OWN}nobody", "", "bad name"))
    key = world.choice(TOPIC_KEYS)
    values = (*_TOPIC_VALUES[key], *((None,) if world.chance(0.2) else ()))
    operation = world.choice((_SET, _SET, _SET, _DELETE))
    config = {"name": key, "config_operation": operation, "value": world.choice(values)}
    row = {"resource_type": TOPIC, "resource_name": name, "configs": [config]}
    if world.chance(0.08):
        row = {"resource_type": world.choice(_NO_KIND), "resource_name": name, "configs": [config]}
    rows = [row, _group_row(world)] if world.chance(0.2) else [row]
    yield world.move("incremental_alter_configs", {"resources": rows, "validate_only": world.chance(0.15)})


def describe(world: World) -> Iterator[Move]:
    yield from _topic(world)
    rows: list[tuple[int, str, Any]] = []
    for _ in range(world.choice((1, 1, 2, 3))):
        kind = world.choice((GROUP, GROUP, GROUP, TOPIC, BROKER)) if world.chance(0.95) else world.choice(_NO_KIND)
        keys: Any = None
        if kind == BROKER:
            name, keys = world.choice(("1", "1", "9", "x")), world.some(_BROKER_KEYS)
        elif kind == TOPIC:
            name, keys = world.choice((_TOPIC, _TOPIC, f"{OWN}nobody", "bad name", "")), world.some(TOPIC_KEYS)
        else:
            name = world.choice((*_GROUPS, *_GROUPS, f"{OWN}nobody", ""))
            keys = world.choice((None, world.some((*_GROUP_KEYS, "no.such.setting")), list(_GROUP_KEYS), []))
        rows.append((kind, name, keys))
    yield _described(rows, world)


def _described(rows: list[tuple[int, str, Any]], world: World) -> Move:
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys} for kind, name, keys in rows
    ]
    asked = {"resources": resources, "include_synonyms": world.chance(0.4), "include_documentation": False}
    return world.move("describe_configs", asked)


def list_resources(world: World) -> Iterator[Move]:
    kinds = world.choice(([], [TOPIC], [BROKER], [GROUP], [TOPIC, GROUP], [77], [GROUP, GROUP]))
    yield world.move("list_config_resources", {"resource_types": kinds})


def without_effects(moves: Iterable[Move]) -> Iterator[Move]:
    """The requests with another topic in place of ``~nobody``, where they change its settings. The script has created
    it, and the settings of a topic with records have effects in Kafka."""
    for move in moves:
        if move.api != "incremental_alter_configs" or not isinstance(move.values.get("resources"), list):
            yield move
            continue
        rows = [
            {**row, "resource_name": f"{OWN}none"}
            if (row["resource_type"], row["resource_name"]) == (TOPIC, f"{OWN}nobody")
            else row
            for row in move.values["resources"]
        ]
        yield replace(move, values={**move.values, "resources": rows})


MOVES: Final = ((alter_group, 5), (alter_topic, 2), (describe, 5), (list_resources, 1))
