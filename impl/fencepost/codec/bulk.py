"""Many records at once, as a load reads and a commit writes them: the same as one by one, in a fraction of the time.

Nearly all of a log are offsets, their keys come again and again, and their values have one of two shapes. Those are
taken in one look; whatever is otherwise goes the long way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct, error
from typing import Final

from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

_EMPTY: Final = 1  #: the length of a text of no bytes, and one
_BARE: Final = Struct(">hqiBqB")  #: version 4: offset, leader epoch, no metadata, time, no tags
_NAMED: Final = Struct(">hqiBqBBB16s")  #: the same with the id of the topic
_ID_TAG: Final = (1, 0, 16)  #: one tag, of number 0, and the length of an id
_VERSION: Final = 4  #: of these values
_OFFSET: Final = b"\x00\x01"
_NAME: Final = Struct(">h")
_PARTITION: Final = Struct(">i")

#: A row of a log, also one that no writer makes.
Row = tuple[bytes | None, bytes | None]


def loaded(
    rows: Iterable[Row], topic_ids: bool, one: Callable[[bytes | None, bytes | None], Record | None]
) -> list[Record]:
    """The records of these rows, without those that a load passes over. ``one`` reads a row of any kind, and raises
    what it raises; ``topic_ids``: the release knows them."""
    found: list[Record] = []
    add = found.append
    keys: dict[bytes, OffsetCommitKey] = {}
    names: dict[bytes, tuple[str, str] | None] = {}
    bare, named = _BARE.unpack, _NAMED.unpack
    bare_size, named_size = _BARE.size, _NAMED.size if topic_ids else -1
    make_key, make_value, make = OffsetCommitKey, OffsetCommitValue, Record
    for key, value in rows:
        if value is not None and key is not None:
            size = len(value)
            told = None
            if size == bare_size:
                version, offset, epoch, length, time, tags = bare(value)
                if version == _VERSION and length == _EMPTY and tags == 0:
                    told = make_value(offset, leader_epoch=epoch, commit_timestamp=time)
            elif size == named_size:
                version, offset, epoch, length, time, tags, tag, width, topic_id = named(value)
                if version == _VERSION and length == _EMPTY and (tags, tag, width) == _ID_TAG:
                    told = make_value(offset, leader_epoch=epoch, commit_timestamp=time, topic_id=topic_id)
            if told is not None:
                known = keys.get(key)
                if known is None:
                    begin = key[:-4]
                    if begin not in names:
                        names[begin] = _names(key)
                    both = names[begin]
                    if both is not None:
                        known = keys[key] = make_key(both[0], both[1], _PARTITION.unpack_from(key, len(begin))[0])
                if known is not None:
                    add(make(known, told))
                    continue
        record = one(key, value)
        if record is not None:
            add(record)
    return found


def _names(key: bytes) -> tuple[str, str] | None:
    """Group and topic of an offset's key that has nothing behind its partition; None for any other key."""
    size = len(key)
    if size < 10 or key[:2] != _OFFSET:
        return None
    (length,) = _NAME.unpack_from(key, 2)
    middle = 4 + length
    if length < 0 or middle + 6 > size:
        return None
    (width,) = _NAME.unpack_from(key, middle)
    if width < 0 or middle + 2 + width + 4 != size:
        return None
    try:
        return key[4:middle].decode(), key[middle + 2 : size - 4].decode()
    except UnicodeDecodeError:
        return None


def written(
    records: Iterable[Record], version: int, topic_ids: bool, one: Callable[[Record], tuple[bytes, bytes | None]]
) -> list[tuple[bytes, bytes | None]]:
    """The bytes of these records. ``one`` writes a record of any kind, and raises what it raises; ``version``: of the
    values of offsets that have no time to expire; ``topic_ids``: the release knows them."""
    if version != _VERSION:
        return [one(record) for record in records]
    found = []
    names: dict[tuple[str, str], bytes] = {}
    begin, bare, named = _PARTITION.pack, _BARE.pack, _NAMED.pack
    for record in records:
        key, value = record.key, record.value
        if (
            type(key) is not OffsetCommitKey
            or type(value) is not OffsetCommitValue
            or value.expire_timestamp != -1
            or value.metadata
        ):
            found.append(one(record))
            continue
        both = key.group, key.topic
        prefix = names.get(both)
        if prefix is None:
            whole = one(record)
            names[both] = whole[0][:-4]
            found.append(whole)
            continue
        try:
            told = begin(key.partition)
            topic_id = value.topic_id
            time = value.commit_timestamp
            if not topic_ids or topic_id == ZERO_ID:
                data = bare(version, value.offset, value.leader_epoch, _EMPTY, time, 0)
            elif len(topic_id) == 16:
                data = named(version, value.offset, value.leader_epoch, _EMPTY, time, *_ID_TAG, topic_id)
            else:
                data = None
        except error:
            data = None
        found.append(one(record) if data is None else (prefix + told, data))
    return found
