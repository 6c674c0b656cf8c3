"""``fencepost import``: a capture of a recorded exchange gives the recorder's trace, a bad capture one clear line."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.traces.files import WireTrace, read_traces

from .captures import Wire, pcap, pcapng
from .fake_broker import FakeBroker
from .test_record import listener_ports, recording

pytest.importorskip("dpkt", reason="needs dpkt: pip install -e '.[pcap]'")

from fencepost_conformance.traces.capture.run import import_packets

Exchange = list[tuple[int, str, bytes]]


def read(path: Path) -> WireTrace:
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    return trace


def plain(trace: WireTrace) -> list[Any]:
    """The lines without times and addresses."""
    return [line.model_dump(exclude={"at_ms", "client", "server"}) for line in trace.lines]


@pytest.fixture(scope="module")
def exchange(tmp_path_factory: pytest.TempPathFactory) -> tuple[Exchange, WireTrace]:
    """Traffic of two clients at a broker, and the recorder's trace of it."""
    path = tmp_path_factory.mktemp("recorded") / "trace.jsonl"

    async def run() -> Exchange:
        async with FakeBroker() as broker, recording(broker, path) as (connect, _):
            asked = broker.connections  # by the recorder itself
            one, two = await connect(), await connect()
            await listener_ports(one)
            await one.ask("find_coordinator", 6, coordinator_keys=("g",))
            for peer in (one, two, one, two, two):
                await peer.beat()
            await one.ask("api_versions", 0)
            await two.beat("another")
            return [(number - asked, side, data) for number, side, data in broker.seen if number > asked]

    return asyncio.run(run()), read(path)


def captured(
    exchange: Exchange,
    mangle: Callable[[list[bytes]], list[bytes]] = list,
    *,
    begun: bool = True,
    size: int = 16,
) -> Wire:
    """Return the packets of an exchange; ``mangle`` changes those of each frame."""
    wire = Wire()
    for number in sorted({each for each, _, _ in exchange}):
        wire.open(number)
    if not begun:
        wire.packets.clear()
    for number, side, data in exchange:
        wire.packets += mangle(wire.segments(number, side, data, size))
    for number in sorted({each for each, _, _ in exchange}):
        wire.close(number, "client")
    return wire


def imported(tmp_path: Path, data: bytes) -> tuple[WireTrace, list[str]]:
    """Return the trace of a capture, and what was said about it except for the broker's settings."""
    said: list[str] = []
    capture, path = tmp_path / "capture", tmp_path / "imported.jsonl"
    capture.write_bytes(data)
    import_packets(capture, path, replace=True, complain=said.append)
    return read(path), [each.replace(str(capture), "FILE") for each in said if "did not report" not in each]


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_a_capture_gives_the_trace_of_the_recorder(
    tmp_path: Path, exchange: tuple[Exchange, WireTrace], form: Callable[[list[bytes]], bytes]
) -> None:
    trace, said = imported(tmp_path, form(captured(exchange[0]).packets))
    assert plain(trace) == plain(exchange[1])
    assert said == []
    assert dict(trace.provenance)["recorder"] == "fencepost import"
    times = [line.at_ms for line in trace.lines]
    assert times == sorted(times)
    assert times[-1] > 20


@pytest.mark.parametrize("seed", range(20))
def test_segments_that_come_twice_or_in_another_order_change_nothing(
    tmp_path: Path, exchange: tuple[Exchange, WireTrace], seed: int
) -> None:
    dice = random.Random(seed)

    def mangle(segments: list[bytes]) -> list[bytes]:
        made = segments + dice.sample(segments, dice.randint(0, len(segments)))
        dice.shuffle(made)
        return made

    trace, said = imported(tmp_path, pcap(captured(exchange[0], mangle).packets))
    assert plain(trace) == plain(exchange[1])
    assert said == []


def test_a_message_is_there_when_its_last_byte_is(tmp_path: Path, exchange: tuple[Exchange, WireTrace]) -> None:
    """The first segment of a request comes after the exchanges of another connection."""
    frames, _ = exchange
    beat, answer = [each for each in frames if each[0] == 2][:2]
    wire = Wire()
    for number in (1, 2):
        wire.open(number)
    first, *rest = wire.segments(2, "client", beat[2])
    wire.packets += rest
    for number, side, data in frames:
        if number == 1:
            wire.packets += wire.segments(number, side, data)
    wire.packets += [first, *wire.segments(2, "server", answer[2])]
    trace, _ = imported(tmp_path, pcap(wire.packets))
    lines = exchanges(plain(trace))
    assert [line["connection"] for line in lines[-2:]] == [2, 2]
    assert {line["connection"] for line in lines[:-2]} == {1}


