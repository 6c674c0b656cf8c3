"""A client reads ``__consumer_offsets`` from a server: the records of its coordinators, as in Kafka's log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code

from fencepost.codec import Codec
from fencepost.protocol.offset_records import OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.traces.offsets_log.rows import TOPIC, LogRow, Notices
from fencepost_conformance.traces.offsets_log.topic import read_topic
from fencepost_conformance.traces.wire.access import OPEN
from fencepost_server.data.encoding import encode_batch
from fencepost_server.data.offsets_topic import TOPIC_ID
from fencepost_server.run import Ready
from fencepost_server.security.acl import Acl, parse_rules

from .served import Client, play, running


async def commit(client: Client, offset: int, group: str = "g") -> None:
    topics = [{"name": "t", "partitions": [{"partition_index": 0, "committed_offset": offset}]}]
    answer = await client.ask("offset_commit", 8, group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    assert answer.topics[0].partitions[0].error_code is Code.none


async def named(client: Client) -> Any:
    answer = await client.ask("metadata", 9, topics=[{"name": TOPIC}], allow_auto_topic_creation=False)
    return answer.topics[0]


async def listed(client: Client) -> dict[str, bool]:
    answer = await client.ask("metadata", 9, topics=None)
    return {str(each.name): bool(each.is_internal) for each in answer.topics}


async def rows_of(ready: Ready) -> list[LogRow]:
    at = Address(ready.listen.host, ready.listen.port)
    return await asyncio.to_thread(lambda: [*read_topic(at, OPEN, Notices())])


def offsets(rows: list[LogRow]) -> list[tuple[str, int]]:
    """Return the groups and offsets of commits."""
    found = []
    for row in rows:
        record: Any = Codec().decode(row.key, row.value)
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue):
            found.append((record.key.group, record.value.offset))
    return found


def test_topic_exists_once_it_is_named() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            client = await Client.to(ready.listen)
            assert await listed(client) == {"t": False}
            topic = await named(client)
            assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (Code.none, True, 50)
            assert await listed(client) == {"t": False, TOPIC: True}
            resources = [{"resource_type": 2, "resource_name": TOPIC, "configuration_keys": None}]
            configs = (await client.ask("describe_configs", 4, resources=resources)).results[0].configs
            assert ("cleanup.policy", "compact") in [(each.name, each.value) for each in configs]

    play(session())


def test_records_before_and_after_the_first_read_are_there_once_and_in_order() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            client = await Client.to(ready.listen)
            for offset in (1, 2, 3):
                await commit(client, offset)
            assert offsets(await rows_of(ready)) == [("g", 1), ("g", 2), ("g", 3)]
            for offset in (4, 2):
                await commit(client, offset)
                await commit(client, offset, "other")
            rows = [row for row in await rows_of(ready) if b"\x00\x01g" in (row.key or b"")]
            assert offsets(rows) == [("g", 1), ("g", 2), ("g", 3), ("g", 4), ("g", 2)]
            assert [row.offset for row in rows] == [0, 1, 2, 3, 4]
            assert all(row.at_ms > 0 for row in rows)

    play(session())


def test_waiting_fetch_is_answered_with_the_next_record() -> None:
    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            client, reader = await Client.to(ready.listen), await Client.to(ready.listen)
            await commit(client, 1)
            (row,) = await rows_of(ready)
            partitions = [{"partition": row.partition, "fetch_offset": 1, "partition_max_bytes": 10_000}]
            reader.send(
                "fetch", 11, max_wait=600_000, min_bytes=1, max_bytes=10_000, session_epoch=-1,
                topics=[{"topic": TOPIC, "partitions": partitions}],
            )  # fmt: skip
            await asyncio.sleep(0.05)
            await commit(client, 2)
            answer = (await reader.answer("fetch", 11)).responses[0].partitions[0]
            assert (answer.error_code, answer.high_watermark, bool(answer.records)) == (Code.none, 2, True)

    play(session())


@pytest.mark.parametrize(("profile", "version"), [(KAFKA_4_0, 3), (INTENDED, 4)])
def test_records_have_the_bytes_of_the_profiles_release(profile: Profile, version: int) -> None:
    """Kafka 4.0 writes version 3 of an offset, which old readers know; later releases write version 4 (F-REC-20)."""

    async def session() -> None:
        async with running(topics={"t": 1}, profile=profile) as ready:
            client = await Client.to(ready.listen)
            await commit(client, 1)
            (row,) = await rows_of(ready)
            assert row.value is not None
            assert (row.value[:2], offsets([row])) == (version.to_bytes(2, "big"), [("g", 1)])

    play(session())


async def produced(client: Client, name: str, partition: int, records: bytes, acks: int = -1) -> Any:
    """Write to a partition by the name of its topic, and return the answer about it."""
    rows = [{"index": partition, "records": records}]
    answer = await client.ask(
        "produce", 9, acks=acks, timeout=1_000, topic_data=[{"name": name, "partition_data": rows}]
    )
    return answer.responses[0].partition_responses[0]


def test_clients_cannot_write_to_the_topic() -> None:
    """As in Kafka's ``ReplicaManager.appendRecordsToLeader``; the records of the coordinators do not change."""

    async def session() -> None:
        async with running(topics={"t": 1}) as ready:
            client = await Client.to(ready.listen)
            await commit(client, 1)
            batch = encode_batch([(0, b"k", b"v")], 0)
            for partition in (0, 49):
                answer = await produced(client, TOPIC, partition, batch)
                seen = answer.error_code, answer.error_message, answer.base_offset
                assert seen == (Code.invalid_topic_exception, None, -1)
            assert (await produced(client, TOPIC, 50, batch)).error_code is Code.unknown_topic_or_partition
            assert (await produced(client, TOPIC, 0, batch, acks=7)).error_code is Code.invalid_required_acks
            assert (await produced(client, TOPIC, 0, b"")).error_code is Code.invalid_record
            rows = [{"index": 0, "records": batch}]
            data = [{"topic_id": TOPIC_ID, "partition_data": rows}]
            seen = await client.ask("produce", 13, acks=-1, timeout=1_000, topic_data=data)
            (answer,) = seen.responses[0].partition_responses
            assert answer.error_code is Code.invalid_topic_exception
            assert (await produced(client, "t", 0, batch)).error_code is Code.none
            assert offsets(await rows_of(ready)) == [("g", 1)]

    play(session())


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("allow User:ANONYMOUS Read Group *", "no right to read __consumer_offsets"),
        ("allow User:ANONYMOUS Describe Topic *", "no right to read it; the rights DESCRIBE and READ"),
    ],
)
def test_reader_without_rights_gets_their_names(rules: str, said: str) -> None:
    async def session() -> None:
        async with running(topics={"t": 1}, acl=Acl(parse_rules(rules))) as ready:
            with pytest.raises(CannotRun, match=said):
                await rows_of(ready)

    play(session())


def test_closed_port_is_one_line() -> None:
    with pytest.raises(CannotRun, match=r"127\.0\.0\.1:1: "):
        list(read_topic(Address("127.0.0.1", 1), OPEN, Notices()))
