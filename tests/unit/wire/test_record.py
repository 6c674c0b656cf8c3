"""The recorder between a client and a fake broker: passed bytes, written lines, and failures."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from kio.index import load_request_schema

from fencepost.wire.frames import (
    API_KEYS,
    MAX_RESPONSE_BYTES,
    RequestHeader,
    close,
    framed,
    highest_version,
    read_frame,
    read_response,
    write_request,
)
from fencepost_conformance.common.addresses import Address, parse_address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import ReceivedLine, SentLine
from fencepost_conformance.traces.recorder.output import Output
from fencepost_conformance.traces.recorder.run import record

from .fake_broker import HOST, FakeBroker


class Peer:
    """A client that writes frames itself."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer, self.count = reader, writer, 0

    async def ask(self, api: str, version: int, **fields: Any) -> Any:
        self.count += 1
        header = RequestHeader(API_KEYS[api], version, self.count, "peer")
        self.writer.write(framed(write_request(header, load_request_schema(API_KEYS[api], version)(**fields))))
        frame = await asyncio.wait_for(read_frame(self.reader, MAX_RESPONSE_BYTES), 60)
        assert frame is not None
        return read_response(api, version, frame)

    async def beat(self, group: str = "g") -> Any:
        return await self.ask("heartbeat", 4, group_id=group, generation_id=1, member_id="m")


async def listener_ports(peer: Peer) -> list[int]:
    """The ports of the cluster's brokers as a client gets them, by node id."""
    metadata = await peer.ask(
        "metadata", 9, topics=(), allow_auto_topic_creation=False, include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )  # fmt: skip
    return [each.port for each in sorted(metadata.brokers, key=lambda each: each.node_id)]


@asynccontextmanager
async def recording(
    broker: FakeBroker,
    path: Path,
    complaints: list[str] | None = None,
    groups: frozenset[str] = frozenset(),
    settings: Any = None,
) -> AsyncIterator[tuple[Callable[..., Coroutine[Any, Any, Peer]], asyncio.Task[Any]]]:
    """Run a recorder in front of the broker; yields a function that connects a client to it, and the running
    recording."""
    until, ready = asyncio.Event(), asyncio.Queue[Address]()
    task = asyncio.create_task(
        record(
            Address(HOST, 0),
            Address(HOST, broker.port),
            path,
            until,
            groups=groups,
            settings=settings,
            ready=ready.put_nowait,
            complain=(complaints if complaints is not None else []).append,
        )
    )
    here = await asyncio.wait_for(ready.get(), 60)
    peers: list[Peer] = []

    async def connect(port: int = here.port) -> Peer:
        peers.append(Peer(*await asyncio.open_connection(here.host, port)))
        return peers[-1]

    yield connect, task
    for peer in peers:
        await close(peer.writer)
    until.set()
    if not task.done():
        await task


def read(path: Path) -> WireTrace:
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    return trace


def test_traffic_is_recorded_and_clients_stay_on_the_proxy(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl.gz"

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path) as (connect, _):
            peer = await connect()
            port = peer.writer.get_extra_info("peername")[1]
            assert await listener_ports(peer) == [port]
            found = await peer.ask("find_coordinator", 6, coordinator_keys=("g",))
            assert found.coordinators[0].port == port
            versions = await peer.ask("api_versions", 0)
            offered = {row.api_key: row.max_version for row in versions.api_keys}
            assert offered[API_KEYS["join_group"]] == 99  # it is passed on, whether it can be decoded or not
            assert offered[API_KEYS["describe_cluster"]] == highest_version("describe_cluster")
            await peer.beat()

    asyncio.run(run())
    trace = read(path)
    assert trace.settings.group_initial_rebalance_delay_ms == 777
    assert [line.type for line in trace.lines] == ["connected", "sent", "received", "sent", "received", "disconnected"]
    sent, received = trace.lines[3], trace.lines[4]
    assert isinstance(sent, SentLine)
    assert isinstance(received, ReceivedLine)
    assert sent.body == {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None}
    assert received.body == {"error_code": 0}
    assert (sent.client_id, sent.api_key, sent.api_version) == ("peer", 12, 4)


