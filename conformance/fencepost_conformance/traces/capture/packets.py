"""Reads the TCP segments of a packet capture (pcap or pcapng)."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import dpkt

from ...common.addresses import Address
from ...common.errors import CannotRun


@dataclass(frozen=True, slots=True)
class Segment:
    """One TCP segment. ``number``: of its packet in the capture, from 1. ``cut``: how many of its bytes the capture
    does not have."""

    number: int
    at_ns: int
    source: Address
    target: Address
    sequence: int
    data: bytes
    cut: int
    syn: bool
    ack: bool
    fin: bool
    rst: bool


@dataclass(slots=True)
class Capture:
    """The segments of a capture in its order. ``packets``: how many it has. ``broken``: what is wrong with its end."""

    packets: int = 0
    segments: list[Segment] = field(default_factory=list)
    broken: str = ""


def _raw(data: bytes) -> Any:
    return dpkt.ip6.IP6(data) if data[:1] and data[0] >> 4 == 6 else dpkt.ip.IP(data)


def _framed(frame: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    return lambda data: frame(data).data


#: The function that decodes a packet, by the number of its link layer.
_LINKS: Final[Mapping[int, Callable[[bytes], Any]]] = {
    0: _framed(dpkt.loopback.Loopback),
    1: _framed(dpkt.ethernet.Ethernet),
    12: _raw,
    14: _raw,
    101: _raw,
    108: _framed(dpkt.loopback.Loopback),
    113: _framed(dpkt.sll.SLL),
    228: _raw,
    229: _raw,
    276: _framed(dpkt.sll2.SLL2),
}


class _Watched(io.BufferedReader):
    """A file that knows whether it ended inside what was read last: dpkt returns the rest of a pcap's packet."""

    short = False

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self.short = size is not None and 0 < len(data) < size
        return data


def read_capture(path: Path) -> Capture:
    """Read a capture. Its packets up to a broken end are read. Raises CannotRun for a file that is not a capture."""
    capture = Capture()
    with _Watched(io.FileIO(path)) as file:
        try:
            reader = dpkt.pcap.UniversalReader(file)
        except (ValueError, dpkt.Error):
            raise CannotRun(f"{path} is not a packet capture (pcap or pcapng)") from None
        link = _LINKS.get(reader.datalink())
        if link is None:
            raise CannotRun(f"{path} has packets of link type {reader.datalink()}, which cannot be read")
        packets = iter(reader)
        while True:
            try:
                at, data = next(packets)
                whole = not file.short
            except StopIteration:
                break
            except (ValueError, dpkt.Error):
                whole = False
            if not whole:
                capture.broken = f"{path} ends inside packet {capture.packets + 1}"
                break
            capture.packets += 1
            segment = _segment(capture.packets, round(at * 1_000_000_000), link, data)
            if segment is not None:
                capture.segments.append(segment)
    return capture


def _segment(number: int, at_ns: int, link: Callable[[bytes], Any], data: bytes) -> Segment | None:
    """The TCP segment of a packet; None if it has none, or not even its headers."""
    try:
        ip = link(data)
    except dpkt.Error:
        return None
    tcp = getattr(ip, "data", None)
    if not isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(tcp, dpkt.tcp.TCP):
        return None
    if isinstance(ip, dpkt.ip.IP):
        whole = ip.len - ip.hl * 4
    else:
        whole = ip.plen - sum(len(each) for each in ip.extension_hdrs.values())
    # packets that the network card puts together may have no length
    cut = max(0, whole - tcp.off * 4 - len(tcp.data)) if whole > 0 else 0
    source, target = (dpkt.utils.inet_to_str(each) for each in (ip.src, ip.dst))
    return Segment(
        number, at_ns, Address(source, tcp.sport), Address(target, tcp.dport), tcp.seq, bytes(tcp.data), cut,
        syn=bool(tcp.flags & dpkt.tcp.TH_SYN), ack=bool(tcp.flags & dpkt.tcp.TH_ACK),
        fin=bool(tcp.flags & dpkt.tcp.TH_FIN), rst=bool(tcp.flags & dpkt.tcp.TH_RST),
    )  # fmt: skip
