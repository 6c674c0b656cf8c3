"""Puts the segments of TCP connections back into their order.

The whole capture is known, so a gap is a loss only if no later packet fills it. Bytes are delivered when the last of
the bytes before them has arrived. That moment is the number of a packet: the largest one among the first arrivals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ...common.addresses import Address
from .packets import Segment


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that were delivered together, behind ``lost`` bytes that the capture does not have. ``number``: of the
    packet that delivered them."""

    number: int
    at_ns: int
    data: bytes
    lost: int = 0


@dataclass(slots=True)
class Half:
    """The bytes in one direction. ``begun``: the capture has the beginning, which is position 0."""

    begun: bool = False
    base: int = 0  #: the sequence number of ``position``
    position: int = 0
    segments: list[tuple[int, Segment]] = field(default_factory=list)

    def begin(self, sequence: int) -> None:
        self.begun, self.base, self.position = True, sequence + 1 & 0xFFFFFFFF, 0

    def add(self, segment: Segment) -> None:
        """Add a segment; sequence numbers wrap around at 2^32."""
        if not segment.data:
            return
        if not self.begun and not self.segments:
            self.base = segment.sequence
        step = (segment.sequence - self.base + 0x80000000 & 0xFFFFFFFF) - 0x80000000
        self.position += step
        self.base = segment.sequence
        self.segments.append((self.position, segment))

    def pieces(self) -> Iterator[Piece]:
        """The bytes in order; of bytes that arrived more than once, the first."""
        rows = sorted(self.segments, key=lambda row: (row[0], row[1].number))
        if not rows:
            return
        reached = 0 if self.begun else rows[0][0]
        number = at_ns = 0
        for position, segment in rows:
            data = segment.data[max(0, reached - position) :]
            if not data:
                continue
            lost = max(0, position - reached)
            number, at_ns = max(number, segment.number), max(at_ns, segment.at_ns)
            yield Piece(number, at_ns, data, lost)
            reached = max(reached, position) + len(data)


@dataclass(slots=True)
class Connection:
    """``client``: who opened it; a guess unless ``opened`` (packet and time) is known. ``closed``: packet, time, and
    the address of the one who closed it."""

    client: Address
    server: Address
    opened: tuple[int, int] | None = None
    closed: tuple[int, int, Address] | None = None
    halves: dict[Address, Half] = field(default_factory=dict)

    def half(self, source: Address) -> Half:
        return self.halves.setdefault(source, Half())


def connections(segments: Iterable[Segment]) -> list[Connection]:
    """Return the connections of a capture in the order of their first packets."""
    found: list[Connection] = []
    current: dict[frozenset[Address], Connection] = {}
    for segment in segments:
        pair = frozenset((segment.source, segment.target))
        connection = current.get(pair)
        opens = segment.syn and not segment.ack
        if connection is None or (opens and _is_new(connection, segment)):
            client, server = segment.source, segment.target
            if segment.syn and segment.ack:
                client, server = server, client
            connection = current[pair] = Connection(client, server)
            found.append(connection)
        half = connection.half(segment.source)
        if segment.syn:
            if not half.begun:
                half.begin(segment.sequence)
            if opens and connection.opened is None:
                connection.opened = segment.number, segment.at_ns
        half.add(segment)
        if (segment.fin or segment.rst) and connection.closed is None:
            connection.closed = segment.number, segment.at_ns, segment.source
    return found


def _is_new(connection: Connection, segment: Segment) -> bool:
    """Whether this SYN opens another connection of the same ports, and is not the same SYN again."""
    half = connection.halves.get(segment.source)
    return half is not None and (connection.closed is not None or bool(half.segments))