def test_only_the_groups_asked_for_are_written(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path, groups=frozenset({"mine"})) as (connect, _):
            peer = await connect()
            await peer.beat("other")
            await peer.beat("mine")

    asyncio.run(run())
    assert [line.body["group_id"] for line in read(path).lines if isinstance(line, SentLine)] == ["mine"]


@pytest.mark.parametrize(
    "junk",
    [
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x00\x00\x00\x10abc",
    ],
    ids=["negative", "huge", "http", "cut"],
)
def test_a_stream_that_cannot_be_cut_into_frames_closes_its_connection_and_no_other(
    tmp_path: Path, junk: bytes
) -> None:
    path, complaints = tmp_path / "trace.jsonl", list[str]()

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path, complaints) as (connect, _):
            good, bad = await connect(), await connect()
            await good.beat()
            bad.writer.write(junk)
            if junk.endswith(b"abc"):
                bad.writer.write_eof()
            assert await asyncio.wait_for(bad.reader.read(), 60) == b""
            await good.beat()

    asyncio.run(run())
    assert len(complaints) == 1
    assert complaints[0].startswith("connection ")
    kinds = [line.type for line in read(path).lines]
    assert kinds.count("received") == 2
    assert kinds.count("disconnected") == 2


def test_when_the_broker_disconnects_the_trace_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"

    async def run() -> None:
        async with FakeBroker() as broker, recording(broker, path) as (connect, task):
            peer = await connect()
            await peer.beat()
            await broker.die()
            with pytest.raises(CannotRun, match="is gone; the recording up to then \\(4 events\\) is in"):
                await asyncio.wait_for(task, 60)

    asyncio.run(run())
    assert [line.type for line in read(path).lines] == ["connected", "sent", "received", "disconnected"]


def test_a_cluster_has_a_listener_for_each_broker(tmp_path: Path) -> None:
    """One broker joins while the recording runs, one moves to another port, and one dies, which ends nothing."""
    path = tmp_path / "t.jsonl"
    complaints: list[str] = []

    async def run() -> tuple[list[int], set[int]]:
        async with FakeBroker() as one, FakeBroker() as two, FakeBroker() as three, FakeBroker() as moved:
            one.cluster = two.cluster = three.cluster = {0: one, 1: two}
            async with recording(one, path, complaints) as (connect, task):
                peer = await connect()
                ports = await listener_ports(peer)
                three.cluster = one.cluster = {0: one, 1: two, 2: three}
                ports += (await listener_ports(peer))[1:]
                (row,) = (await peer.ask("find_coordinator", 6, coordinator_keys=("g",))).coordinators
                member = await connect(row.port)
                await member.beat()
                one.cluster = {0: one, 1: moved, 2: three}
                ports += (await listener_ports(peer))[1:]
                await two.die()
                other = await connect(ports[1])
                await other.beat()
                await moved.die()
                with pytest.raises((AssertionError, ConnectionError)):
                    await other.beat()
                await peer.beat()
                assert not task.done()
            return [*ports, row.port], {each.port for each in (one, two, three, moved)}

    ports, brokers = asyncio.run(run())
    front, second, again, third, moved_second, still_third, coordinator = ports
    assert (second, third, third) == (again, still_third, coordinator)
    assert moved_second == second
    assert len({front, second, third}) == 3
    assert not {front, second, third} & brokers
    assert sum("listening on" in each for each in complaints) == 1  # the third came later
    lines = read(path).lines
    servers = {line.connection: line.server for line in lines if line.type == "connected"}
    assert len(set(servers.values())) == 3
    beats = {line.connection for line in lines if isinstance(line, SentLine) and line.api_key == API_KEYS["heartbeat"]}
    assert len({servers[each] for each in beats}) == 3


