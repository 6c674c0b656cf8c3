"""Many records at once are the records one by one, whole or damaged."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from fencepost.codec import LAYOUTS, Codec, CodecError
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost_conformance.jvm.serde import draw

ROWS = 1_600


def offset(rng: Random) -> Record:
    """One of those that are taken in one look, and now and then one that nearly is."""
    value = OffsetCommitValue(
        rng.randrange(-1, 2**40),
        leader_epoch=rng.randrange(-1, 5),
        commit_timestamp=rng.randrange(2**41),
        metadata=rng.choice(("",) * 8 + ("m",)),
        topic_id=rng.choice((bytes(16), b"0123456789abcdef")),
    )
    group, topic = rng.choice(("g", "gruppe-ä", "")), rng.choice(("t", "", "topic" * 9))
    return Record(OffsetCommitKey(group, topic, rng.randrange(-1, 6)), value)


def bent(rng: Random, data: bytes) -> bytes:
    """One byte is another, or there is one more or less."""
    at = rng.randrange(len(data))
    kind = rng.randrange(4)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data + b"\0"
    return data[:at] + bytes([rng.choice((0, 1, 2, 16, data[at] ^ 1, rng.randrange(256)))]) + data[at + 1 :]


def row(rng: Random, codec: Codec) -> tuple[bytes | None, bytes | None]:
    if rng.random() < 0.2:
        return draw.damaged(rng, codec)
    key, value = codec.encode(offset(rng), rng.choice((None, None, None, 1, 3)))
    if rng.random() < 0.3:
        key = bent(rng, key)
    if value is not None and rng.random() < 0.3:
        value = bent(rng, value)
    return key, value


def outcome(read: Callable[[], list[Record]]) -> list[Record] | str:
    try:
        return read()
    except CodecError as refused:
        return f"{type(refused).__name__}: {refused}"


@pytest.mark.parametrize("release", LAYOUTS)
def test_it_reads_what_is_read_one_by_one(release: str) -> None:
    """F-LOAD-02: of each row and of several, also which one is refused and why."""
    codec, rng = Codec(LAYOUTS[release]), Random(f"bulk {release}")
    rows = [row(rng, codec) for _ in range(ROWS)]
    read = 0
    for first in range(0, ROWS, 4):
        some = rows[first : first + 4]

        def one_by_one(some: list[tuple[bytes | None, bytes | None]] = some) -> list[Record]:
            return [told for told in (codec.loaded(*each) for each in some) if told is not None]

        expected = outcome(one_by_one)
        assert outcome(lambda some=some: codec.loaded_all(some)) == expected
        read += len(expected) if isinstance(expected, list) else 0
    assert read > ROWS / 4


def test_a_key_that_comes_again_is_one_object() -> None:
    codec = Codec()
    record = Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, commit_timestamp=2))
    first, second = codec.loaded_all([codec.encode(record)] * 2)
    assert first == second == record
    assert first.key is second.key


@pytest.mark.parametrize("release", LAYOUTS)
def test_many_are_written_as_they_are_one_by_one(release: str) -> None:
    rng, codec = Random(7), Codec(LAYOUTS[release])
    records = [offset(rng) if rng.random() < 0.8 else draw.record(rng) for _ in range(ROWS // 4)]
    assert codec.encoded_all(records) == [codec.encode(record) for record in records]


def test_what_cannot_be_written_is_refused_among_many_too() -> None:
    codec = Codec()
    good = Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, commit_timestamp=1))
    for bad in (
        Record(OffsetCommitKey("g", "t", 2**31), OffsetCommitValue(1, commit_timestamp=1)),
        Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(2**63, commit_timestamp=1)),
        Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, commit_timestamp=1, topic_id=b"short")),
    ):
        with pytest.raises(CodecError):
            codec.encoded_all([good, bad])
