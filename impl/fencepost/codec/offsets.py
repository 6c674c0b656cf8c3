"""Records of committed offsets: types 0 and 1 (F-REC-00, F-REC-11)."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue

from .layout import Layout
from .reading import RecordReader
from .writing import NO_TAGS, compact_text, int16, int32, int64, tag_zero, text, topic_id

_NONE: Final = -1  #: no leader epoch, no expiry
_EXPIRING: Final = 1  #: the only version with an expiry
_FLEXIBLE: Final = 4
_TYPE: Final = 1
_BEGIN: Final = Struct(">qi").pack


def read_offset_key(reader: RecordReader) -> OffsetCommitKey:
    """Read group, topic and partition."""
    return OffsetCommitKey(reader.text(), reader.text(), reader.int32())


def write_offset_key(key: OffsetCommitKey) -> bytes:
    """Write group, topic and partition."""
    return text(key.group) + text(key.topic) + int32(key.partition)


@lru_cache(maxsize=1_024)
def key_prefix(group: str, topic: str) -> bytes:
    """Return the bytes of a key up to the partition. Raises ``Unwritable``."""
    return int16(_TYPE) + text(group) + text(topic)


def read_offset(reader: RecordReader, version: int) -> OffsetCommitValue:
    """Read a committed offset of any version; fields that the version lacks get their default (F-REC-11)."""
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else _NONE
    metadata = reader.compact_text() if version >= _FLEXIBLE else reader.text()
    commit_timestamp = reader.int64()
    expire_timestamp = reader.int64() if version == _EXPIRING else _NONE
    identity = ZERO_ID
    if version >= _FLEXIBLE:
        identity = reader.tagged(RecordReader.topic_id if reader.layout.topic_ids else None, ZERO_ID)
    return OffsetCommitValue(
        offset,
        leader_epoch=leader_epoch,
        metadata=metadata,
        commit_timestamp=commit_timestamp,
        expire_timestamp=expire_timestamp,
        topic_id=identity,
        expires_at_minus_one=version == _EXPIRING and expire_timestamp == _NONE,
    )


def write_offset(value: OffsetCommitValue, version: int, layout: Layout) -> bytes:
    """Write a committed offset; fields that the version or the release lacks are left out (F-REC-11, F-REC-20)."""
    if version >= _FLEXIBLE:
        has_id = layout.topic_ids and value.topic_id != ZERO_ID
        return (
            _BEGIN(value.offset, value.leader_epoch)
            + compact_text(value.metadata)
            + int64(value.commit_timestamp)
            + (tag_zero(topic_id(value.topic_id)) if has_id else NO_TAGS)
        )
    begin = _BEGIN(value.offset, value.leader_epoch) if version == 3 else int64(value.offset)
    end = int64(value.expire_timestamp) if version == _EXPIRING else b""
    return begin + text(value.metadata) + int64(value.commit_timestamp) + end


def written_version(value: OffsetCommitValue, layout: Layout) -> int:
    """Return the version to write: an expiry needs version 1, which lacks a leader epoch (F-REC-20)."""
    has_expiry = value.expire_timestamp != _NONE or value.expires_at_minus_one
    return _EXPIRING if has_expiry else layout.offset_commit_version
