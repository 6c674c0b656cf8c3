"""A client's view of a cluster: the connections that a lost coordinator closes, and the existing topics."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.remote import Groups
from fencepost.remote.cluster import Cluster, _version
from fencepost.remote.connection import Connection
from fencepost.remote.sasl import LoginFailed, Sasl

HERE, THERE = ("127.0.0.1", 1), ("127.0.0.1", 2)


def test_a_lost_coordinator_takes_along_the_connections_of_its_worker_to_it_alone() -> None:
    async def main() -> None:
        cluster = Cluster([HERE], "client", None, None)
        broken: list[tuple[Any, str]] = []
        for place in [(HERE, "1 group"), (HERE, "1 offsets"), (HERE, "2 group"), (THERE, "1 group")]:
            fake: Any = SimpleNamespace(break_=lambda place=place: broken.append(place))
            cluster._connections[place] = fake
        cluster._coordinators["g"] = HERE
        cluster.forget("g", "1 ")
        assert broken == [(HERE, "1 group"), (HERE, "1 offsets")]

    asyncio.run(main())


def test_topics_without_a_name_or_with_an_error_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(name: str | None, error: ErrorCode) -> Any:
        return SimpleNamespace(name=name, error_code=error, partitions=[1, 2], topic_id=None)

    rows = [
        row(None, ErrorCode.NONE),
        row("denied", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        row("orders", ErrorCode.NONE),
    ]

    async def answer(*_: object) -> Any:
        return SimpleNamespace(brokers=[], topics=rows)

    async def main() -> None:
        cluster = Cluster([HERE], "client", None, None)
        monkeypatch.setattr(cluster, "_any", answer)
        assert [each.name for each in await cluster.topics()] == ["orders"]

    asyncio.run(main())


@pytest.mark.parametrize(("regex", "lowest"), [(None, 0), ("t.*", 1)])
def test_only_an_expression_needs_the_second_version_of_heartbeats(regex: str | None, lowest: int) -> None:
    connection: Any = SimpleNamespace(newest=lambda api, low, high: low)
    body = ConsumerGroupHeartbeatRequest("g", member_id="ada", member_epoch=0, subscribed_topic_regex=regex)
    assert _version(connection, "consumer_group_heartbeat", body) == lowest


@pytest.mark.parametrize("text", ["9092", ":9092", "host:", "host:x", "host:-1", "host:0", "host:65536", ""])
def test_text_that_is_not_an_address_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="bootstrap must be HOST:PORT"):
        Groups(text)


@pytest.mark.parametrize(("has", "message"), [([], "it supports none"), (["PLAIN"], "it supports PLAIN")])
def test_a_broker_without_the_login_is_reported(has: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def exchange(*_: object) -> Any:
        return SimpleNamespace(error_code=SimpleNamespace(value=33), mechanisms=has)

    async def main() -> None:
        connection = Connection.__new__(Connection)
        connection._sasl = Sasl("alice", "secret")
        monkeypatch.setattr(Connection, "_exchange", exchange)
        monkeypatch.setattr(Connection, "break_", lambda self: None)
        with pytest.raises(LoginFailed, match=message):
            await connection._log_in()

    asyncio.run(main())
