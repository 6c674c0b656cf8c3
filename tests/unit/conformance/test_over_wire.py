"""Random clients over the wire: every message can be sent, a server of another protocol is recognised, and a real
broker passes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from fencepost.protocol import messages as m
from fencepost.wire.convert import api_of, to_request, values_of
from fencepost.wire.fill import fill
from fencepost.wire.frames import (
    API_KEYS,
    RequestHeader,
    read_request,
    read_request_header,
    request_schema,
    write_request,
)
from fencepost_conformance.cli import main
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.registry import TargetName, parse_target

REQUESTS = (
    m.JoinGroupRequest(
        "g",
        session_timeout_ms=9_000,
        rebalance_timeout_ms=5_000,
        member_id="m",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(m.Protocol("range", b"\x00\xff"),),
        reason="why",
    ),
    m.SyncGroupRequest(
        "g",
        generation_id=1,
        member_id="m",
        group_instance_id="i",
        protocol_type="consumer",
        protocol_name="range",
        assignments=(m.SyncGroupAssignment("m", b"\xff"),),
    ),
    m.HeartbeatRequest("g", generation_id=7, member_id="m", group_instance_id="i"),
    m.LeaveGroupRequest("g", (m.LeaveGroupMember("m", group_instance_id="i", reason="bye"),)),
    m.DescribeGroupsRequest(("g", "")),
    m.ListGroupsRequest(states_filter=("Stable",), types_filter=("classic",)),
    m.DeleteGroupsRequest(("g", "h")),
)


@pytest.mark.parametrize("body", REQUESTS, ids=lambda body: type(body).__name__)
def test_every_version_of_a_request_is_written_and_read(body: m.RequestBody) -> None:
    first, last = m.VERSIONS[type(body)]
    for version in range(first, last + 1):
        header = RequestHeader(API_KEYS[api_of(body)], version, 3, "c")
        frame = _frame(body, version)
        assert read_request_header(frame) == header
        back = to_request(header.api, read_request(header, frame))
        assert type(back) is type(body)
        if version == last:
            assert back == body
    oldest = to_request(header.api, read_request(replace(header, api_version=first), _frame(body, first)))
    if isinstance(oldest, m.JoinGroupRequest):
        assert (oldest.rebalance_timeout_ms, oldest.group_instance_id, oldest.reason) == (-1, None, None)


def _frame(body: m.RequestBody, version: int) -> bytes:
    api = api_of(body)
    entity = fill(request_schema(api, version), values_of(body, version))
    return write_request(RequestHeader(API_KEYS[api], version, 3, "c"), entity)


def test_names_of_targets() -> None:
    assert parse_target("core") == TargetName("core")
    assert parse_target("kafka:4.3.1") == TargetName("kafka", release="4.3.1")
    assert parse_target("broker:4.3.1") == TargetName("broker", release="4.3.1")
    assert parse_target("[::1]:9092") == TargetName("broker", host="::1", port=9092)
    for wrong in ("", "kafka", "kafka:", "host:0", "host:70000", ":1", "host:x"):
        with pytest.raises(CannotRun):
            parse_target(wrong)


@pytest.fixture
def stranger() -> Iterator[int]:
    """Listen and close every connection; yields the port."""
    loop = asyncio.new_event_loop()

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = loop.run_until_complete(asyncio.start_server(hang_up, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_server_of_another_protocol_is_not_a_broker(capsys: pytest.CaptureFixture[str], stranger: int) -> None:
    with pytest.raises(SystemExit) as left:
        main(["conform", "--target", f"127.0.0.1:{stranger}", "--traces", "1"])
    output = capsys.readouterr()
    assert left.value.code == 2
    assert output.err.count("\n") == 1
    assert f"127.0.0.1:{stranger}: " in output.err


@pytest.mark.broker
@pytest.mark.slow
def test_the_model_allows_the_answers_of_a_real_broker(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["conform", "--target", "broker:4.3.1", "--traces", "4", "--steps-per-trace", "40", "--json"])
    output = capsys.readouterr()
    if left.value.code == 2:
        pytest.skip(output.err.strip())
    result = json.loads(output.out)
    assert result["passed"], result["failures"]
    assert result["counts"]["traces"] == 4
    assert result["counts"]["replies"] > 80
