"""When a waiting Fetch is answered: the events that end its wait, and those that do not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from .served import Client, play, running
from .test_partition import batch

#: longer than a test may take
LONG_MS = 600_000
TRANSACTIONAL = 0x10


def rows(*places: tuple[str, int]) -> list[dict[str, Any]]:
    return [
        {"topic": name, "partitions": [{"partition": index, "partition_max_bytes": 10_000}]} for name, index in places
    ]


def ask(client: Client, *places: tuple[str, int], max_wait: int = LONG_MS, committed: bool = False) -> None:
    client.send(
        "fetch", 11, max_wait=max_wait, min_bytes=1, max_bytes=10_000, isolation_level=int(committed),
        session_epoch=-1, topics=rows(*places),
    )  # fmt: skip


async def codes(client: Client) -> list[int]:
    answer = await client.answer("fetch", 11)
    return [each.error_code for row in answer.responses for each in row.partitions]


async def write(client: Client, name: str, index: int, records: bytes, transactional_id: str | None = None) -> int:
    answer = await client.ask(
        "produce", 9, acks=-1, timeout=1_000, transactional_id=transactional_id,
        topic_data=[{"name": name, "partition_data": [{"index": index, "records": records}]}],
    )  # fmt: skip
    return int(answer.responses[0].partition_responses[0].error_code)


def session(steps: Any) -> None:
    """Run these steps with a client that fetches and one that does the rest."""

    async def both() -> None:
        async with running(topics={"t": 2, "u": 1}) as ready:
            await steps(await Client.to(ready.listen), await Client.to(ready.listen))

    play(both())


async def _waits(reader: Client) -> asyncio.Task[list[int]]:
    answer = asyncio.ensure_future(codes(reader))
    await asyncio.sleep(0.1)
    assert not answer.done()
    return answer


@pytest.mark.parametrize("index", [0, 1])
def test_records_in_any_partition_end_the_wait(index: int) -> None:
    async def steps(reader: Client, other: Client) -> None:
        ask(reader, ("t", 0), ("t", 1))
        answer = await _waits(reader)
        assert await write(other, "t", index, batch(1).data) == Code.none
        assert await answer == [Code.none, Code.none]

    session(steps)


@pytest.mark.parametrize("index", [0, 1])
def test_the_end_of_the_topic_ends_the_wait(index: int) -> None:
    async def steps(reader: Client, other: Client) -> None:
        ask(reader, ("t", index))
        answer = await _waits(reader)
        await other.ask("delete_topics", 5, topic_names=["t"], timeout=1_000)
        assert await answer == [Code.unknown_topic_or_partition]

    session(steps)


@pytest.mark.parametrize("places", [(("t", 0), ("t", 9)), (("t", 9), ("t", 0)), (("t", 0), ("missing", 0))])
def test_an_error_ends_the_wait_before_it_begins(places: tuple[tuple[str, int], ...]) -> None:
    async def steps(reader: Client, other: Client) -> None:
        ask(reader, *places)
        assert sorted(await codes(reader)) == [Code.none, Code.unknown_topic_or_partition]

    session(steps)


def test_records_of_an_open_transaction_do_not_end_the_wait_of_a_reader_of_committed_ones() -> None:
    async def steps(reader: Client, other: Client) -> None:
        made = await other.ask("init_producer_id", 4, transactional_id="x", transaction_timeout=60_000)
        who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        old = {f"v3_and_below_{name}": value for name, value in who.items()}
        topics = [{"name": "t", "partitions": [0]}]
        await other.ask(
            "add_partitions_to_txn", 3, v3_and_below_transactional_id="x", v3_and_below_topics=topics, **old
        )
        ask(reader, ("t", 0), committed=True)
        answer = await _waits(reader)
        one = batch(1, made.producer_id, made.producer_epoch, 0, TRANSACTIONAL).data
        assert await write(other, "t", 0, one, "x") == Code.none
        await asyncio.sleep(0.2)
        assert not answer.done()
        await other.ask("end_txn", 3, transactional_id="x", committed=True, **who)
        assert await answer == [Code.none]

    session(steps)


def test_a_negative_size_counts_for_the_first_partition_alone() -> None:
    """Kafka fails to read the first one, and has no bytes left for the next ones."""

    async def steps(client: Client, other: Client) -> None:
        for index in (0, 1):
            await write(other, "t", index, batch(1).data)
        asked = rows(("u", 0), ("t", 0), ("t", 1))
        for topics, expected in (
            (asked, [Code.none, Code.none, Code.none]),  # nothing to read in the first one
            (asked[1:], [Code.unknown_server_error, Code.none]),
        ):
            client.send("fetch", 11, max_wait=0, min_bytes=1, max_bytes=-1, session_epoch=-1, topics=topics)
            assert await codes(client) == expected

    session(steps)
