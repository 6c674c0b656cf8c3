"""Requests that are answered directly where their bytes arrive follow the same rules as those that a task answers:
order, shutdown, and peers that do not read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost.wire import frames
from fencepost_server.dispatch import Dispatch
from fencepost_server.options import Limits

from .served import Client, play, running
from .test_limits_and_rights import DELAY, joined

BEAT: dict[str, Any] = {"group_id": "none", "generation_id": 1, "member_id": "m"}
#: Longer than any wait of these tests on a busy machine, in seconds.
LONG_S = 60.0
#: An answer of 80 kB.
LONG: dict[str, Any] = {
    "groups": [
        {
            "group_id": "g",
            "topics": [{"name": "t" * 200 + str(each), "partition_indexes": list(range(200))} for each in range(20)],
        }
    ]
}
ASKED = [("heartbeat", 4, BEAT), ("api_versions", 0, {}), ("heartbeat", 4, BEAT), ("list_groups", 4, {})] * 30


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record which APIs were answered without a task, or begun so."""
    seen: list[int] = []
    begin = Dispatch.begin

    def noting(self: Dispatch, connection: Any, frame: bytes) -> Any:
        found = begin(self, connection, frame)
        if found is not None:
            seen.append(frames.read_request_header(frame).api_key)
        return found

    monkeypatch.setattr(Dispatch, "begin", noting)
    return seen


async def ready_client(served: Any) -> Client:
    """Return a client that has sent the first request, which creates its session."""
    client = await Client.to(served.listen)
    await client.ask("api_versions", 0)
    return client


def test_answers_come_in_the_order_of_their_requests(begun: list[int]) -> None:
    async def session() -> None:
        async with running() as served:
            client = await ready_client(served)
            for api, version, values in ASKED:
                client.send(api, version, **values)
            for number, (api, version, _) in enumerate(ASKED, 2):
                frame = await frames.read_frame(client.reader, 1 << 20)
                assert frame is not None
                assert frames.read_correlation_id(frame) == number
                frames.read_response(api, version, frame)

    play(session())
    assert 0 < begun.count(12) < 60  # and some by the task, behind requests that only it answers


def test_frames_that_come_in_pieces_are_put_together(begun: list[int]) -> None:
    async def session() -> None:
        async with running() as served:
            client = await ready_client(served)
            sent: list[bytes] = []
            writer, client.writer = client.writer, type("Pieces", (), {"write": lambda _, data: sent.append(data)})()
            for api, version, values in ASKED[:8]:
                client.send(api, version, **values)
            client.writer = writer
            data = b"".join(sent)
            for at in range(0, len(data), 7):
                writer.write(data[at : at + 7])
                await asyncio.sleep(0.002)
            for api, version, _ in ASKED[:8]:
                await client.answer(api, version)

    play(session())
    assert begun


def test_requests_behind_a_waiting_request_are_answered_behind_it(begun: list[int]) -> None:
    async def session() -> None:
        async with running(**DELAY) as served:
            client = await ready_client(served)
            await joined(client)
            client.send("heartbeat", 4, **BEAT)
            client.send("api_versions", 0)
            client.send("heartbeat", 4, **BEAT)
            assert (await client.answer("join_group", 9)).generation_id == 1
            await client.answer("heartbeat", 4)
            await client.answer("api_versions", 0)
            await client.answer("heartbeat", 4)

    play(session())
    assert begun.count(11) == 2


def test_waiting_requests_are_answered_before_the_end(begun: list[int]) -> None:
    async def session() -> None:
        async with running(**DELAY, limits=Limits(drain_s=5)) as served:
            client = await ready_client(served)
            await joined(client)
            await asyncio.sleep(0.05)
        assert (await client.answer("join_group", 9)).error_code == Code.not_coordinator
        assert await client.closed()

    play(session())
    assert begun.count(11) == 2


def test_a_client_that_disconnects_while_it_waits_is_forgotten(begun: list[int]) -> None:
    async def session() -> None:
        async with running(**DELAY) as served:
            client = await ready_client(served)
            await joined(client)
            await asyncio.sleep(0.05)
            client.close()
            other = await ready_client(served)
            await asyncio.sleep(0.8)
            await other.ask("heartbeat", 4, **BEAT)

    play(session())
    assert begun.count(11) == 2


def test_a_client_that_reads_no_answers_is_dropped(begun: list[int]) -> None:
    """The server stops reading from it, although its requests would be answered immediately."""

    async def session() -> None:
        async with running(limits=Limits(write_s=0.5, drain_s=1)) as served:
            client = await ready_client(served)
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(_flood(client), LONG_S)
            before = len(begun)
            await asyncio.sleep(0.2)
            assert len(begun) == before
            other = await ready_client(served)
            await other.ask("heartbeat", 4, **BEAT)
            with pytest.raises((ConnectionError, frames.MalformedFrame)):
                await _drained(client)

    play(session())


#: a client whose answers fit no buffer of the system
MANY = 400


def test_a_client_that_reads_late_gets_all_its_answers(begun: list[int]) -> None:
    async def session() -> None:
        async with running() as served:
            client = await ready_client(served)
            client.reader._transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(MANY):
                client.send("offset_fetch", 9, **LONG)
            await asyncio.sleep(0.3)
            assert len(begun) < MANY  # no buffer of the system takes all of them
            client.reader._transport.resume_reading()  # type: ignore[attr-defined]
            for number in range(2, MANY + 2):
                frame = await frames.read_frame(client.reader, 1 << 20)
                assert frame is not None
                assert frames.read_correlation_id(frame) == number
            assert frames.read_response("offset_fetch", 9, frame).groups

    play(session())
    assert len(begun) == MANY


async def _drained(client: Client) -> None:
    """Read every answer until the connection ends. Raise ``ConnectionResetError`` then."""
    while await frames.read_frame(client.reader, 1 << 20) is not None:
        pass
    raise ConnectionResetError


async def _flood(client: Client) -> None:
    """Send requests with long answers, and read nothing."""
    while True:
        client.send("offset_fetch", 9, **LONG)
        await client.writer.drain()
        await asyncio.sleep(0)
