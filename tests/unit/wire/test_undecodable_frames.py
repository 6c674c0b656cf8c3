"""The recorder passes undecodable bytes on unchanged and notes them, and the checker does not accept them unseen."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from uuid import UUID

import pytest
from kio.schema.describe_topic_partitions.v0.response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName

from fencepost.wire.frames import API_KEYS, framed, read_frame, read_request_header, write_response
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import NamesLine, ReceivedLine, SentLine, UndecodedLine
from fencepost_conformance.traces.recorder.addresses import Limited, readdressed, with_readable_addresses

from .fake_broker import HOST, NOW, FakeBroker
from .test_record import Peer, read, recording

HEARTBEAT, OFFSET_FETCH, METADATA = API_KEYS["heartbeat"], API_KEYS["offset_fetch"], API_KEYS["metadata"]
NEWEST = 99


def request(key: int, version: int, body: bytes, correlation_id: int = 77) -> bytes:
    """Return a frame with a header of version 1."""
    return struct.pack(">hhih", key, version, correlation_id, -1) + body


def answer(body: bytes, correlation_id: int = 77) -> bytes:
    return struct.pack(">i", correlation_id) + body


async def exchanged(peer: Peer, frame: bytes) -> bytes | None:
    peer.writer.write(framed(frame))
    return await asyncio.wait_for(read_frame(peer.reader, 1 << 20), 10)


def passed(tmp_path: Path, asked: bytes, answered: bytes, *, beat: bool = True) -> tuple[WireTrace, list[str]]:
    """Record a client that sends this frame and gets that one; a second client has a group to be checked."""
    path, complaints = tmp_path / "trace.jsonl", list[str]()
    seen: list[bytes] = []

    def raw(frame: bytes) -> bytes | None:
        seen.append(frame)
        return answered if frame == asked else None

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path, complaints) as (connect, _):
            broker.raw, broker.beat_error = raw, ErrorCode.unknown_member_id
            odd, plain = await connect(), await connect()
            if beat:
                await plain.beat()
            assert await exchanged(odd, asked) == answered
            assert asked in seen
            assert (await odd.beat()).error_code == ErrorCode.unknown_member_id  # the connection is still open

    asyncio.run(run())
    return read(path), complaints


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (b"\x00\x0c", "invalid request header"),
        (b"\x00\x0c\x00\x04\x00\x00\x00\x01\x7f\xff", "client id"),
    ],
)
def test_a_request_without_a_header_passes(tmp_path: Path, asked: bytes, why: str) -> None:
    trace, complaints = passed(tmp_path, asked, answer(b"anything"))
    (noted,) = [line for line in trace.lines if isinstance(line, UndecodedLine)]
    assert (noted.by, noted.bytes) == ("client", len(asked))
    assert why in noted.why
    (complaint,) = complaints
    assert "cannot be decoded" in complaint
    verdict = check_trace(trace)
    assert verdict.outcome == "undecided"
    assert why in verdict.reason
    assert verdict.line == trace.lines.index(noted) + 2  # the header is the first line of the file


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request(HEARTBEAT, NEWEST, b"\x00\x00"), "v99 is not supported"),
        (request(HEARTBEAT, 0, b"\x00\x09g"), "bytes are left"),
        (request(OFFSET_FETCH, NEWEST, b""), "v99 is not supported"),
    ],
)
def test_a_request_that_cannot_be_decoded_passes(tmp_path: Path, asked: bytes, why: str) -> None:
    trace, _ = passed(tmp_path, asked, answer(b"\x00\x00"))
    noted = [line for line in trace.lines if isinstance(line, SentLine | ReceivedLine) and "undecoded" in line.body]
    assert isinstance(noted[0], SentLine)
    assert why in str(noted[0].body["why"])
    verdict = check_trace(trace)
    assert verdict.outcome == "undecided"
    assert why in verdict.reason


def test_a_request_for_which_the_broker_closes_the_connection_has_done_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path) as (connect, _):
            broker.beat_error = ErrorCode.unknown_member_id
            for frame in (request(HEARTBEAT, 0, b"\x00\x09g"), b"\x00\x0c"):
                assert await exchanged(await connect(), frame) is None
            await (await connect()).beat()

    asyncio.run(run())
    trace = read(path)
    assert sum(isinstance(line, UndecodedLine) or "undecoded" in str(line) for line in trace.lines) == 2
    assert check_trace(trace).outcome == "accepted"


def beat(correlation_id: int = 77) -> bytes:
    return request(HEARTBEAT, 0, b"\x00\x01g\x00\x00\x00\x01\x00\x01m", correlation_id)


def fetch() -> bytes:
    """OffsetFetch v1 of group g, for no topic."""
    return request(OFFSET_FETCH, 1, b"\x00\x01g\x00\x00\x00\x00")


@pytest.mark.parametrize(
    ("asked", "frame", "outcome", "why"),
    [
        (beat(), answer(b""), "undecided", "could not be decoded"),
        (beat(), answer(struct.pack(">h", 999)), "refused", "error code 999"),
        (fetch(), answer(b"\x00\x00\x00\x09"), "undecided", "bytes are left"),
        (
            fetch(),
            answer(struct.pack(">ihsiiqhh", 1, 1, b"t", 1, 0, -1, 0, 999)),
            "refused",
            "offset_fetch v1 was answered error code 999",
        ),
        (request(API_KEYS["list_offsets"], 1, b"\xff\xff\xff\xff\x00\x00\x00\x00"), answer(b""), "any", ""),
    ],
)
def test_an_answer_that_cannot_be_decoded_passes(
    tmp_path: Path, asked: bytes, frame: bytes, outcome: str, why: str
) -> None:
    trace, complaints = passed(tmp_path, asked, frame)
    (noted,) = [line for line in trace.lines if isinstance(line, ReceivedLine) and "undecoded" in line.body]
    assert noted.body["why"]
    assert len(complaints) == 1
    verdict = check_trace(trace)
    reasons = " ".join([verdict.reason, *(each.seen for each in verdict.refusals)])
    if outcome == "any":  # positions are not checked here, so this does not matter
        assert "could not be decoded" not in reasons
    else:
        assert verdict.outcome == outcome
        assert why in reasons


def test_an_answer_without_a_header_passes(tmp_path: Path) -> None:
    trace, _ = passed(tmp_path, beat(), b"\x00", beat=False)
    (noted,) = [line for line in trace.lines if isinstance(line, UndecodedLine)]
    assert noted.by == "server"
    assert check_trace(trace).outcome == "undecided"


def test_the_address_is_replaced_in_an_answer_that_cannot_be_decoded(tmp_path: Path) -> None:
    """Replace the broker's address; the rest stays."""
    path = tmp_path / "trace.jsonl"

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path) as (connect, _):
            there = b"\x0a" + HOST.encode() + struct.pack(">i", broker.port)
            asked, back = request(METADATA, NEWEST, b""), answer(b"one" + there + b"two")
            broker.raw = lambda frame: back if frame == asked else None
            peer = await connect()
            port = peer.writer.get_extra_info("peername")[1]
            here = b"\x0a" + HOST.encode() + struct.pack(">i", port)
            assert await exchanged(peer, asked) == answer(b"one" + here + b"two")

    asyncio.run(run())