@pytest.mark.parametrize("lost", [slice(0, 1), slice(1, 2), slice(None)])
def test_a_lost_segment_costs_its_exchange_only(
    tmp_path: Path, exchange: tuple[Exchange, WireTrace], lost: slice
) -> None:
    """The request is in the trace, and its answer is not; later answers of the connection are."""
    frames, recorded = exchange
    wire = Wire()
    for number in (1, 2):
        wire.open(number)
    answers = 0
    for number, side, data in frames:
        answers += (number, side) == (2, "server")
        second = (number, side, answers) == (2, "server", 2)
        segments = wire.segments(number, side, data, 6 if second else 1000)
        if second:
            removed = len(segments[lost])
            del segments[lost]
            left = min(6 * removed, len(data))
        wire.packets += segments
    trace, said = imported(tmp_path, pcap(wire.packets))
    (line,) = said
    assert line.endswith(f": {left} bytes of the broker are not in the capture")
    received = [line for line in exchanges(plain(recorded)) if (line["type"], line["connection"]) == ("received", 2)]
    assert exchanges(plain(trace)) == [line for line in exchanges(plain(recorded)) if line != received[1]]


def test_a_capture_may_begin_in_the_middle(tmp_path: Path, exchange: tuple[Exchange, WireTrace]) -> None:
    """The side whose messages are requests is the client, also if the broker's bytes come first."""
    frames, recorded = exchange
    first = next(at for at, (number, side, _) in enumerate(frames) if (number, side) == (2, "server"))
    late = [(1, side, data) for number, side, data in frames[first:] if number == 2]
    trace, said = imported(tmp_path, pcap(captured(late, begun=False, size=1000).packets))
    assert len(said) == 1  # the answer whose request is not captured
    assert said[0].endswith("bytes of the broker belong to no complete message")
    wanted = [{**line, "connection": 1} for line in plain(recorded) if line["connection"] == 2]
    assert exchanges(plain(trace)) == exchanges(wanted)[2:]


def exchanges(lines: list[Any]) -> list[Any]:
    return [line for line in lines if line["type"] in ("sent", "received")]


def stream(data: bytes, side: str = "client") -> list[bytes]:
    """The packets of a connection with these bytes only."""
    wire = Wire()
    wire.open(1)
    wire.packets += wire.segments(1, side, data, 1000)
    return wire.packets


UDP = stream(b"")[0].replace(b"\x40\x06\x00\x00", b"\x40\x11\x00\x00")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "FILE is not a packet capture (pcap or pcapng)"),
        (b"type: trace\n" * 9, "FILE is not a packet capture (pcap or pcapng)"),
        (pcap([])[:20], "FILE is not a packet capture (pcap or pcapng)"),
        (pcapng([])[:40], "FILE is not a packet capture (pcap or pcapng)"),
        (pcap([], link=147), "FILE has packets of link type 147, which cannot be read"),
        (pcap([]), "FILE has no TCP connection in its 0 packets"),
        (pcap([UDP]), "FILE has no TCP connection in its 1 packet"),
        (pcap(stream(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")), "FILE has no Kafka requests in its 1 TCP connection"),
        (pcap(stream(b"")), "FILE has no Kafka requests in its 1 TCP connection"),
        (
            pcap(stream(b"\x16\x03\x01\x02\x00\x01" + bytes(100))),
            "FILE has encrypted connections (TLS) only; use fencepost record, which can decrypt its own",
        ),
    ],
)
def test_a_file_without_kafka_gets_one_line(tmp_path: Path, data: bytes, reason: str) -> None:
    capture, path = tmp_path / "capture", tmp_path / "imported.jsonl"
    capture.write_bytes(data)
    with pytest.raises(CannotRun) as failure:
        import_packets(capture, path, complain=lambda _: None)
    assert str(failure.value).replace(str(capture), "FILE") == reason
    assert not path.exists()


@pytest.mark.parametrize("form", [pcap, pcapng])
def test_a_truncated_capture_is_read_up_to_its_end(
    tmp_path: Path, exchange: tuple[Exchange, WireTrace], form: Callable[[list[bytes]], bytes]
) -> None:
    packets = captured(exchange[0]).packets
    trace, said = imported(tmp_path, form(packets)[:-30])
    assert said == [f"FILE ends inside packet {len(packets)}; the packets before it are read"]
    assert plain(trace) == plain(exchange[1])


def test_encrypted_connections_beside_kafka_are_left_out(tmp_path: Path, exchange: tuple[Exchange, WireTrace]) -> None:
    wire = captured(exchange[0])
    wire.open(3)
    wire.packets += wire.segments(3, "client", b"\x16\x03\x01\x00\x02hi")
    trace, said = imported(tmp_path, pcap(wire.packets))
    assert said == ["1 connection left out, because they are encrypted (TLS)"]
    assert plain(trace) == plain(exchange[1])
