"""Two servers on one database: one leads; the other names the leader, and takes over when it ends."""

from __future__ import annotations

import asyncio
import json
import runpy
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost_server.options import Address

from .served import Client, play
from .test_partition import batch

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
STORE = Path(__file__).parents[1] / "store" / "postgres.py"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Any]:
    server = runpy.run_path(str(STORE))["Postgres"]()  # skips where there is none
    yield server
    server.close()


class Server:
    """A process of ``fencepost serve`` on a database of the cluster."""

    def __init__(self, postgres: Any, database: str, node: int) -> None:
        url = f"postgresql://postgres@/{database}?host={postgres.folder}"
        words = ["serve", "--json", "--listen", "127.0.0.1:0", "--data", url, "--node-id", str(node)]
        words += ["--lease-seconds", "1", "--topic", "t:1", "--partitions", "2"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fencepost_conformance.cli", *words], stdout=subprocess.PIPE, text=True
        )
        host, _, port = json.loads(self._line())["listen"].rpartition(":")
        self.at = Address(host=host, port=int(port))

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ended(self) -> tuple[int, str]:
        """Return its status, and the error that it printed."""
        event = json.loads(self._line())
        return self.process.wait(120), event["error"]


@pytest.fixture
def nodes(postgres: Any, request: pytest.FixtureRequest) -> Iterator[list[Server]]:
    database = f"nodes_{abs(hash(request.node.name))}"
    with psycopg.connect(postgres.where, autocommit=True) as session:
        session.execute(f"CREATE DATABASE {database}")
    found: list[Server] = []
    try:
        found += [Server(postgres, database, 1)]
        asyncio.run(leads(found[0].at, 1))
        found += [Server(postgres, database, 2)]
        yield found
    finally:
        for each in found:
            each.process.kill()
            each.process.communicate()


