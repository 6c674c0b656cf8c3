"""Random records of every type, and bytes with damage that reading may trip over."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeVar

from fencepost.codec import Codec
from fencepost.codec.table import BY_KEY
from fencepost.codec.writing import varint
from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.messages import Protocol
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record

T = TypeVar("T")
_INT32 = (-(2**31), -2, -1, 0, 1, 5, 300, 2**31 - 1)
_INT64 = (-(2**63), -1, 0, 1, 1_700_000_000_000, 2**63 - 1)
#: names with one to four bytes a character, and with lengths at which a varint grows
_NAMES = ("", "a", "t10", "ä", "\u0915\u094d", "\uffee", "\U0001f980", "\ufffd", "\0", "x" * 126, "x" * 127, "x" * 300)


def record(draw: Random) -> Record:
    """Draw a record of any type; one in ten is a tombstone."""
    made = draw.choice(RECORDS)(draw)
    return Record(made.key, None) if draw.random() < 0.1 else made


def version(draw: Random, drawn: Record) -> int:
    """Draw a version that a value of this type can have."""
    return draw.randint(0, BY_KEY[type(drawn.key)].highest)


def damaged(draw: Random, codec: Codec) -> tuple[bytes | None, bytes | None]:
    """Draw the bytes of a record, of any version of its value; in most cases damaged."""
    drawn = record(draw)
    key, value = codec.encode(drawn, None if draw.random() < 0.5 else version(draw, drawn))
    kind = draw.random()
    if kind < 0.15:
        return (_typed(draw, key), value) if draw.random() < 0.97 else (None, value)
    if kind < 0.3:
        return _spoiled(draw, key), value
    if value is None:
        return key, None if draw.random() < 0.5 else draw.randbytes(draw.randint(0, 4))
    if kind < 0.45:
        return key, draw.choice((-1, 0, 1, 2, 3, 4, 5, 2**15 - 1)).to_bytes(2, "big", signed=True) + value[2:]
    if kind < 0.6 and value[-1:] == b"\0":
        return key, value[:-1] + _tags(draw)
    return key, _spoiled(draw, value) if kind < 0.95 else value


class Pointed(NamedTuple):
    """Bytes of a record, and the rule that decides how they are read."""

    rule: str
    key: bytes | None
    value: bytes | None


def pointed() -> list[Pointed]:
    """Return bytes that each are wrong, or just right, in one way that random damage seldom reaches."""
    epoch, member, legacy = b"\0\3\0\1g", b"\0\5\0\1g\0\1m", b"\0\0\0\1g\0\1t\0\0\0\2"
    seven, eight = ((number).to_bytes(8, "big") for number in (7, 8))
    rest = b"\2c\2h\1\1" + bytes(4) + b"\0\1\0\1\0"  # the rest of a member, from its client id on
    tagged = (
        ("F-REC-03", b"\1\0\10" + seven),  # as it is written
        ("F-REC-22", b"\1\0\1" + seven),  # its length is too small
        ("F-REC-22", b"\2\0\1" + seven + b"\1\2ab"),  # followed by another
        ("F-REC-22", b"\2\0\10" + seven + b"\0\10" + eight),  # twice
        ("F-REC-22", b"\2\5\2ab\0\10" + eight),  # behind an unknown one
        ("F-REC-22", b"\1\5\3ab"),  # an unknown one, longer than the remaining bytes
        ("F-REC-22", b"\1\5\xff\xff\xff\xff\x0f"),  # of a negative length
        ("F-REC-23", b"\xff\xff\xff\xff\x0f"),  # a negative number of them
        ("F-REC-23", varint(10_000) + b"\5\0" * 10_000),  # the maximum
        ("F-REC-23", varint(10_001) + b"\5\0" * 10_001),  # one more
        ("F-REC-22", b"\x80\x80\x80\x80\x00"),  # none, in five bytes
        ("F-REC-22", b"\x80\x80\x80\x80\x80\x00"),  # in six
        ("F-REC-22", b"\x80\x80\x80\x80\x70"),  # none, and bits above the 32nd
    )
    named = (
        ("F-REC-13", b"\0\0"),  # no instance, no rack
        ("F-REC-24", b"\2\xff\0"),  # malformed
        ("F-REC-24", b"\4\xed\xa0\x80\0"),  # a surrogate
        ("F-REC-22", b"\xff\xff\xff\xff\x0f\0"),  # a negative length: null
        ("F-REC-22", b"\x80\x80\x80\x80\x08\0"),  # the lowest number, one less than which overflows to the highest
        ("F-REC-22", b"\x81\x80\2\0" + b"x" * 32_768),  # too long, although complete
    )
    classic = (
        b"\0",  # no tag: a classic member with defaults
        b"\1\0\1\0",  # null
        b"\1\0\5\xff\xff\xff\xff\x0f",  # null by a negative number
        b"\1\0\7\1\0\0\0\5\1\0",  # a classic member without protocols
        b"\1\0\1\2\0\0\0\5\1\0",  # the same, encoded differently
    )
    return [
        Pointed("F-REC-22", None, None),
        Pointed("F-REC-22", b"", None),
        Pointed("F-REC-22", epoch, b""),
        Pointed("F-REC-22", epoch + b"more", b"\0\0\0\0\0\1\0more"),
        *(Pointed(rule, epoch, b"\0\0\0\0\0\1" + tags) for rule, tags in tagged),
        *(Pointed(rule, member, b"\0\0" + names + rest) for rule, names in named),
        *(Pointed("F-REC-05", member, b"\0\0\0\0" + rest[:-4] + tag) for tag in classic),
        *(Pointed("F-REC-00", legacy, bytes((0, version)) + seven + bytes(16)) for version in range(5)),
    ]


def marker(draw: Random) -> tuple[bytes, bytes | None]:
    """Draw a control record, mostly of a known kind and a known version."""
    key = _int16(draw.choice((0, 0, 0, 1, -1, 2**15 - 1))) + _int16(draw.choice((0, 1, 0, 1, 2, 6, 7, -1, 300)))
    value = _int16(draw.choice((0, 0, 0, 1, 2, -1))) + draw.choice(_INT32).to_bytes(4, "big", signed=True)
    return (
        key if draw.random() < 0.8 else _spoiled(draw, key),
        draw.choice((value, value, None, _spoiled(draw, value))),
    )


def _typed(draw: Random, key: bytes) -> bytes:
    return _int16(draw.choice((-1, 0, 0, 0, *range(9, 30), 300))) + key[2:]


def _int16(number: int) -> bytes:
    return number.to_bytes(2, "big", signed=True)


def _tags(draw: Random) -> bytes:
    """Draw tagged fields, known and unknown, whose counts or lengths may be too large."""
    count = draw.randint(0, 3)
    rows = b""
    for _ in range(count):
        field = draw.choice((b"", b"\0", b"\1", draw.randbytes(8), draw.randbytes(16), b"\2" + draw.randbytes(4)))
        size = len(field) if draw.random() < 0.8 else draw.choice((0, 1, 200, 2**31 - 1, 2**32 - 1))
        rows += varint(draw.choice((0, 0, 1, 2, 2**31))) + varint(size) + field
    said = count if draw.random() < 0.8 else draw.choice((0, 5, 10_001, 2**31 - 1, 2**31, 2**32 - 1))
    return varint(said) + rows


def _spoiled(draw: Random, data: bytes) -> bytes:
    kind = draw.random()
    if kind < 0.35:
        return data[: draw.randint(0, len(data))]
    if kind < 0.45:
        return data + draw.randbytes(draw.randint(1, 9))
    if kind < 0.6:  # a number that is longer, or overflows
        at = draw.randint(0, len(data))
        return data[:at] + draw.choice(_VARINTS) + data[at + draw.randint(0, 1) :]
    spoiled = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        if spoiled:
            spoiled[draw.randrange(len(spoiled))] = draw.choice(
                (0, 1, 2, 0x41, 0x7F, 0x80, 0xA0, 0xC2, 0xED, 0xF0, 0xFF)
            )
    return bytes(spoiled)


_SPOILS = (0, 1, 2, 0x41, 0x7F, 0x80, 0xA0, 0xC2, 0xED, 0xF0, 0xFF)
_VARINTS = (
    b"\x80\x00", b"\x81\x80\x00", b"\x80\x80\x80\x80\x00", b"\x82\x80\x80\x80\x70", b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x08", b"\x80\x80\x80\x80\x80\x00", b"\xff\xff\xff\xff\x7f", b"\xff\xff\x03", b"\xc1\x84\x3d",
)  # fmt: skip


def _name(draw: Random) -> str:
    return draw.choice(_NAMES)


def _names(draw: Random) -> tuple[str, ...]:
    return _some(draw, _name)


def _maybe(draw: Random, make: Callable[[Random], T]) -> T | None:
    return None if draw.random() < 0.3 else make(draw)


def _some(draw: Random, make: Callable[[Random], T]) -> tuple[T, ...]:
    many = draw.choice((0, 0, 1, 1, 2, 3)) if draw.random() < 0.97 else draw.choice((126, 127, 300))
    return tuple(make(draw) for _ in range(many))


def _id(draw: Random) -> bytes:
    return draw.randbytes(16) if draw.random() < 0.8 else ZERO_ID


def _content(draw: Random) -> bytes:
    return draw.randbytes(draw.choice((0, 0, 1, 20, 126, 127, 128))) if draw.random() < 0.98 else draw.randbytes(20_000)


def _offset(draw: Random) -> Record:
    return Record(
        OffsetCommitKey(_name(draw), _name(draw), draw.choice(_INT32)),
        OffsetCommitValue(
            draw.choice(_INT64),
            leader_epoch=draw.choice(_INT32),
            metadata=_name(draw),
            commit_timestamp=draw.choice(_INT64),
            expire_timestamp=-1 if draw.random() < 0.7 else draw.choice(_INT64),
            topic_id=_id(draw),
        ),
    )


def _group(draw: Random) -> Record:
    return Record(
        GroupMetadataKey(_name(draw)),
        GroupMetadataValue(
            _name(draw),
            generation=draw.choice(_INT32),
            protocol=_maybe(draw, _name),
            leader=_maybe(draw, _name),
            current_state_timestamp=draw.choice(_INT64),
            members=_some(draw, _group_member),
        ),
    )


def _group_member(draw: Random) -> GroupMetadataMember:
    return GroupMetadataMember(
        _name(draw),
        group_instance_id=_maybe(draw, _name),
        client_id=_name(draw),
        client_host=_name(draw),
        rebalance_timeout=draw.choice(_INT32),
        session_timeout=draw.choice(_INT32),
        subscription=_content(draw),
        assignment=_content(draw),
    )


def _group_epoch(draw: Random) -> Record:
    value = r.ConsumerGroupMetadataValue(draw.choice(_INT32), metadata_hash=draw.choice(_INT64))
    return Record(r.ConsumerGroupMetadataKey(_name(draw)), value)


def _partition_metadata(draw: Random) -> Record:
    topics = _some(draw, lambda draw: r.TopicMetadata(_id(draw), _name(draw), draw.choice(_INT32)))
    return Record(r.ConsumerGroupPartitionMetadataKey(_name(draw)), r.ConsumerGroupPartitionMetadataValue(topics))


def _member(draw: Random) -> Record:
    classic = _maybe(draw, lambda draw: r.ClassicMemberMetadata(draw.choice(_INT32), _some(draw, _protocol)))
    return Record(
        r.ConsumerGroupMemberMetadataKey(_name(draw), _name(draw)),
        r.ConsumerGroupMemberMetadataValue(
            instance_id=_maybe(draw, _name),
            rack_id=_maybe(draw, _name),
            client_id=_name(draw),
            client_host=_name(draw),
            subscribed_topic_names=_names(draw),
            subscribed_topic_regex=_maybe(draw, _name),
            rebalance_timeout_ms=draw.choice(_INT32),
            server_assignor=_maybe(draw, _name),
            classic_member_metadata=classic if draw.random() < 0.9 else r.ClassicMemberMetadata(0, ()),
        ),
    )


def _protocol(draw: Random) -> Protocol:
    return Protocol(_name(draw), _content(draw))


def _target_epoch(draw: Random) -> Record:
    value = r.ConsumerGroupTargetAssignmentMetadataValue(draw.choice(_INT32), assignment_timestamp=draw.choice(_INT64))
    return Record(r.ConsumerGroupTargetAssignmentMetadataKey(_name(draw)), value)


def _numbers(draw: Random) -> tuple[int, ...]:
    return _some(draw, lambda draw: draw.choice(_INT32))


def _target(draw: Random) -> Record:
    rows = _some(draw, lambda draw: TopicPartitions(_id(draw), _numbers(draw)))
    return Record(
        r.ConsumerGroupTargetAssignmentMemberKey(_name(draw), _name(draw)),
        r.ConsumerGroupTargetAssignmentMemberValue(rows),
    )


def _assigned(draw: Random) -> r.AssignedPartitions:
    return r.AssignedPartitions(_id(draw), _numbers(draw), assignment_epochs=_numbers(draw) or None)


def _assignment(draw: Random) -> Record:
    return Record(
        r.ConsumerGroupCurrentMemberAssignmentKey(_name(draw), _name(draw)),
        r.ConsumerGroupCurrentMemberAssignmentValue(
            draw.choice(_INT32),
            previous_member_epoch=draw.choice(_INT32),
            state=draw.choice((-128, -1, 0, 1, 2, 127)),
            assigned_partitions=_some(draw, _assigned),
            partitions_pending_revocation=_some(draw, _assigned),
        ),
    )


def _regex(draw: Random) -> Record:
    value = r.ConsumerGroupRegularExpressionValue(
        _names(draw), version=draw.choice(_INT64), timestamp=draw.choice(_INT64)
    )
    return Record(r.ConsumerGroupRegularExpressionKey(_name(draw), _name(draw)), value)


#: Makes a record of each type, with a value.
RECORDS: tuple[Callable[[Random], Record], ...] = (
    _offset, _group, _group_epoch, _partition_metadata, _member, _target_epoch, _target, _assignment, _regex,
)  # fmt: skip
