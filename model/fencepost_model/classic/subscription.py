"""How the coordinator reads the subscriptions of consumers (G-DATA-10).

It reads only the topics, and reads the bytes as version 0 whatever they say. It accepts bytes that end too early. An
impossible length (negative, or beyond the end) makes the decoder throw an exception that is not caught: the join phase
does not complete, its generation is used up and no timer is left (C-ST-27). A record with such bytes cannot be loaded.
Since 4.4 such bytes count as bytes that end too early (V-124).
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

CONSUMER: Final = "consumer"
_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")


class Underflow(Exception):
    """The bytes end within a field of fixed size; the coordinator then knows no topics."""


class Unreadable(Exception):
    """A length field is impossible."""


def topics_of(subscriptions: Iterable[bytes | None]) -> frozenset[str] | None:
    """Return the topics of all subscriptions, or None if one of them cannot be read (G-DATA-10)."""
    try:
        return frozenset([topic for each in subscriptions for topic in read_topics(each or b"")])
    except (Underflow, Unreadable):
        return None


def read_topics(metadata: bytes) -> list[str]:
    """Read the topics as the coordinator does. Raises Underflow or Unreadable."""
    topics: list[str] = []
    at = 2  # the version
    if len(metadata) < at:
        raise Underflow
    count, at = _take(_INT, metadata, at)
    if count < 0 or count > len(metadata) - at:
        raise Unreadable
    for _ in range(count):
        length, at = _take(_SHORT, metadata, at)
        if length < 0 or length > len(metadata) - at:
            raise Unreadable
        topics.append(metadata[at : at + length].decode("utf-8", "replace"))
        at += length
    length, at = _take(_INT, metadata, at)
    if length > len(metadata) - at:
        raise Unreadable
    return topics


def _take(field: Struct, metadata: bytes, at: int) -> tuple[int, int]:
    if len(metadata) - at < field.size:
        raise Underflow
    return field.unpack_from(metadata, at)[0], at + field.size


def outcomes(subscriptions: Iterable[bytes | None], *, lengths_throw: bool = True) -> list[str]:
    """Return how reading all subscriptions in some order can end: ``read``, ``gives up`` (Underflow) or ``throws``.

    ``throws`` is Unreadable, which since 4.4 counts as Underflow (V-124), or a None of a member that does not offer the
    protocol. The first subscription that cannot be read ends the reading. The order is that of a hash map, so there may
    be two possible ends.
    """
    ends = set()
    for metadata in subscriptions:
        try:
            if metadata is None:
                ends.add("throws")
            else:
                read_topics(metadata)
        except Underflow:
            ends.add("gives up")
        except Unreadable:
            ends.add("throws" if lengths_throw else "gives up")
    return sorted(ends) or ["read"]
