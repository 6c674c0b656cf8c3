"""Writes packet captures: a TCP connection as packets, and packets as pcap or pcapng."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field

SYN, ACK, FIN = 0x02, 0x10, 0x01
_BEGAN_S = 1_700_000_000


@dataclass(slots=True)
class Wire:
    """The packets of connections to one broker. Sequence numbers begin just before they wrap around."""

    broker: tuple[str, int] = ("10.0.0.9", 9092)
    packets: list[bytes] = field(default_factory=list)
    _next: dict[tuple[int, str], int] = field(default_factory=dict)

    def _packet(self, number: int, side: str, flags: int, sequence: int, data: bytes = b"") -> bytes:
        ends = (("10.0.0.1", 40_000 + number), self.broker)
        (source, sport), (target, dport) = ends if side == "client" else ends[::-1]
        other = self._next.get((number, "server" if side == "client" else "client"), 0)
        tcp = struct.pack(">HHIIBBHHH", sport, dport, sequence, other, 5 << 4, flags, 65535, 0, 0) + data
        ip = struct.pack(
            ">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, socket.inet_aton(source), socket.inet_aton(target)
        )
        # Ethernet pads short frames
        return (bytes(12) + b"\x08\x00" + ip + tcp).ljust(60, b"\0")

    def open(self, number: int) -> None:
        for side, flags in (("client", SYN), ("server", SYN | ACK)):
            first = 2**32 - 50 if side == "client" else 7
            self.packets.append(self._packet(number, side, flags, first))
            self._next[number, side] = first + 1
        self.packets.append(self._packet(number, "client", ACK, self._next[number, "client"]))

    def segments(self, number: int, side: str, data: bytes, size: int = 16) -> list[bytes]:
        """Return the packets of these bytes; the next bytes come behind them."""
        made = []
        for at in range(0, len(data), size):
            part = data[at : at + size]
            sequence = self._next[number, side]
            made.append(self._packet(number, side, ACK, sequence, part))
            self._next[number, side] = (sequence + len(part)) % 2**32
        return made

    def close(self, number: int, side: str) -> None:
        for each in (side, "server" if side == "client" else "client"):
            self.packets.append(self._packet(number, each, FIN | ACK, self._next[number, each]))


def pcap(packets: list[bytes], *, link: int = 1) -> bytes:
    """One packet a millisecond."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, link)
    return head + b"".join(
        struct.pack("<IIII", _BEGAN_S, at * 1000, len(each), len(each)) + each for at, each in enumerate(packets)
    )


def pcapng(packets: list[bytes]) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body = body.ljust(-(-len(body) // 4) * 4, b"\0")
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    made = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 65535))
    for at, each in enumerate(packets):
        micros = _BEGAN_S * 1_000_000 + at * 1000
        head = struct.pack("<IIIII", 0, micros >> 32, micros & 0xFFFFFFFF, len(each), len(each))
        made += block(6, head + each)
    return made
