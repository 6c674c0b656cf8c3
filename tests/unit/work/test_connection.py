"""One connection to a broker that the test plays: answers that are late, repeated, or of another version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost.remote.cluster import Cluster, Line
from fencepost.remote.connection import Connection
from fencepost.remote.sasl import Sasl
from fencepost.wire.fill import fill
from fencepost.wire.frames import API_KEYS, close, framed, read_frame, response_schema, write_response
from fencepost.work.link import Unsupported
from fencepost_conformance.generate.virtual.loop import run

ANSWER: Any = {"api_keys": [{"api_key": 18, "min_version": 0, "max_version": 0}]}
HERE, THERE = ("127.0.0.1", 1), ("127.0.0.1", 2)


def play(
    scene: Callable[[Connection], Awaitable[None]], answers: Callable[[int], list[int]], late_s: float = 0
) -> None:
    """``answers``: the correlation ids of the answers to a request, by its number. ``late_s``: the delay of the
    answers."""
    handlers: list[asyncio.Task[Any]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        handlers.append(task)
        number = 0
        while await read_frame(reader, 1 << 20) is not None:
            number += 1
            await asyncio.sleep(late_s if number > 1 else 0)
            for correlation_id in answers(number):
                body = fill(response_schema("api_versions", 0), ANSWER)
                writer.write(framed(write_response(correlation_id, body)))
        await close(writer)

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        connection = await Connection.open("127.0.0.1", port, "client", None, None)
        try:
            await scene(connection)
        finally:
            await connection.close()
            await asyncio.wait(handlers)
            server.close()
            await server.wait_closed()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_an_answer_that_comes_twice_is_not_taken_for_the_next() -> None:
    async def scene(connection: Connection) -> None:
        with pytest.raises(ConnectionError, match="another correlation id"):
            await connection.ask("api_versions", 0, {})
        assert connection.broken

    play(scene, lambda number: [number, number])


def test_a_connection_is_not_used_after_a_request_on_it_was_given_up() -> None:
    async def scene(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.ask("api_versions", 0, {}), 0.05)
        assert connection.broken
        with pytest.raises(ConnectionError, match="is broken"):
            await connection.ask("api_versions", 0, {})

    play(scene, lambda number: [number], late_s=0.3)


@pytest.mark.parametrize(
    ("has", "wants", "version"), [((5, 9), (0, 4), None), ((0, 3), (4, 9), None), ((2, 9), (4, 6), 6)]
)
def test_a_version_is_one_that_both_peers_support(
    has: tuple[int, int], wants: tuple[int, int], version: int | None
) -> None:
    connection = Connection.__new__(Connection)
    connection.versions = {API_KEYS["join_group"]: has}
    if version is None:
        with pytest.raises(Unsupported, match=f"join_group v{has[0]}-v{has[1]}"):
            connection.newest("join_group", *wants)
    else:
        assert connection.newest("join_group", *wants) == version


def test_a_login_is_renewed_before_its_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker closes a connection on which a request comes after the session has ended (KIP-368)."""
    asked: list[tuple[str, float]] = []

    async def exchange(self: Connection, api: str, version: int, values: Any) -> Any:
        asked.append((api, asyncio.get_running_loop().time()))
        lasts = timedelta(seconds=10)
        return SimpleNamespace(error_code=Code.none, mechanisms=["PLAIN"], auth_bytes=b"", session_lifetime=lasts)

    monkeypatch.setattr(Connection, "_exchange", exchange)

    async def main() -> None:
        connection = Connection(None, None, "client", Sasl("alice", "secret", "PLAIN"))  # type: ignore[arg-type]
        connection.versions = {API_KEYS["sasl_authenticate"]: (0, 2)}
        await connection._log_in()
        for _ in range(40):
            await asyncio.sleep(0.95)
            await connection.ask("heartbeat", 4, {})

    ran = run(main(), Random(1))
    assert ran.failure is None
    logins = [at for api, at in asked if api == "sasl_authenticate"]
    assert len(logins) > 3
    assert all(later - earlier < 10 for earlier, later in pairwise(logins))


def test_brokers_that_metadata_named_are_asked_when_the_first_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connection(self: Cluster, address: tuple[str, int], lane: str) -> Any:
        if address == HERE:
            raise ConnectionRefusedError

        async def ask(*_: object) -> str:
            return "from there"

        return SimpleNamespace(ask=ask, newest=lambda *_: 0)

    monkeypatch.setattr(Cluster, "_connection", connection)

    async def main() -> None:
        cluster = Cluster([HERE], "client", None, None)
        cluster._brokers = [HERE, THERE]
        assert await cluster._any("metadata", 0, 1, {}) == "from there"

    asyncio.run(main())


def test_a_worker_that_loses_its_coordinator_leaves_the_connections_of_others_alone() -> None:
    async def main() -> None:
        cluster = Cluster([HERE], "client", None, None)
        broken: list[str] = []
        for lane in ("1 group", "10 group", "11 offsets", "2 group"):
            fake: Any = SimpleNamespace(break_=lambda lane=lane: broken.append(lane))
            cluster._connections[HERE, lane] = fake
        cluster._coordinators["g"] = HERE
        Line(cluster, 1).forget("g")
        assert broken == ["1 group"]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "sent"), [("a,b", "a=2Cb"), ("a=b", "a=3Db"), ("=2C,", "=3D2C=2C"), ("grüße", "grüße")]
)
def test_a_name_is_escaped_once(name: str, sent: str) -> None:
    first = next(Sasl(name, "secret").exchange(lambda: "nonce"))
    assert first.decode() == f"n,,n={sent},r=nonce"
