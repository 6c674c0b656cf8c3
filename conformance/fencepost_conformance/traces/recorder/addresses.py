"""Keeps clients on the proxy: replaces each broker's address in answers by that of its listener.

Metadata, FindCoordinator and DescribeCluster answers contain addresses. Produce and Fetch answers can name a new
leader's address too, when a partition moved to another broker. The proxy does not replace that one: it would have to
read every answer that has records. Clients of several brokers are therefore offered no version that has it.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kio.schema.index import api_key_map

from fencepost.wire.frames import highest_version
from fencepost.wire.read import BadBytes, uvarint

from ...common.addresses import Address

#: The last versions whose answers do not name a new leader's address.
_WITHOUT_LEADERS: Final = {"produce": 9, "fetch": 15}
#: APIs whose answers contain broker addresses.
WITH_ADDRESSES = frozenset({"metadata", "find_coordinator", "describe_cluster"})


def addresses_in(entity: Any) -> dict[int, Address]:
    """Return the brokers of a decoded answer: node ids with addresses."""
    if hasattr(entity, "brokers"):
        nodes = entity.brokers
    elif hasattr(entity, "coordinators"):  # FindCoordinator v4 and later
        nodes = entity.coordinators
    else:
        nodes = (entity,)
    # a lookup that failed names node -1 without an address
    return {
        int(node.broker_id if hasattr(node, "broker_id") else node.node_id): Address(str(node.host), int(node.port))
        for node in nodes
        if node.port >= 0 and node.host
    }


def readdressed(frame: bytes, places: Mapping[Address, Address]) -> bytes:
    """Return the answer with the proxy's addresses in place of these brokers' addresses; every other byte stays.

    Host and port are next to each other in every version of every API that has them (``WITH_ADDRESSES``). So this also
    works for an answer that cannot be decoded. One pass: the proxy's address may be the address of another broker.
    """
    pairs = {
        old: new for broker, here in places.items() for old, new in zip(_encoded(broker), _encoded(here), strict=True)
    }
    if not pairs:
        return frame
    return re.sub(b"|".join(map(re.escape, pairs)), lambda found: pairs[found[0]], frame, flags=re.DOTALL)


def _encoded(address: Address) -> tuple[bytes, bytes]:
    """Return the address in the encodings of inflexible and of flexible versions."""
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
    """An API that clients are offered up to version ``offered`` only, although the broker ``has`` a later one."""

    api: str
    offered: int
    has: int


#: Where the rows of an ApiVersions answer begin: behind the correlation id and the error code.
_ROWS_AT: Final = 6
_FLEXIBLE_API_VERSIONS: Final = 3
_ROW: Final = struct.Struct(">hhh")


def with_readable_addresses(frame: bytes, version: int, *, several: bool = False) -> tuple[bytes, tuple[Limited, ...]]:
    """Return an ApiVersions answer without versions of ``WITH_ADDRESSES`` APIs that could not be decoded, and the list
    of those limits. Every other byte stays. Raises BadBytes.

    ``several``: the cluster has several brokers, so an answer to Produce or Fetch may name a new leader.
    """
    leaders = _WITHOUT_LEADERS if several else {}
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
            known = highest_version(api) if api in WITH_ADDRESSES else leaders.get(api, highest)
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