def test_several_listeners_have_ports_in_a_row(tmp_path: Path) -> None:
    """The second one's port is taken here."""

    async def run() -> None:
        async with FakeBroker() as one, FakeBroker() as two:
            one.cluster = {0: one, 1: two}
            with behind_a_free_port() as port, pytest.raises(CannotRun, match=rf"cannot listen on {HOST}:{port} for"):
                await record(Address(HOST, port - 1), Address(HOST, one.port), tmp_path / "t.jsonl", asyncio.Event())

    asyncio.run(run())


@contextmanager
def behind_a_free_port() -> Iterator[int]:
    """Take a port that comes after a free one."""
    for _ in range(100):
        with socket.socket() as taken, socket.socket() as before:
            taken.bind((HOST, 0))
            port = taken.getsockname()[1]
            try:
                before.bind((HOST, port - 1))
            except OSError:
                continue
            before.close()
            taken.listen()
            yield port
            return
    raise AssertionError("no such port")


def test_a_missing_broker_or_folder_is_reported(tmp_path: Path) -> None:
    async def run() -> None:
        async with FakeBroker() as broker:
            here = Address(HOST, broker.port)
            with pytest.raises(CannotRun, match=r"cannot write the trace to .*No such file"):
                await record(Address(HOST, 0), here, tmp_path / "no" / "t.jsonl", asyncio.Event())
            with pytest.raises(CannotRun, match="cannot listen on"):
                await record(here, here, tmp_path / "t.jsonl", asyncio.Event())
            assert not (tmp_path / "t.jsonl").exists()
            null = tmp_path / "null"
            null.symlink_to(os.devnull)
            with pytest.raises(CannotRun, match="cannot listen on"):
                await record(here, here, null, asyncio.Event(), replace=True)
            assert null.is_symlink(), "only a file that the recorder made is removed, never a device"
        with pytest.raises(CannotRun, match="no broker at"):
            await record(Address(HOST, 0), here, tmp_path / "t.jsonl", asyncio.Event())

    asyncio.run(run())


def test_addresses() -> None:
    assert parse_address("[::1]:9092", "--listen") == Address("::1", 9092)
    for wrong in ("9092", "host:", "host:port", ":9092", "host:70000"):
        with pytest.raises(CannotRun, match="HOST:PORT"):
            parse_address(wrong, "--listen")


class FullDisk:
    """Replace ``os.write`` by one on a disk that has room for so many bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int) -> None:
        self.room, self.real = room, os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, file: int, data: bytes) -> int:
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fits = data[: self.room]
        self.room -= len(fits)
        return self.real(file, fits)


def test_a_full_disk_delays_lines_but_loses_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[str] = []
    output = Output(tmp_path / "t.jsonl", complaints.append)
    disk = FullDisk(monkeypatch, 12)
    for number in range(5):
        output.write(json.dumps({"n": number}))
    assert (tmp_path / "t.jsonl").read_text() == '{"n": 0}\n'  # no half line
    assert len(complaints) == 1
    disk.room = 1_000
    output.write("{}")
    output.close()
    assert (tmp_path / "t.jsonl").read_text().splitlines() == [*(f'{{"n": {n}}}' for n in range(5)), "{}"]


def test_a_recording_that_does_not_fit_goes_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    output = Output(tmp_path / "t.jsonl", lambda _: None)
    FullDisk(monkeypatch, 0)
    output.write("{}")
    with pytest.raises(CannotRun, match="the rest \\(1 line\\) is in") as failure:
        output.close()
    rescued = next(tmp_path.glob("fencepost-*.jsonl"))
    assert str(rescued) in str(failure.value)
    assert rescued.read_text() == "{}\n"


def test_the_file_of_a_crashed_recorder_is_not_overwritten(tmp_path: Path) -> None:
    crashed = Output(tmp_path / "t.jsonl.gz", lambda _: None)
    crashed.write("all that was seen")
    with pytest.raises(CannotRun, match=r"t\.jsonl\.part is left from an interrupted recording"):
        Output(tmp_path / "t.jsonl.gz", lambda _: None)
    assert (tmp_path / "t.jsonl.part").read_text() == "all that was seen\n"
