"""The record of a whole classic group: type 2 (F-REC-02, F-REC-12)."""

from __future__ import annotations

from functools import partial
from typing import Final

from fencepost.protocol.records import GroupMetadataMember, GroupMetadataValue

from .layout import Layout
from .reading import RecordReader
from .writing import (
    NO_TAGS,
    array,
    compact_array,
    compact_content,
    compact_nullable_text,
    compact_text,
    content,
    int32,
    int64,
    nullable_text,
    text,
)

_NONE: Final = -1  #: no timestamp, no rebalance timeout
_FLEXIBLE: Final = 4


def read_group(reader: RecordReader, version: int) -> GroupMetadataValue:
    """Read a group of any version; fields that the version lacks get their default (F-REC-12)."""
    flexible = version >= _FLEXIBLE
    protocol_type = reader.compact_text() if flexible else reader.text()
    generation = reader.int32()
    protocol = reader.compact_nullable_text() if flexible else reader.nullable_text()
    leader = reader.compact_nullable_text() if flexible else reader.nullable_text()
    timestamp = reader.int64() if version >= 2 else _NONE
    if flexible:
        members = reader.compact_array(_read_flexible_member)
        reader.no_tags()
    else:
        members = reader.array(partial(_read_member, version=version))
    return GroupMetadataValue(
        protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        current_state_timestamp=timestamp,
        members=members,
    )


def _read_member(reader: RecordReader, version: int) -> GroupMetadataMember:
    return GroupMetadataMember(
        reader.text(),
        group_instance_id=reader.nullable_text() if version >= 3 else None,
        client_id=reader.text(),
        client_host=reader.text(),
        rebalance_timeout=reader.int32() if version >= 1 else _NONE,
        session_timeout=reader.int32(),
        subscription=reader.content(),
        assignment=reader.content(),
    )


def _read_flexible_member(reader: RecordReader) -> GroupMetadataMember:
    member = GroupMetadataMember(
        reader.compact_text(),
        group_instance_id=reader.compact_nullable_text(),
        client_id=reader.compact_text(),
        client_host=reader.compact_text(),
        rebalance_timeout=reader.int32(),
        session_timeout=reader.int32(),
        subscription=reader.compact_content(),
        assignment=reader.compact_content(),
    )
    reader.no_tags()
    return member


def write_group(value: GroupMetadataValue, version: int, layout: Layout) -> bytes:
    """Write a group; fields that the version lacks are left out (F-REC-12). It is the same in all releases."""
    flexible = version >= _FLEXIBLE
    optional = compact_nullable_text if flexible else nullable_text
    parts = [
        compact_text(value.protocol_type) if flexible else text(value.protocol_type),
        int32(value.generation),
        optional(value.protocol),
        optional(value.leader),
        int64(value.current_state_timestamp) if version >= 2 else b"",
    ]
    if flexible:
        parts += compact_array(value.members, _write_flexible_member), NO_TAGS
    else:
        parts.append(array(value.members, partial(_write_member, version=version)))
    return b"".join(parts)


def _write_member(member: GroupMetadataMember, version: int) -> bytes:
    return b"".join(
        (
            text(member.member_id),
            nullable_text(member.group_instance_id) if version >= 3 else b"",
            text(member.client_id),
            text(member.client_host),
            int32(member.rebalance_timeout) if version >= 1 else b"",
            int32(member.session_timeout),
            content(member.subscription),
            content(member.assignment),
        )
    )


def _write_flexible_member(member: GroupMetadataMember) -> bytes:
    return b"".join(
        (
            compact_text(member.member_id),
            compact_nullable_text(member.group_instance_id),
            compact_text(member.client_id),
            compact_text(member.client_host),
            int32(member.rebalance_timeout),
            int32(member.session_timeout),
            compact_content(member.subscription),
            compact_content(member.assignment),
            NO_TAGS,
        )
    )


def written_version(value: GroupMetadataValue, layout: Layout) -> int:
    """Return version 3: all releases write it, and also read version 4 (F-REC-20)."""
    return 3
