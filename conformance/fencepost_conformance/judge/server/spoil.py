"""Replace one value of a request by another of its type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final

from .script import OWN, Move
from .world import NO_PRODUCER_ID

#: fields that are not changed: they take long, make a client a replica, or cost memory
_SPARED: Final = frozenset(
    {"timeout", "max_wait", "transaction_timeout", "replica_id", "num_partitions", "count", "session_id", "acks"}
    | {
        "min_bytes",
        "session_epoch",
        "cursor",
        "isolation_level",
        "max_bytes",
        "partition_max_bytes",
        "configuration_keys",
        "value",
        "resource_type",
        "config_operation",
        "coordinator_keys",
        "key_type",
    }
)
#: lists that may not become empty: an empty one means all, or gets no answer
_NEVER_EMPTY: Final = frozenset({("describe_topic_partitions", "topics"), ("add_partitions_to_txn", "transactions")})
#: lists whose rows may not come twice: serve answers each, and Kafka the last (docs/serving.md)
_ONCE: Final = ("produce", "list_offsets", "delete_records", "txn_offset_commit",
                "add_partitions_to_txn")  # fmt: skip
_NAMES_OF_ROWS: Final = ("transactional_id", "name", "topic", "index", "partition", "partition_index")
_NUMBERS: Final = (-2, -1, 0, 1, 2, 5)
_NAMES: Final = ("", f"{OWN}nobody", f"{OWN}t0")
#: commits to group "" are valid, and would be seen by all scripts that are played beside each other
_NAMED: Final = frozenset({("offset_commit", "group_id"), ("txn_offset_commit", "group_id")})


def spoiled(rng: Random, move: Move) -> Move:
    """The request with one value changed, one row removed, or one row repeated."""
    places = list(_places(move.api, "", move.values))
    if not places:
        return move
    made = replace(move, values=_put(rng, move.values, rng.choice(places)))
    return move if move.api in _ONCE and _repeats(made.values) else made


def _repeats(value: Any) -> bool:
    """Whether a list has two rows with the same key."""
    if isinstance(value, dict):
        return any(map(_repeats, value.values()))
    if not isinstance(value, list):
        return False
    names = [next((row[key] for key in _NAMES_OF_ROWS if key in row), at) if isinstance(row, dict) else row
             for at, row in enumerate(value)]  # fmt: skip
    return len(set(map(str, names))) < len(names) or any(map(_repeats, value))


def _places(api: str, field: str, value: Any) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _SPARED and (api, key) != ("incremental_alter_configs", "name"):
                for path in _places(api, key, item):
                    yield (key, *path)
    elif isinstance(value, list) and value:
        if api not in _ONCE:
            yield (_doubled,)
        if len(value) > 1 or (api not in _ONCE and (api, field) not in _NEVER_EMPTY):
            yield (_shortened,)
        for at, item in enumerate(value):
            for path in _places(api, field, item):
                yield (at, *path)
    elif isinstance(value, bool):
        yield (lambda rng, old: not old,)
    elif isinstance(value, int):
        yield (lambda rng, old: _number(rng, field),)
    elif isinstance(value, str):
        yield (lambda rng, old: rng.choice(_NAMES) or (f"{OWN}nobody" if (api, field) in _NAMED else ""),)


def _number(rng: Random, field: str) -> int:
    """Another number. A producer id is never that of a producer: each broker generates others, from 0 on."""
    number = rng.choice(_NUMBERS)
    return NO_PRODUCER_ID + number if field.endswith("producer_id") and number >= 0 else number


def _doubled(rng: Random, rows: list[Any]) -> list[Any]:
    at = rng.randrange(len(rows))
    return [*rows, rows[at]]


def _shortened(rng: Random, rows: list[Any]) -> list[Any]:
    at = rng.randrange(len(rows))
    return [*rows[:at], *rows[at + 1 :]]


def _put(rng: Random, value: Any, path: tuple[Any, ...]) -> Any:
    step, *rest = path
    if not rest and callable(step):
        change: Callable[[Random, Any], Any] = step
        return change(rng, value)
    if isinstance(value, list):
        return [_put(rng, item, tuple(rest)) if at == step else item for at, item in enumerate(value)]
    return {key: _put(rng, item, tuple(rest)) if key == step else item for key, item in value.items()}
