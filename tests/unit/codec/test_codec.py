"""Records in bytes without a JVM: the values kept of Kafka's serde, round trips, and the messages of rejected
values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.codec import (
    LAYOUTS,
    NEWEST,
    Codec,
    CodecError,
    Opaque,
    TornRecord,
    UnknownType,
    UnknownVersion,
    Unwritable,
    layout_of,
)
from fencepost.codec.reading import RecordReader
from fencepost.codec.table import WRITTEN
from fencepost.codec.writing import varint
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.errors import NoSuchProfile
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue, Producer
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import KAFKA_4_0, PROFILES
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost_conformance.targets.jvm.serde import draw, kept

CODEC = Codec()
PRODUCER = Producer(7, 3)
COMMIT = Record(OffsetCommitKey("g", "t", 3), OffsetCommitValue(5, leader_epoch=2, metadata="m", commit_timestamp=9))
each_layout = pytest.mark.parametrize("name", LAYOUTS)


def test_records_of_kafka_are_written_and_read_alike() -> None:
    assert sum(len(release.records) + len(release.markers) for release in kept.kept().values()) > 500
    assert list(kept.wrongs()) == []


def test_kept_records_cover_every_type_and_every_error() -> None:
    rows = [row for release in kept.kept().values() for row in release.records]
    assert {row.means.number for row in rows if row.version is not None and not isinstance(row.means, str)} == {
        each.number for each in WRITTEN
    }
    assert {row.means for row in rows if isinstance(row.means, str)} == set(kept.Refusal)


@each_layout
@settings(max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_written_records_are_read_back(name: str, seed: int) -> None:
    """Fields that the release does not have are lost, whichever version is written."""
    codec, rng = Codec(LAYOUTS[name]), Random(seed)
    record = draw.record(rng)
    key, value = codec.encode(record)
    read = codec.decode(key, value)
    assert isinstance(read, Record)
    assert read == _known(record, codec)
    assert codec.encode(read) == (key, value)
    version = draw.version(rng, record)
    again = codec.decode(*codec.encode(record, version))
    assert isinstance(again, Record)
    assert codec.encode(again, version) == codec.encode(record, version)


def _known(record: Record, codec: Codec) -> Record:
    """Return the record without the fields that the release, or the written version, leaves out (F-REC-20)."""
    value, layout = record.value, codec.layout
    if isinstance(value, OffsetCommitValue):
        if value.expire_timestamp != -1:
            return replace(record, value=replace(value, leader_epoch=-1, topic_id=ZERO_ID))
        return record if layout.topic_ids else replace(record, value=replace(value, topic_id=ZERO_ID))
    if isinstance(value, ConsumerGroupMetadataValue) and not layout.metadata_hash:
        return replace(record, value=replace(value, metadata_hash=0))
    if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue) and not layout.assignment_timestamp:
        return replace(record, value=replace(value, assignment_timestamp=0))
    if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue) and not layout.assignment_epochs:
        held, revoked = (
            tuple(AssignedPartitions(row.topic_id, row.partitions) for row in rows)
            for rows in (value.assigned_partitions, value.partitions_pending_revocation)
        )
        return replace(record, value=replace(value, assigned_partitions=held, partitions_pending_revocation=revoked))
    return record


@each_layout
@settings(max_examples=150)
@given(seed=st.integers(0, 2**32))
def test_bytes_are_read_or_refused_and_nothing_else(name: str, seed: int) -> None:
    codec = Codec(LAYOUTS[name])
    key, value = draw.damaged(Random(seed), codec)
    try:
        read = codec.decode(key, value)
    except CodecError:
        return
    assert isinstance(read, Record | Opaque)


@settings(max_examples=300)
@given(key=st.binary(max_size=40), value=st.binary(max_size=40), number=st.integers(0, 24))
def test_any_bytes_are_read_or_refused(key: bytes, value: bytes, number: int) -> None:
    for begin in (key, number.to_bytes(2, "big") + b"\0\1g\0\1m\0\0\0\0"):
        try:
            read = CODEC.decode(begin, b"\0\0" + value)
        except CodecError:
            continue
        assert isinstance(read, Record | Opaque)
        if isinstance(read, Record):
            assert CODEC.decode(*CODEC.encode(read)) == _known(read, CODEC)


@given(st.integers(0, 2**31 - 1))
def test_a_written_varint_is_read_back(number: int) -> None:
    reader = RecordReader(varint(number) + b"more", NEWEST)
    assert reader.varint() == number
    assert reader.data[reader.at :] == b"more"


def test_a_commit_is_encoded_as_in_the_rule() -> None:
    """The example of F-REC-11."""
    key, value = CODEC.encode(COMMIT)
    assert key == b"\0\1\0\1g\0\1t\0\0\0\3"
    assert value == b"\0\4" + bytes(7) + b"\5\0\0\0\2\2m" + bytes(7) + b"\x09\0"
    assert Codec(LAYOUTS["kafka-4.0"]).encode(COMMIT)[1] == b"\0\3" + bytes(7) + b"\5\0\0\0\2\0\1m" + bytes(7) + b"\x09"


def test_a_member_that_is_not_classic_has_a_tag() -> None:
    """Without the tag, the record would be read as a classic member (F-REC-05)."""
    value = ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id="c",
        client_host="h",
        subscribed_topic_names=(),
        subscribed_topic_regex="",
        rebalance_timeout_ms=-1,
        server_assignor=None,
    )
    record = Record(ConsumerGroupMemberMetadataKey("g", "m"), value)
    key, written = CODEC.encode(record)
    assert written is not None
    assert written.endswith(b"\1\0\1\0")
    assert CODEC.decode(key, written) == record
    silent = CODEC.decode(key, written[:-4] + b"\0")
    assert silent == Record(record.key, replace(value, classic_member_metadata=ClassicMemberMetadata(0, ())))


def test_a_legacy_commit_is_read_as_a_commit() -> None:
    """A legacy key goes with a value of version 0 only, except in 4.0 (F-REC-00, F-REPLAY-17)."""
    value = OffsetCommitValue(5, metadata="m", commit_timestamp=9)
    key, old = CODEC.encode(Record(COMMIT.key, value), 0)
    legacy = b"\0\0" + key[2:]
    assert CODEC.decode(legacy, old) == Record(COMMIT.key, value)
    newer = CODEC.encode(COMMIT, 3)[1]
    assert Codec(LAYOUTS["kafka-4.0"]).decode(legacy, newer) == COMMIT
    with pytest.raises(UnknownVersion, match="version 3 of record type 0"):
        CODEC.decode(legacy, newer)


def test_the_batch_shows_the_producer_of_a_transaction() -> None:
    assert CODEC.decode(*CODEC.encode(replace(COMMIT, producer=PRODUCER)), PRODUCER) == replace(
        COMMIT, producer=PRODUCER
    )
    assert CODEC.decode(CODEC.encode(COMMIT)[0], None, PRODUCER) == Record(COMMIT.key, None, PRODUCER)


@pytest.mark.parametrize("committed", [True, False])
def test_a_written_transaction_marker_is_read_back(committed: bool) -> None:
    """A marker whose value cannot be read is one without a value (F-REC-26)."""
    record = Record(ControlKey(committed), ControlValue(4), PRODUCER)
    key, value = CODEC.encode(record)
    assert (key, value) == (b"\0\0\0" + bytes((committed,)), b"\0\0\0\0\0\4")
    assert CODEC.decode_marker(key, value, PRODUCER) == record
    assert CODEC.decode_marker(key, b"\0\0", PRODUCER) == replace(record, value=None)
    assert CODEC.decode_marker(b"\0\0\0\2", value) is None
    with pytest.raises(TornRecord):
        CODEC.decode_marker(key[:3], value)


def test_records_of_share_and_streams_groups_are_passed_on() -> None:
    """Key and value are unchanged; each release has its own set of known types (F-REC-09)."""
    read = CODEC.decode(b"\0\x0b any", b"thing")
    assert read == Opaque(11, "ShareGroupMetadata", b"\0\x0b any", b"thing")
    assert CODEC.decode(b"\0\x17", None) == Opaque(23, "StreamsGroupTopology", b"\0\x17", None)
    old = Codec(LAYOUTS["kafka-4.0"])
    assert isinstance(old.decode(b"\0\x09", None), Opaque)
    for codec, key in ((old, b"\0\x17"), (CODEC, b"\0\x09"), (CODEC, b"\0\x12"), (CODEC, b"\xff\xff")):
        with pytest.raises(UnknownType, match="is unknown in this release"):
            codec.decode(key, b"")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda key, value: (None, value), "a record must have a key"),
        (lambda key, value: (key[:1], value), "the bytes end within a number, after 1 bytes"),
        (lambda key, value: (key[:4], value), "a length of 1 bytes does not fit, before byte 4 of 4"),
        (lambda key, value: (key, value[:1]), "the bytes end within a number, after 1 bytes"),
        (lambda key, value: (key, value[:9]), "the bytes end within a number, after 9 bytes"),
        (lambda key, value: (key, value[:14] + b"\0" + value[15:]), "a text is null, before byte 15"),
        (lambda key, value: (key, value[:14] + varint(32_769) + value[15:]), "(got 32768), before byte 17"),
        (lambda key, value: (key, value[:-1] + varint(10_001)), "(got 10001), before byte 26"),
    ],
)
def test_torn_bytes_are_refused_with_the_place(
    change: Callable[[bytes, bytes], tuple[bytes | None, bytes | None]], says: str
) -> None:
    key, value = CODEC.encode(COMMIT)
    assert value is not None
    with pytest.raises(TornRecord, match=re.escape(says)):
        CODEC.decode(*change(key, value))


@pytest.mark.parametrize("version", [-1, 5, 2**15 - 1])
def test_an_unknown_version_is_neither_read_nor_written(version: int) -> None:
    key, value = CODEC.encode(COMMIT)
    assert value is not None
    with pytest.raises(UnknownVersion, match=f"version {version} of record type 1"):
        CODEC.decode(key, version.to_bytes(2, "big", signed=True) + value[2:])
    with pytest.raises(Unwritable, match=re.escape(f"version of OffsetCommit must be from 0 to 4 (got {version})")):
        CODEC.encode(COMMIT, version)


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (Record(OffsetCommitKey("g", "t", 2**31), None), "a number in a record of 'g' does not fit"),
        (Record(OffsetCommitKey("g", "t", 0), OffsetCommitValue(2**63, commit_timestamp=0)), "does not fit"),
        (Record(ConsumerGroupMetadataKey("x" * 32_768), None), "a text must have at most 32767 bytes (got 32768)"),
        (
            Record(OffsetCommitKey("g", "t", 0), OffsetCommitValue(1, commit_timestamp=0, topic_id=b"short")),
            "a topic id must have 16 bytes (got 5)",
        ),
        (
            Record(GroupMetadataKey("g"), COMMIT.value),
            "GroupMetadata record cannot have a value of type OffsetCommitValue",
        ),
    ],
)
def test_a_text_without_bytes_is_rejected(record: Record, says: str) -> None:
    """A text that Kafka's serde rejects cannot be written (F-REC-25)."""
    with pytest.raises(Unwritable, match=re.escape(says)):
        CODEC.encode(record)


