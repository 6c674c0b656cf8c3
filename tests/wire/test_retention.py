"""Offsets that expire on a live broker, recorded and checked: each commit asks for its retention."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from served import Served

from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    MAX_RESPONSE_BYTES,
    RequestHeader,
    close,
    connect,
    framed,
    read_frame,
    read_response,
    request_schema,
    write_request,
)
from fencepost_conformance.common.addresses import Address, parse_address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.sweep.brokers import profile_of
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.recorder.run import record

INTERVAL_MS = 1_000
SETTING = "offsets.retention.check.interval.ms"
#: How long the offset may be present, in seconds: two checks, and time for a busy machine.
PATIENCE_S = 30.0


class Client:
    """A client that sends one request after the other."""

    def __init__(self, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self.reader, self.writer = streams
        self.asked = 0

    async def ask(self, api: str, version: int, **values: Any) -> Any:
        self.asked += 1
        header = RequestHeader(API_KEYS[api], version, self.asked, "app")
        self.writer.write(framed(write_request(header, fill(request_schema(api, version), values))))
        frame = await asyncio.wait_for(read_frame(self.reader, MAX_RESPONSE_BYTES), 30)
        assert frame is not None
        return read_response(api, version, frame)

    async def commit(self, group_id: str, retention_ms: int) -> int:
        rows = [{"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}]
        commit = {"group_id": group_id, "generation_id_or_member_epoch": -1, "member_id": ""}
        answer = await self.ask(
            "offset_commit", 2, **commit, retention_time=retention_ms, topics=[{"name": "orders", "partitions": rows}]
        )
        return int(answer.topics[0].partitions[0].error_code.value)

    async def fetch(self, group_id: str) -> int:
        topics = [{"name": "orders", "partition_indexes": [0]}]
        answer = await self.ask("offset_fetch", 7, group_id=group_id, topics=topics, require_stable=False)
        return int(answer.topics[0].partitions[0].committed_offset)


async def recorded(broker: Address, path: Path) -> None:
    """One group asks for no retention, and another for the broker's; wait until the first offset has expired."""
    until, ready = asyncio.Event(), asyncio.Queue[Address]()
    task = asyncio.create_task(
        record(Address("127.0.0.1", 0), broker, path, until, ready=ready.put_nowait, complain=lambda _: None)
    )
    here = await asyncio.wait_for(ready.get(), 30)
    client = Client(await connect(here.host, here.port))
    deadline = time.monotonic() + 60
    await client.ask("find_coordinator", 4, key_type=0, coordinator_keys=["short"])  # Kafka creates __consumer_offsets
    while await client.commit("short", 0):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)
    assert await client.commit("long", -1) == 0
    deadline = time.monotonic() + PATIENCE_S
    while await client.fetch("short") >= 0:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.3)
    assert await client.fetch("long") == 5
    await close(client.writer)
    until.set()
    await task


def broker_of(name: str) -> AbstractContextManager[Any]:
    if name == "serve":
        return Served("--setting", f"{SETTING}={INTERVAL_MS}", topics=("orders:1",))
    return Broker(name, settings={SETTING: str(INTERVAL_MS)})


@pytest.mark.parametrize(
    "name", ["serve", pytest.param("4.3.1", marks=[pytest.mark.all, pytest.mark.broker, pytest.mark.slow])]
)
def test_commit_retention_is_applied(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    try:
        with broker_of(name) as broker:
            if name != "serve":
                broker.create_topic("orders", 1)
            asyncio.run(recorded(parse_address(broker.bootstrap, name), path))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    (trace,) = read_traces(path)
    assert isinstance(trace, WireTrace)
    assert trace.settings.offsets_retention_check_interval_ms == INTERVAL_MS  # the broker has reported it
    verdict = check_trace(trace, profile=profile_of(name))
    assert verdict.outcome == "accepted", (verdict.reason, verdict.refusals)
