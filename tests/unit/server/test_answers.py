"""Answers that depend on several rows of a request, or on values at a limit."""

from __future__ import annotations

from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost import Settings
from fencepost.sharding import partition_for

from .served import Client, play, running
from .test_partition import batch

GROUP, SET = 32, 0


@pytest.mark.parametrize(
    ("name", "version", "code"),
    [("a", "1.0", Code.none), ("a", "1 0", Code.invalid_request), ("a b", "1.0", Code.invalid_request),
     ("", "1", Code.invalid_request), ("a", "", Code.invalid_request), ("a", "1.0-", Code.invalid_request)],
)  # fmt: skip
def test_name_and_version_of_the_software_are_checked(name: str, version: str, code: Code) -> None:
    async def session() -> None:
        async with running() as ready:
            client = await Client.to(ready.listen)
            answer = await client.ask("api_versions", 3, client_software_name=name, client_software_version=version)
            assert answer.error_code == code

    play(session())


@pytest.mark.parametrize(("version", "count"), [(0, 2), (1, 0)])
def test_an_empty_list_asks_for_all_topics_in_the_first_version_alone(version: int, count: int) -> None:
    async def session() -> None:
        async with running(topics={"t": 1, "u": 1}) as ready:
            client = await Client.to(ready.listen)
            assert len((await client.ask("metadata", version, topics=[])).topics) == count

    play(session())


@pytest.mark.parametrize(
    ("count", "code"), [(3, Code.none), (2, Code.invalid_partitions), (1, Code.invalid_partitions)]
)
def test_partitions_are_added_and_never_taken_away(count: int, code: Code) -> None:
    async def session() -> None:
        async with running(topics={"t": 2}) as ready:
            client = await Client.to(ready.listen)
            asked = [{"name": "t", "count": count, "assignments": None}]
            answer = await client.ask("create_partitions", 3, topics=asked, timeout=1_000)
            assert answer.results[0].error_code == code

    play(session())


async def write(client: Client, index: int, count: int = 1, **more: Any) -> int:
    rows = [{"index": index, "records": batch(count, **more).data}]
    answer = await client.ask("produce", 9, acks=-1, timeout=1_000, topic_data=[{"name": "t", "partition_data": rows}])
    assert answer.responses[0].partition_responses[0].error_code == Code.none
    return len(rows[0]["records"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("written", "most", "partition_most", "come"),
    [
        ((9, 0, 9), 1, 1_000, (True, False, False)),  # one batch is returned, however large it is
        ((0, 9, 9), 1, 1_000, (False, True, False)),
        ((0, 9, 0), 1_000, 1, (False, True, False)),
        ((9, 9, 9), 150, 1_000, (True, True, False)),  # the limit of the response, over all partitions
        ((9, 9, 9), 1_000, 1_000, (True, True, True)),
    ],
)
def test_a_fetch_keeps_to_its_limits_and_gets_on_all_the_same(
    written: tuple[int, ...], most: int, partition_most: int, come: tuple[bool, ...]
) -> None:
    async def session() -> None:
        async with running(topics={"t": 3}) as ready:
            client = await Client.to(ready.listen)
            for index, count in enumerate(written):
                if count:
                    assert await write(client, index, count) == 70
            rows = [{"partition": index, "partition_max_bytes": partition_most} for index in range(3)]
            answer = await client.ask("fetch", 12, max_bytes=most, topics=[{"topic": "t", "partitions": rows}])
            assert tuple(bool(each.records) for each in answer.responses[0].partitions) == come

    play(session())


@pytest.mark.parametrize(("heartbeat_ms", "code"), [(5_000, Code.none), (50_000, Code.invalid_config)])
def test_a_session_of_a_group_is_longer_than_the_heartbeat_interval_of_the_broker(
    heartbeat_ms: int, code: Code
) -> None:
    settings = Settings(
        group_consumer_heartbeat_interval_ms=heartbeat_ms,
        group_consumer_max_heartbeat_interval_ms=60_000,
        group_consumer_session_timeout_ms=55_000,
    )

    async def session() -> None:
        async with running(settings=settings) as ready:
            client = await Client.to(ready.listen)
            configs = [{"name": "consumer.session.timeout.ms", "config_operation": SET, "value": "46000"}]
            row = {"resource_type": GROUP, "resource_name": "g", "configs": configs}
            answer = await client.ask("incremental_alter_configs", 1, resources=[row])
            assert answer.responses[0].error_code == code

    play(session())


def test_a_transaction_ends_in_all_its_partitions_and_groups() -> None:
    async def session() -> None:
        async with running(topics={"t": 2}) as ready:
            client = await Client.to(ready.listen)
            partitions = ready.node.groups.partitions
            other = next(
                f"h{at}" for at in range(99) if partition_for(f"h{at}", partitions) != partition_for("g", partitions)
            )
            made = await client.ask("init_producer_id", 4, transactional_id="x", transaction_timeout=60_000)
            who = {"producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
            rows = [{"index": index, "records": batch(1, *who.values(), 0, 0x10).data} for index in range(2)]
            data = [{"name": "t", "topic_id": ready.node.topics.by_name["t"].topic_id, "partition_data": rows}]
            answer = await client.ask("produce", 12, transactional_id="x", acks=-1, timeout=1_000, topic_data=data)
            assert not any(each.error_code for each in answer.responses[0].partition_responses)
            for group in ("g", other):
                offsets = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
                done = await client.ask(
                    "txn_offset_commit", 5, transactional_id="x", group_id=group, topics=offsets, **who
                )
                assert done.topics[0].partitions[0].error_code == Code.none
            ended = await client.ask("end_txn", 5, transactional_id="x", committed=True, **who)
            assert ended.error_code == Code.none
            asked = [{"partition": index, "partition_max_bytes": 1_000} for index in range(2)]
            read = await client.ask(
                "fetch", 12, max_bytes=9_000, isolation_level=1, topics=[{"topic": "t", "partitions": asked}]
            )
            assert [each.last_stable_offset for each in read.responses[0].partitions] == [2, 2]
            groups = [{"group_id": group, "topics": None} for group in ("g", other)]
            found = await client.ask("offset_fetch", 8, groups=groups)
            assert [row.topics[0].partitions[0].committed_offset for row in found.groups] == [7, 7]

    play(session())