def test_the_content_of_a_log_in_is_not_recorded(tmp_path: Path) -> None:
    """After SaslHandshake v0 a client sends the bytes of its mechanism, without any header."""
    path, complaints = tmp_path / "trace.jsonl", list[str]()
    handshake = request(API_KEYS["sasl_handshake"], 0, b"\x00\x05PLAIN")
    password = b"\x7f\xffsecret"

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path, complaints) as (connect, _):
            broker.raw = {handshake: answer(b"\x00\x00"), password: b""}.get
            peer = await connect()
            assert await exchanged(peer, handshake) == answer(b"\x00\x00")
            assert await exchanged(peer, password) == b""

    asyncio.run(run())
    assert "secret" not in path.read_text()
    assert [line.type for line in read(path).lines if isinstance(line, UndecodedLine)] == ["undecoded"]  # the answer


def rows(*versions: tuple[int, int, int], flexible: bool) -> bytes:
    """An answer to ApiVersions; rows of flexible versions have a tagged field each."""
    tag = b"\x01\x05\x02ab" if flexible else b""
    packed = b"".join(struct.pack(">hhh", *row) + tag for row in versions)
    count = bytes([len(versions) + 1]) if flexible else struct.pack(">i", len(versions))
    return answer(b"\x00\x00" + count + packed + b"rest")


@pytest.mark.parametrize("version", [0, 2, 3, 5])
def test_only_apis_with_addresses_are_limited_and_nothing_else_changes(version: int) -> None:
    flexible = version >= 3
    group, cluster = (API_KEYS["join_group"], 0, NEWEST), API_KEYS["describe_cluster"]
    frame = rows(group, (cluster, 0, NEWEST), (1234, 0, 5), flexible=flexible)
    made, limited = with_readable_addresses(frame, version)
    (one,) = limited
    assert one == Limited("describe_cluster", one.offered, NEWEST)
    assert made == rows(group, (cluster, 0, one.offered), (1234, 0, 5), flexible=flexible)
    only = with_readable_addresses(rows((cluster, one.offered, NEWEST), flexible=flexible), version)[0]
    assert only == rows((cluster, one.offered, one.offered), flexible=flexible)
    beyond = rows((cluster, NEWEST, NEWEST), flexible=flexible)  # none that could be offered instead
    assert with_readable_addresses(beyond, version) == (beyond, ())


def test_addresses_are_replaced_in_both_encodings() -> None:
    old, new = Address("broker-with-a-long-name", 9092), Address("::1", 1)
    for length, shorter in ((b"\x00\x17", b"\x00\x03"), (b"\x18", b"\x04")):
        frame = b"id" + length + old.host.encode() + struct.pack(">i", 9092) + b"rack"
        assert readdressed(frame, {old: new}) == b"id" + shorter + b"::1" + struct.pack(">i", 1) + b"rack"


def test_names_of_topics_are_written_once(tmp_path: Path) -> None:
    """Metadata contains names and ids; the trace has each pair, and not the answers."""
    path = tmp_path / "trace.jsonl"
    ids = {"orders": UUID(int=2), "payments": UUID(int=3)}

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path) as (connect, _):
            peer = await connect()
            for names in (["orders"], ["orders", "payments"], []):
                topics = tuple(
                    DescribeTopicPartitionsResponseTopic(
                        error_code=ErrorCode.none, name=TopicName(name), topic_id=ids[name],
                        is_internal=False, partitions=(),
                    )
                    for name in names
                )  # fmt: skip
                entity = DescribeTopicPartitionsResponse(throttle_time=NOW, topics=topics)
                broker.raw = lambda frame, entity=entity: write_response(
                    read_request_header(frame).correlation_id, entity
                )
                await peer.ask("describe_topic_partitions", 0, topics=(), response_partition_limit=1)

    asyncio.run(run())
    assert [line.names for line in read(path).lines if isinstance(line, NamesLine)] == [
        {str(ids["orders"]): "orders"},
        {str(ids["payments"]): "payments"},
    ]
