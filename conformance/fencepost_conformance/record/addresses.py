"""Keeps clients on the proxy: answers that tell a broker's address tell the proxy's instead.

The addresses are in Metadata, FindCoordinator and DescribeCluster answers. Produce and Fetch answers can name a new
leader's address too, but only when a partition moved to another broker, and one node has no other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.index import api_key_map

from fencepost.server.wire.frames import highest_version
from fencepost.server.wire.read import BadBytes, uvarint

from ..addresses import Address

#: APIs whose answers hold broker addresses.
WITH_ADDRESSES = frozenset({"metadata", "find_coordinator", "describe_cluster"})


class SeveralBrokers(Exception):
    """The cluster has more than the one node that a recording covers."""


def addresses_in(entity: Any) -> list[Address]:
    """The broker addresses of a decoded answer. Raises SeveralBrokers if it names more than one node."""
    if hasattr(entity, "brokers"):
        if len(entity.brokers) > 1:
            raise SeveralBrokers(f"the cluster has {len(entity.brokers)} brokers; a recording covers exactly one")
        nodes = entity.brokers
    elif hasattr(entity, "coordinators"):  # FindCoordinator v4 and later
        nodes = entity.coordinators
    else:
        nodes = (entity,)
    # a lookup that failed names node -1 without an address
    return [Address(str(node.host), int(node.port)) for node in nodes if node.port >= 0 and node.host]


def readdressed(frame: bytes, brokers: Iterable[Address], here: Address) -> bytes:
    """The answer with the proxy's address wherever one of these brokers' stands; every other byte stays.

    Host and port stand side by side in every version of every API that has them (``WITH_ADDRESSES``), so this works for
    an answer that cannot be decoded, too.
    """
    for broker in dict.fromkeys(brokers):
        for old, new in zip(_encoded(broker), _encoded(here), strict=True):
            frame = frame.replace(old, new)
    return frame


def _encoded(address: Address) -> tuple[bytes, bytes]:
    """The address as versions before flexible ones have it, and as those have it."""
    host, port = address.host.encode(), struct.pack(">i", address.port)
    return struct.pack(">h", len(host)) + host + port, _uvarint(len(host) + 1) + host + port


def _uvarint(value: int) -> bytes:
    low = []
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*low, value])


@dataclass(frozen=True, slots=True)
class Limited:
    """An API of which a client is offered fewer versions than the broker has: up to ``offered`` instead of ``has``."""

    api: str
    offered: int
    has: int


#: Where the rows of an ApiVersions answer begin: behind the correlation id and the error code.
_ROWS_AT: Final = 6
_FLEXIBLE_API_VERSIONS: Final = 3
_ROW: Final = struct.Struct(">hhh")


def with_readable_addresses(frame: bytes, version: int) -> tuple[bytes, tuple[Limited, ...]]:
    """An ApiVersions answer that offers no version of an API in ``WITH_ADDRESSES`` that could not be decoded; and which
    ones it has less. Every other byte stays. Raises BadBytes."""
    made = bytearray(frame)
    flexible = version >= _FLEXIBLE_API_VERSIONS
    limited = []
    try:
        if flexible:
            count, at = uvarint(frame, _ROWS_AT, len(frame))
            count -= 1
        else:
            count, at = int.from_bytes(frame[_ROWS_AT : _ROWS_AT + 4], "big", signed=True), _ROWS_AT + 4
        for _ in range(count):
            key, lowest, highest = _ROW.unpack_from(frame, at)
            api = api_key_map.get(key, "")
            known = highest_version(api) if api in WITH_ADDRESSES else highest
            if lowest <= known < highest:
                _ROW.pack_into(made, at, key, lowest, known)
                limited.append(Limited(api, known, highest))
            at += _ROW.size
            if flexible:
                at = _behind_tags(frame, at)
    except struct.error as end:
        raise BadBytes(f"the rows of an ApiVersions answer end too early: {end}") from None
    return bytes(made), tuple(limited)


def _behind_tags(frame: bytes, at: int) -> int:
    count, at = uvarint(frame, at, len(frame))
    for _ in range(count):
        _, at = uvarint(frame, at, len(frame))
        length, at = uvarint(frame, at, len(frame))
        at += length
    return at