async def leads(at: Address, node: int) -> Any:
    """Wait until the server reports that this node leads the topic; return its Metadata."""
    client = await Client.to(at)
    for _ in range(600):
        metadata = await client.ask("metadata", 12, topics=None)
        partitions = [each for topic in metadata.topics for each in topic.partitions]
        if partitions and {int(each.leader_id) for each in partitions} == {node}:
            client.close()
            return metadata
        await asyncio.sleep(0.1)
    raise AssertionError(f"node {node} does not lead")


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Ask repeatedly until the condition holds."""
    for _ in range(600):
        if await holds():
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it does not hold after a minute")


async def knows_both(client: Client) -> bool:
    return len((await client.ask("metadata", 12, topics=None)).brokers) == 2


async def has_both_topics(client: Client) -> bool:
    return {each.name for each in (await client.ask("metadata", 12, topics=None)).topics} == {"t", "new"}


async def has_grown(client: Client) -> bool:
    topics = (await client.ask("metadata", 12, topics=None)).topics
    return {each.name: len(each.partitions) for each in topics} == {"t": 1, "new": 3}


async def produce(client: Client, sequence: int) -> Any:
    rows = [{"index": 0, "records": batch(1, 7, 0, sequence).data}]
    answer = await client.ask("produce", 9, acks=-1, timeout=5_000, topic_data=[{"name": "t", "partition_data": rows}])
    return answer.responses[0].partition_responses[0]


async def fetch(client: Client) -> Any:
    part = {"partition": 0, "partition_max_bytes": 10_000, "current_leader_epoch": -1}
    rows = [{"topic": "t", "partitions": [part]}]
    return (await client.ask("fetch", 12, max_bytes=10_000, topics=rows)).responses[0].partitions[0]


async def commit(client: Client, offset: int) -> Code:
    rows = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": offset}]}]
    answer = await client.ask("offset_commit", 8, group_id="g", topics=rows)
    return Code(answer.topics[0].partitions[0].error_code)


async def committed(client: Client) -> int:
    asked = [{"name": "t", "partition_indexes": (0,)}]
    answer = await client.ask("offset_fetch", 7, group_id="g", topics=asked)
    return int(answer.topics[0].partitions[0].committed_offset)


def test_a_standby_names_the_leader_and_serves_nothing(nodes: list[Server]) -> None:
    async def session() -> None:
        one, two = [await Client.to(each.at) for each in nodes]
        ports = {1: nodes[0].at.port, 2: nodes[1].at.port}
        await until(lambda: knows_both(one))  # the first node learns of the second
        for client in (one, two):
            metadata = await client.ask("metadata", 12, topics=None)
            assert {int(each.node_id): int(each.port) for each in metadata.brokers} == ports
            assert (int(metadata.controller_id), int(metadata.topics[0].partitions[0].leader_id)) == (1, 1)
            cluster = await client.ask("describe_cluster", 0)
            assert {int(each.broker_id): int(each.port) for each in cluster.brokers} == ports
            for kind in (0, 1):
                found = await client.ask("find_coordinator", 4, key_type=kind, coordinator_keys=("g",))
                assert [(int(row.node_id), int(row.port)) for row in found.coordinators] == [(1, ports[1])]
        assert (await produce(two, 0)).error_code == Code.not_leader_or_follower
        assert (await fetch(two)).error_code == Code.not_leader_or_follower
        for api, version, row in (
            ("list_offsets", 9, {"name": "t", "partitions": [{"partition_index": 0, "timestamp": -1}]}),
            ("offset_for_leader_epoch", 4, {"topic": "t", "partitions": [{"partition": 0}]}),
            ("delete_records", 2, {"name": "t", "partitions": [{"partition_index": 0, "offset": 0}]}),
        ):
            refused = await two.ask(api, version, topics=[row])
            assert refused.topics[0].partitions[0].error_code == Code.not_leader_or_follower, api
        assert await commit(two, 1) is Code.not_coordinator
        asked = {"name": "new", "num_partitions": 1, "replication_factor": 1}
        assert (await two.ask("create_topics", 7, topics=[asked])).topics[0].error_code == Code.not_controller
        assert (await two.ask("heartbeat", 4, group_id="g", member_id="m")).error_code == Code.not_coordinator
        assert (await one.ask("create_topics", 7, topics=[asked])).topics[0].error_code == Code.none
        await until(lambda: has_both_topics(two))
        grown = [{"name": "new", "count": 3, "assignments": None}]
        assert (await one.ask("create_partitions", 3, topics=grown, timeout=5_000)).results[0].error_code == Code.none
        await until(lambda: has_grown(two))
        ids = [await each.ask("init_producer_id", 4, transaction_timeout=1_000) for each in (one, two)]
        assert ids[0].producer_id != ids[1].producer_id

    play(session())


@pytest.mark.parametrize("how", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.all)])
def test_the_other_node_continues_where_the_lost_leader_was(nodes: list[Server], how: signal.Signals) -> None:
    async def session() -> None:
        one = await Client.to(nodes[0].at)
        assert [(await produce(one, at)).base_offset for at in range(3)] == [0, 1, 2]
        assert await commit(one, 2) is Code.none
        nodes[0].process.send_signal(how)
        answer = await leads(nodes[1].at, 2)
        assert int(answer.topics[0].partitions[0].leader_epoch) == 2
        two = await Client.to(nodes[1].at)
        assert await committed(two) == 2
        assert (await produce(two, 2)).base_offset == 2  # the producer sends a stored batch again
        assert (await produce(two, 3)).base_offset == 3
        read = await fetch(two)
        assert (read.error_code, read.high_watermark) == (Code.none, 4)
        rows = [{"topic": "t", "partitions": [{"partition": 0, "current_leader_epoch": 2, "leader_epoch": 1}]}]
        answer = await two.ask("offset_for_leader_epoch", 4, replica_id=-2, topics=rows)
        end = answer.topics[0].partitions[0]
        assert (end.error_code, int(end.leader_epoch), int(end.end_offset)) == (Code.none, 1, 3)
        rows[0]["partitions"][0]["current_leader_epoch"] = 1  # type: ignore[index]
        answer = await two.ask("offset_for_leader_epoch", 4, replica_id=-2, topics=rows)
        assert answer.topics[0].partitions[0].error_code == Code.fenced_leader_epoch

    play(session())


def test_a_leader_that_was_away_too_long_acknowledges_nothing_and_ends(nodes: list[Server]) -> None:
    async def session() -> None:
        one = await Client.to(nodes[0].at)
        assert (await produce(one, 0)).base_offset == 0
        nodes[0].process.send_signal(signal.SIGSTOP)
        await leads(nodes[1].at, 2)
        two = await Client.to(nodes[1].at)
        assert (await produce(two, 1)).base_offset == 1
        late = asyncio.ensure_future(produce(one, 1))
        await asyncio.sleep(0.1)
        nodes[0].process.send_signal(signal.SIGCONT)
        with suppress(ConnectionError, asyncio.IncompleteReadError):  # it may have ended before
            assert (await late).error_code == Code.not_leader_or_follower
        status, error = await asyncio.wait_for(asyncio.to_thread(nodes[0].ended), 120)
        assert status == 2
        assert "restart this one" in error or "restart this node" in error
        assert (await fetch(two)).high_watermark == 2

    play(session())