def test_there_is_a_layout_for_every_profile() -> None:
    assert LAYOUTS.keys() == PROFILES.keys()
    assert layout_of(KAFKA_4_0) is LAYOUTS["kafka-4.0"]
    with pytest.raises(NoSuchProfile, match=r"no layout of records for profile 'mine'; use one of kafka-4\.0"):
        layout_of(Profile(name="mine"))


def test_a_group_of_the_flexible_version_is_read() -> None:
    record = Record(
        GroupMetadataKey("g"),
        GroupMetadataValue("", generation=1, protocol=None, leader="l", current_state_timestamp=3),
    )
    assert CODEC.decode(*CODEC.encode(record, 4)) == record


def test_a_text_may_be_malformed_and_a_surrogate_alone() -> None:
    """Values of read records (F-REC-24) and of written records (F-REC-25) have bounds."""
    key = OffsetCommitKey("a\ud800b", "t", 0)
    written, _ = CODEC.encode(Record(key, None))
    assert written == b"\0\1\0\3a?b\0\1t\0\0\0\0"
    read = CODEC.decode(written.replace(b"a?b", b"a\xffb"), None)
    assert read == Record(replace(key, group="a\ufffdb"), None)


def test_a_load_skips_unknown_records_and_fails_on_torn_ones() -> None:
    """F-LOAD-02, F-REC-26."""
    key, value = CODEC.encode(COMMIT)
    end = CODEC.encode(Record(ControlKey(True), ControlValue(4)))
    assert CODEC.loaded(key, value, PRODUCER) == replace(COMMIT, producer=PRODUCER)
    assert CODEC.loaded(*end, PRODUCER, control=True) == Record(ControlKey(True), ControlValue(4), PRODUCER)
    assert CODEC.loaded(b"\0\x63", None) is None
    assert CODEC.loaded(b"\0\x0b", None) is None
    assert CODEC.loaded(b"\0\0\0\2", None, control=True) is None
    for torn, control in ((None, False), (None, True), (b"\0", False), (b"\0", True), (b"\xff\xff\0\1", True)):
        with pytest.raises(TornRecord):
            CODEC.loaded(torn, value, control=control)
    with pytest.raises(UnknownVersion):
        CODEC.loaded(key, b"\0\5")


@pytest.mark.parametrize("key", ["00000000", "00000001"])
def test_the_key_of_a_control_record_is_named(key: str) -> None:
    """The record is whole, so the error must not call it torn without a hint."""
    with pytest.raises(TornRecord, match=f"key {key} is that of a control record .*decode_marker"):
        Codec().decode(bytes.fromhex(key), bytes(6))
    assert Codec().decode_marker(bytes.fromhex(key), bytes(6)) is not None
