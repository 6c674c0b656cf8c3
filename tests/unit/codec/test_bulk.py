"""Reading many records in one call equals reading them one by one, whole or damaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

import pytest

from fencepost.codec import LAYOUTS, Codec, CodecError
from fencepost.protocol.logged import Commits, StoredOffset, is_packed, unpacked
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost_conformance.targets.jvm.serde import draw

ROWS = 1_600


def offset(rng: Random) -> Record:
    """Return a record of the kind that is read in bulk, and sometimes one that nearly is."""
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
    """Change, add or remove one byte."""
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
    writer = codec if rng.random() < 0.7 else Codec()  # a newer release may have written the log
    key, value = writer.encode(offset(rng), rng.choice((None, None, None, 1, 3)))
    if rng.random() < 0.3:
        key = bent(rng, key)
    if value is not None and rng.random() < 0.3:
        value = bent(rng, value)
    return key, value


def outcome(read: Callable[[], Iterable[Record]]) -> list[Record] | str:
    try:
        return list(read())
    except CodecError as refused:
        return f"{type(refused).__name__}: {refused}"


def compare_runs(codec: Codec, rows: list[tuple[bytes | None, bytes | None]]) -> None:
    """Return the last row of each partition in a run."""
    place = 0
    for part in codec.logged(rows).parts:
        if not isinstance(part, Commits):
            place += 1
            continue
        kept = {(group, *at): (each.value, each.place) for group, of in part.groups.items() for at, each in of.items()}
        records = [codec.loaded(*each) for each in part.rows]
        assert kept == {
            (each.key.group, each.key.topic, each.key.partition): (each.value, at)
            for at, each in enumerate(records, place)
            if each is not None and isinstance(each.key, OffsetCommitKey)
        }
        place += len(part.rows)


@pytest.mark.parametrize("release", LAYOUTS)
def test_bulk_reading_equals_reading_one_by_one(release: str) -> None:
    """The results for each row and for several agree, including which row is rejected and why (F-LOAD-02)."""
    codec, rng = Codec(LAYOUTS[release]), Random(f"bulk {release}")
    rows = [row(rng, codec) for _ in range(ROWS)]
    read = 0
    for first in range(0, ROWS, 4):
        some = rows[first : first + 4]

        def one_by_one(some: list[tuple[bytes | None, bytes | None]] = some) -> list[Record]:
            return [record for record in (codec.loaded(*each) for each in some) if record is not None]

        expected = outcome(one_by_one)
        assert outcome(lambda some=some: codec.logged(some)) == expected
        if isinstance(expected, list):
            read += len(expected)
            compare_runs(codec, some)
    assert read > ROWS / 4


def test_a_value_of_a_usual_shape_is_read_in_one_pass() -> None:
    """Any other value goes to the general reader, whichever byte was changed (F-REC-11)."""
    codec, rng, packed = Codec(), Random("packed"), 0
    for _ in range(4_000):
        key, value = codec.encode(offset(rng))
        assert value is not None
        value = bent(rng, value) if rng.random() < 0.5 else value
        if not is_packed(value):
            continue
        packed += 1
        read = codec.loaded(key, value)
        assert read is not None
        assert unpacked(value) == read.value
    assert packed > 1_500


def test_offsets_with_equal_values_and_places_are_equal() -> None:
    _, value = Codec().encode(Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, commit_timestamp=2)))
    assert value is not None
    read = StoredOffset(OffsetCommitValue(1, commit_timestamp=2), 7)
    assert StoredOffset(value, 7) == read
    assert hash(StoredOffset(value, 7)) == hash(read)
    assert repr(StoredOffset(value, 7)) == repr(read)
    assert StoredOffset(value, 8) != read
    assert StoredOffset(OffsetCommitValue(2, commit_timestamp=2), 7) != read


def test_a_run_keeps_the_last_of_each_partition_in_the_order_of_their_first() -> None:
    codec = Codec()
    places = [("a", 0), ("b", 0), ("a", 1), ("a", 0), ("c", 0), ("b", 0)]
    rows = [
        codec.encode(Record(OffsetCommitKey(group, "t", partition), OffsetCommitValue(at, commit_timestamp=at)))
        for at, (group, partition) in enumerate(places)
    ]
    (run,) = codec.logged([*rows, (b"\x00\x63", b"")]).parts  # of an unknown type
    assert isinstance(run, Commits)
    kept = [
        (group, *at, offset.value.offset, offset.place) for group, of in run.groups.items() for at, offset in of.items()
    ]
    assert kept == [("a", "t", 0, 3, 3), ("a", "t", 1, 2, 2), ("b", "t", 0, 5, 5), ("c", "t", 0, 4, 4)]


@pytest.mark.parametrize("release", LAYOUTS)
def test_many_records_are_written_like_single_ones(release: str) -> None:
    rng, codec = Random(7), Codec(LAYOUTS[release])
    records = [offset(rng) if rng.random() < 0.8 else draw.record(rng) for _ in range(ROWS // 4)]
    assert codec.encoded_all(records) == [codec.encode(record) for record in records]


def test_a_value_that_cannot_be_written_is_rejected_among_many_too() -> None:
    codec = Codec()
    good = Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, commit_timestamp=1))
    for bad in (
        Record(OffsetCommitKey("g", "t", 2**31), OffsetCommitValue(1, commit_timestamp=1)),
        Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(2**63, commit_timestamp=1)),
        Record(OffsetCommitKey("g", "t", 1), OffsetCommitValue(1, commit_timestamp=1, topic_id=b"short")),
    ):
        with pytest.raises(CodecError):
            codec.encoded_all([good, bad])
