"""Workers over TCP, with ``fencepost serve``, which speaks the protocol of any Kafka broker."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from fencepost.protocol.partitions import TopicPartition
from fencepost.remote import Groups, Refused
from fencepost.remote.connection import Connection
from fencepost.wire.frames import API_KEYS
from fencepost.work import CommitFailed, WorkerFailed
from fencepost_server.options import Address, Options
from fencepost_server.run import Ready, Setup, serve

from .teams import EVERY, QUICK, Team, until

HEARTBEAT = API_KEYS["consumer_group_heartbeat"]


@asynccontextmanager
async def served(port: int = 0) -> AsyncIterator[Address]:
    """A server with the topic of the orders, until the block ends."""
    loop = asyncio.get_running_loop()
    there: asyncio.Future[Ready] = loop.create_future()
    stop = asyncio.Event()
    setup = Setup(options=Options(listen=Address(host="127.0.0.1", port=port)), settings=QUICK, topics={"orders": 6})
    running = loop.create_task(serve(setup, there.set_result, stop))
    try:
        yield (await there).listen
    finally:
        stop.set()
        await running


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_workers_share_work_through_a_server(protocol: str) -> None:
    async def story() -> Team:
        async with served() as at, Groups(str(at)) as groups:
            team = Team(groups.worker, protocol)
            async with asyncio.TaskGroup() as running, team.member() as one:
                running.create_task(team.works("one", one))
                await until(lambda: team.holding("one") == EVERY)
                async with team.member() as two:
                    running.create_task(team.works("two", two, tail_s=0.1))
                    await until(lambda: len(team.holding("one")) == len(team.holding("two")) == 3)
                    await until(lambda: min(team.done.values()) > 3)
                    two.crash()
                    for each in team.holding("two"):
                        del team.busy[each]
                await until(lambda: team.holding("one") == EVERY)
        return team

    assert asyncio.run(story()).overlaps == []


def test_a_restarted_server_is_found_again() -> None:
    """A server without stored data: a classic member joins again, a KIP-848 member ends, as Kafka's does (N-ERR-04)."""

    async def story() -> None:
        async with asyncio.TaskGroup() as running, AsyncExitStack() as stack:
            async with served() as at:
                groups = await stack.enter_async_context(Groups(str(at)))
                team = Team(groups.worker, "classic")
                one = await stack.enter_async_context(team.member())
                running.create_task(team.works("one", one))
                await until(lambda: team.holding("one") == EVERY)
            await asyncio.sleep(0.3)
            async with served(at.port):
                before = dict(team.done)
                await until(lambda: all(team.done[each] > before[each] + 2 for each in EVERY))
                await one.leave()

    asyncio.run(story())


def test_a_missing_broker_and_a_wrong_address_are_reported_in_one_line() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def nobody() -> None:
        async with Groups(f"127.0.0.1:{port}"):
            pass

    with pytest.raises(Refused, match="no broker responds to metadata; "):
        asyncio.run(nobody())
    with pytest.raises(ValueError, match=r"bootstrap must be HOST:PORT, .*'localhost'"):
        Groups("localhost")
    with pytest.raises(ValueError, match="'localhost:99999'"):
        Groups("127.0.0.1:9092,localhost:99999")


def capped(monkeypatch: pytest.MonkeyPatch, versions: dict[int, tuple[int, int] | None]) -> None:
    """Let the brokers announce these versions of some APIs; None: the API is missing."""
    opened = Connection.open

    async def older(*arguments: Any) -> Connection:
        connection = await opened(*arguments)
        versions_known = {**connection.versions, **versions}
        connection.versions = {key: each for key, each in versions_known.items() if each is not None}
        return connection

    monkeypatch.setattr(Connection, "open", older)


@pytest.mark.parametrize(("kept", "topics"), [(None, ["orders"]), ((0, 0), re.compile("orders.*"))])
def test_a_broker_without_required_apis_ends_the_worker_with_one_line(
    kept: tuple[int, int] | None, topics: list[str] | re.Pattern[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One broker without KIP-848, and one whose version of it has no regular expressions (N-ERR-04)."""
    capped(monkeypatch, {HEARTBEAT: kept})

    async def story() -> None:
        async with served() as at, Groups(str(at)) as groups, groups.worker("team", topics) as worker:
            async for _ in worker:
                pass

    with pytest.raises(
        WorkerFailed, match=r'UNSUPPORTED_VERSION; the coordinator supports no .*; try protocol="classic"'
    ):
        asyncio.run(asyncio.wait_for(story(), 120))


def test_a_regex_is_sent_over_tcp() -> None:
    async def story() -> None:
        async with (
            served() as at,
            Groups(str(at)) as groups,
            groups.worker("team", re.compile("ord.*"), metadata_max_age_ms=50) as worker,
        ):
            async for share in worker:
                assert share.partitions == EVERY
                break

    asyncio.run(asyncio.wait_for(story(), 120))


@pytest.mark.parametrize("newest", [2, 5, 7])
def test_a_broker_of_old_versions_will_do(newest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before OffsetFetch v8 a request is for one group, before LeaveGroup v3 for one member (G-WIRE-06, G-WIRE-23)."""
    capped(monkeypatch, {API_KEYS["offset_fetch"]: (1, newest), API_KEYS["leave_group"]: (0, 2)})

    async def share_of(groups: Groups) -> dict[TopicPartition, int]:
        async with groups.worker("team", ["orders"], protocol="classic") as worker:
            async for share in worker:
                assert share.partitions == EVERY  # the previous worker has left, and is not awaited
                before = await share.committed()
                await share.commit({each: each.partition + 1 for each in share})
                return before
        raise AssertionError("no share")

    async def story() -> None:
        async with served() as at, Groups(str(at)) as groups:
            assert await share_of(groups) == {}
            assert await share_of(groups) == {each: each.partition + 1 for each in EVERY}

    asyncio.run(asyncio.wait_for(story(), 120))


def test_a_broker_without_offsets_is_reported() -> None:
    async def story(monkeypatch: pytest.MonkeyPatch) -> None:
        async with served() as at:
            capped(monkeypatch, {API_KEYS["offset_fetch"]: None, API_KEYS["offset_commit"]: None})
            async with Groups(str(at)) as groups, groups.worker("team", ["orders"]) as worker:
                async for share in worker:
                    with pytest.raises(CommitFailed, match="UNSUPPORTED_VERSION"):
                        await share.committed()
                    with pytest.raises(CommitFailed, match="UNSUPPORTED_VERSION"):
                        await share.commit(dict.fromkeys(share, 1))
                    break

    with pytest.MonkeyPatch.context() as patches:
        asyncio.run(asyncio.wait_for(story(patches), 120))
