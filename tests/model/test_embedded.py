"""Compare the code for subscriptions and assignments of the model and of the core on the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

import pytest

from fencepost.protocol import embedded as core
from fencepost_model import embedded as model

TOPICS: Final = ("t", "ünï", "", "a-long-name", "\ud800")
TEXTS: Final = (b"\xed\xa0\x80", b"\xed\xbf", b"\xed\xa0\xc3", b"\xff\xfe", b"\xe2\x82", b"\xf0\x9f\x92")


def subscriptions(rng: Random) -> bytes:
    owned = tuple(core.TopicPartition(rng.choice(TOPICS), rng.randrange(3)) for _ in range(rng.randrange(4)))
    rack = rng.choice((None, "", "r"))
    topics = tuple(rng.choices(TOPICS, k=rng.randrange(4)))
    user_data = rng.choice((None, b"", b"data"))
    return core.encode_subscription(
        core.Subscription(topics, user_data, owned, rng.randrange(-2, 3), rack), rng.randrange(6)
    )


def assignments(rng: Random) -> bytes:
    given = tuple(core.TopicPartition(rng.choice(TOPICS), rng.randrange(3)) for _ in range(rng.randrange(4)))
    return core.encode_assignment(core.Assignment(given, rng.choice((None, b"", b"data"))), rng.randrange(6))


def damaged(rng: Random, data: bytes) -> bytes:
    """Return the bytes cut short, with other bytes in them, or with text that is not UTF-8."""
    at = rng.randrange(len(data) + 1)
    match rng.randrange(5):
        case 0:
            return data[:at]
        case 1:
            return data + rng.randbytes(3)
        case 2:
            return data[:at] + rng.choice((b"\xff", b"\x00", b"\x7f", b"\x01")) + data[at + 1 :]
        case 3:
            bad = rng.choice(TEXTS)
            return data.replace(b"a-long-name"[: len(bad)], bad)
        case _:
            return data


def _of_core(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except core.LengthError:
        return "length"
    except core.SchemaError:
        return "schema"


def _of_model(read: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return read(data)
    except model.BadLength:
        return "length"
    except model.BadBytes:
        return "schema"


def _subscription(data: bytes) -> Any:
    found = core.decode_subscription(data)
    generation = None if found.generation_id < 0 else found.generation_id
    return list(found.topics), [tuple(each) for each in found.owned_partitions], generation, found.rack_id


def _flat(data: bytes) -> Any:
    found = model.read_subscription(data)
    owned = [(topic, each) for topic, numbers in found.owned for each in numbers]
    return found.topics, owned, found.generation, found.rack


READERS: Final[dict[str, tuple[Callable[[Random], bytes], Callable[[bytes], Any], Callable[[bytes], Any]]]] = {
    "subscription": (subscriptions, _subscription, _flat),
    "assignment": (assignments, core.decode_topics, model.read_assignment),
    "version": (assignments, core.version_of, model.version_of),
}


def both(kind: str) -> Iterator[tuple[bytes, Any, Any]]:
    make, of_core, of_model = READERS[kind]
    rng = Random(kind)
    for _ in range(3_000):
        data = damaged(rng, make(rng))
        yield data, _of_core(of_core, data), _of_model(of_model, data)


@pytest.mark.parametrize("kind", READERS)
def test_core_and_model_read_the_same(kind: str) -> None:
    seen = [row for row in both(kind) if row[1] != row[2]]
    assert seen == []


def test_the_bytes_reach_every_kind_of_answer() -> None:
    answers = [answer for kind in ("subscription", "assignment") for _, answer, _ in both(kind)]
    assert {"length", "schema"} < {answer for answer in answers if isinstance(answer, str)} | {"value"}
    assert sum(not isinstance(answer, str) for answer in answers) > 1_000
    assert any("\N{REPLACEMENT CHARACTER}" in repr(answer) for answer in answers)


@pytest.mark.parametrize("version", [0, 3, 9])
def test_core_and_model_write_the_same_assignment(version: int) -> None:
    rows = [("t", [2, 0]), ("\ud800", []), ("ü", [1])]
    assert model.write_assignment(rows, version) == core.encode_topics(rows, version)


@pytest.mark.parametrize(("rows", "version"), [([], -1), ([("t" * 40_000, [0])], 0)])
def test_neither_writes_values_that_do_not_fit(rows: list[tuple[str, list[int]]], version: int) -> None:
    with pytest.raises(model.BadBytes):
        model.write_assignment(rows, version)
    with pytest.raises(core.SchemaError):
        core.encode_topics(rows, version)


def test_an_assignment_with_user_data_is_written_as_it_was_read() -> None:
    data = core.encode_assignment(core.Assignment((core.TopicPartition("t", 1),), b"x"), 1)
    assert model.write_assignment(*_with_version(data)) == data


def _with_version(data: bytes) -> tuple[list[tuple[str, list[int]]], int, bytes | None]:
    rows, user_data = model.read_assignment(data)
    return rows, model.version_of(data), user_data
