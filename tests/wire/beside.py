"""Requests of clients in a script, and the answers of a broker. Ids that a broker draws are numbered in their order, so
that the answers of two brokers can be compared."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kio.index import load_entity_schema
from kio.static.constants import EntityType

from fencepost.wire import frames
from fencepost.wire.convert import plain
from fencepost.wire.fill import fill
from fencepost.wire.later import LATER
from fencepost_server.data.batches import marker

#: the time of all batches: a batch older than a marker makes Kafka begin another segment, where a fetch ends
NOW: Final = int(time.time() * 1_000)
Ask = Callable[..., Awaitable[Any]]

#: CONCURRENT_TRANSACTIONS
_ENDING: Final = 51
#: fields whose values a broker draws; other fields with such a value get the same name
_DRAWN: Final = ("topic_id", "member_id", "leader", "producer_id", "cluster_id")
#: address, name and messages are the broker's own
_OWN: Final = ("host", "port", "node_id", "client_host", "error_message", "log_append_time_ms", "throttle_time_ms")
#: Lists whose order means nothing, by API ("" for each API): Kafka shuffles them, fills them from hash tables, or puts
#: rejected rows first. All others are compared in order.
_UNORDERED: Final = frozenset(
    {
        ("", "members"),
        ("list_groups", "groups"),
        ("list_offsets", "partitions"),
        ("metadata", "topics"),
        ("describe_groups", "groups"),
        ("consumer_group_describe", "groups"),
        ("delete_groups", "results"),
        ("delete_topics", "responses"),
    }
)
_KEYS: Final = ("name", "topic", "topic_name", "group_id", "key", "partition_index", "partition", "index", "error_code")
_NOBODY: Final = (None, "", -1, "None", "00000000-0000-0000-0000-000000000000")


class Transcript:
    """The answers of one broker, one after the other."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.answers: list[tuple[str, Any]] = []
        self._names: dict[str, str] = {}

    def add(self, words: str, answer: Any) -> None:
        fields = plain(answer) if answer is not None else "closed"
        if words.startswith("create_topics"):
            for row in fields["topics"]:
                row.pop("configs", None)  # Kafka lists all settings of a topic; other brokers do not have most of them
        self.answers.append((words, self._named(fields, words.partition(" ")[0])))

    def _named(self, value: Any, api: str, field: str = "") -> Any:
        if isinstance(value, dict):
            return {key: self._named(item, api, key) for key, item in value.items() if key not in _OWN}
        if isinstance(value, list):
            rows = [self._named(item, api, field) for item in value]
            return sorted(rows, key=_place) if {("", field), (api, field)} & _UNORDERED else rows
        if field == "records" and value:
            return _whole(base64.urlsafe_b64decode(value))
        if field in _DRAWN and value not in _NOBODY:
            return self._names.setdefault(str(value), f"<{len(self._names)}>")
        return self._names.get(value, value) if isinstance(value, str) else value


def _whole(data: bytes) -> str:
    """Return the complete batches: Kafka ends an answer wherever its size is reached. Times of markers are the broker's
    own."""
    found, at = [], 0
    while at + 12 <= len(data) and (end := at + 12 + int.from_bytes(data[at + 8 : at + 12], "big")) <= len(data):
        batch = bytearray(data[at:end])
        if batch[22] & 0x20:
            batch[17:21] = batch[27:43] = b""
        found.append(batch.hex())
        at = end
    return " ".join(found)


def _place(row: Any) -> tuple[str, ...]:
    """Return the order for rows without one."""
    if not isinstance(row, dict):
        return ()
    return tuple(str(row.get(key, "")) for key in _KEYS)


class Speaker:
    """A connection that is opened again when it was closed."""

    def __init__(self, bootstrap: str, transcript: Transcript) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._at = host, int(port)
        self._transcript = transcript
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._count = 0

    async def ask(self, api: str, version: int, *, until: Callable[[Any], bool] = lambda _: True, **values: Any) -> Any:
        """Send a request and record the answer; None if the connection was closed. ``until``: ask again while this is
        false, for actions that take one broker longer."""
        while not until(answer := await self._answer(api, version, **values)):
            await asyncio.sleep(0.1)
        self._transcript.add(f"{api} v{version} {values}", answer)
        return answer

    async def _answer(self, api: str, version: int, **values: Any) -> Any:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._at)
        self._count += 1
        schema = LATER.get((api, version, EntityType.request)) or load_entity_schema(api, version, EntityType.request)
        header = frames.RequestHeader(frames.API_KEYS[api], version, self._count, "beside")
        reader, writer = self._streams
        writer.write(frames.framed(frames.write_request(header, fill(schema, values))))
        try:
            frame = await asyncio.wait_for(frames.read_frame(reader, 1 << 28), 30)
        except (ConnectionError, frames.MalformedFrame):
            frame = None
        answer = None if frame is None else frames.read_response(api, version, frame)
        if frame is None:
            await self.close()
        return answer

    async def close(self) -> None:
        if self._streams is not None:
            await frames.close(self._streams[1])
            self._streams = None


def batch(count: int = 1, producer: tuple[int, int, int] = (-1, -1, -1), attributes: int = 0) -> bytes:
    """Return a batch of so many empty records; ``producer``: id, epoch and first sequence."""
    import struct  # noqa: PLC0415

    import crc32c  # noqa: PLC0415  # with the extra

    data = bytearray(marker(1, 0, committed=True, coordinator_epoch=0, at_ms=NOW).data[:61])
    for at in range(count):
        record = bytes([0, 0, at << 1, 1, 1, 0])  # no key, no value, no headers
        data += bytes([len(record) << 1]) + record
    struct.pack_into(">i", data, 8, len(data) - 12)
    struct.pack_into(">hi", data, 21, attributes, count - 1)
    struct.pack_into(">qhii", data, 43, *producer, count)
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


def ended(answer: Any) -> bool:
    """Whether every transaction has ended."""
    return bool(answer.error_code != _ENDING)


async def topics(ask: Ask) -> None:
    rows = [
        {"name": "orders", "num_partitions": 2, "replication_factor": 1},
        {"name": "other", "num_partitions": -1, "replication_factor": -1},
        {"name": "bad name", "num_partitions": 1, "replication_factor": 1},
        {"name": "wide", "num_partitions": 1, "replication_factor": 3},
        {"name": "none", "num_partitions": 0, "replication_factor": 1},
        {"name": "twice", "num_partitions": 1, "replication_factor": 1},
        {"name": "twice", "num_partitions": 1, "replication_factor": 1},
    ]
    made = await ask("create_topics", 7, topics=rows, timeout=10_000)
    assert made is not None
    await ask("create_topics", 5, topics=rows[:1], timeout=10_000)
    made_all = [{"name": "orders"}, {"name": "other"}]
    await ask("metadata", 9, topics=made_all, until=lambda answer: not any(row.error_code for row in answer.topics))
    for version in range(14):
        named = [{"name": "orders"}, {"name": "nobody"}, {"name": "bad name"}]
        await ask("metadata", version, topics=named, allow_auto_topic_creation=False)
    ids = {row.name: row.topic_id for row in made.topics if row.topic_id}
    by_id = [{"name": None, "topic_id": ids["orders"].bytes}, {"name": None, "topic_id": b"\x07" * 16}]
    await ask("metadata", 12, topics=by_id, allow_auto_topic_creation=False)
    more = [{"name": "other", "count": 3}, {"name": "other", "count": 2}, {"name": "nobody", "count": 2}]
    for row in more:
        await ask("create_partitions", 3, topics=[row], timeout=10_000)
    await ask("metadata", 9, topics=[{"name": "other"}], until=lambda answer: len(answer.topics[0].partitions) == 3)
    await ask("describe_topic_partitions", 0, topics=[{"name": "other"}, {"name": "nobody"}], cursor=None,
              response_partition_limit=2)  # fmt: skip


async def data(ask: Ask) -> None:
    def write(version: int, records: bytes, index: int = 0, acks: int = -1, name: str = "orders") -> Awaitable[Any]:
        rows = [{"name": name, "partition_data": [{"index": index, "records": records}]}]
        return ask("produce", version, acks=acks, timeout=5_000, topic_data=rows)

    for version in (3, 7, 8, 9, 12):
        await write(version, batch(2))
    await write(9, batch(), index=5)
    await write(9, batch(), name="nobody")
    await write(9, batch()[:-1])
    await write(9, batch() + batch())
    await write(9, batch(), acks=2)
    await write(9, batch(attributes=0x20))
    broken = bytearray(batch())
    broken[-1] ^= 1
    await write(9, bytes(broken))
    for version in (1, 5, 7, 11):
        for at in (-1, -2, -3, 0, NOW, NOW + 100_000, -9):
            rows = [{"partition_index": index, "current_leader_epoch": -1, "timestamp": at} for index in (0, 1, 9)]
            await ask("list_offsets", version, replica_id=-1, topics=[{"name": "orders", "partitions": rows}])
    for version in (4, 7, 12):
        for offset in (0, 3, 10, 11, -1):
            part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 200, "current_leader_epoch": -1}
            asked = [{"topic": "orders", "partitions": [part]}]
            more = {"max_wait": 10, "min_bytes": 1, "max_bytes": 10_000, "replica_id": -1, "session_epoch": -1}
            await ask("fetch", version, topics=asked, **more)
    part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 200, "current_leader_epoch": 9}
    await ask("fetch", 12, topics=[{"topic": "orders", "partitions": [part]}], max_wait=1, session_epoch=-1)
    for epoch in (0, 1, -1):
        rows = [{"partition": 0, "leader_epoch": epoch, "current_leader_epoch": -1}]
        await ask("offset_for_leader_epoch", 4, replica_id=-1, topics=[{"topic": "orders", "partitions": rows}])
    rows = [{"partition_index": 0, "offset": 2}, {"partition_index": 0, "offset": 99}, {"partition_index": 7}]
    for row in rows:
        await ask("delete_records", 2, topics=[{"name": "orders", "partitions": [row]}], timeout=5_000)


async def classic(ask: Ask) -> None:
    for version in range(10):
        group = f"classic-{version}"
        join: dict[str, Any] = {
            "group_id": group, "session_timeout": 10_000, "rebalance_timeout": 10_000, "member_id": "",
            "protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"\x00\x01"}],
        }  # fmt: skip
        joined = await ask("join_group", version, **join)
        member = joined.member_id
        if version >= 4:
            joined = await ask("join_group", version, **{**join, "member_id": member})
        who = {"group_id": group, "generation_id": joined.generation_id, "member_id": member}
        v = min(version, 5)
        mine = [{"member_id": member, "assignment": b"mine"}]
        named = {"protocol_type": "consumer", "protocol_name": "range"}
        await ask("heartbeat", min(version, 4), **who)
        await ask("sync_group", v, **who, **named, assignments=mine)
        await ask("sync_group", v, **{**who, "generation_id": 7}, **named, assignments=())
        await ask("heartbeat", min(version, 4), **who)
        await ask("heartbeat", min(version, 4), **{**who, "member_id": "nobody"})
        await ask("describe_groups", min(version, 6), groups=(group, "nobody"))
        rows = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 3}]},
                {"name": "nobody", "partitions": [{"partition_index": 0, "committed_offset": 3}]}]  # fmt: skip
        at = {"generation_id_or_member_epoch": joined.generation_id, "member_id": member, "group_id": group}
        await ask("offset_commit", max(2, version), topics=rows, **at)
        await ask("offset_commit", max(2, version), topics=rows, **{**at, "generation_id_or_member_epoch": 9})
        some = [{"name": "orders", "partition_indexes": (0, 1)}, {"name": "nobody", "partition_indexes": (0,)}]
        if version < 8:
            await ask("offset_fetch", max(1, version), group_id=group, topics=some)
            if version >= 2:
                await ask("offset_fetch", version, group_id=group, topics=None)
        else:
            await ask("offset_fetch", version, groups=[{"group_id": group, "topics": some}, {"group_id": "nobody"}])
        await ask("delete_groups", min(version, 3), groups_names=(group, "nobody"))
        if version >= 3:
            left = [{"member_id": member}, {"member_id": "nobody"}]
            await ask("leave_group", v, group_id=group, members=left)
        else:
            await ask("leave_group", v, group_id=group, member_id=member)
            await ask("leave_group", v, group_id=group, member_id="nobody")
        await ask("describe_groups", min(version, 6), groups=(group,))
        gone = [{"name": "orders", "partitions": [{"partition_index": 0}, {"partition_index": 9}]}]
        await ask("offset_delete", 0, group_id=group, topics=gone)
        await ask("offset_delete", 0, group_id="nobody", topics=gone)
        await ask("delete_groups", min(version, 3), groups_names=(group,))
    for version in (0, 5, 9):
        for wrong in ({"group_id": ""}, {"session_timeout": 1}, {"protocols": ()}, {"protocol_type": ""}):
            await ask("join_group", version, **{**join, **wrong})


async def consumer(ask: Ask) -> None:
    for version in (0, 1):
        group = f"consumer-{version}"
        beat: dict[str, Any] = {"group_id": group, "member_id": "" if version == 0 else "me", "member_epoch": 0,
                                "rebalance_timeout": 5_000, "topic_partitions": ()}  # fmt: skip
        for wrong in ({"group_id": ""}, {"member_epoch": -3}, {"server_assignor": "nobody"}, {"instance_id": ""},
                      {"rebalance_timeout": -1}, {"subscribed_topic_names": None}):  # fmt: skip
            await ask("consumer_group_heartbeat", version, **{**beat, "subscribed_topic_names": ("orders",), **wrong})
        joined = await ask("consumer_group_heartbeat", version, **beat, subscribed_topic_names=("orders",))
        await asyncio.sleep(1.2)
        who = {"group_id": group, "member_id": joined.member_id}
        answer = await ask("consumer_group_heartbeat", version, **who, member_epoch=joined.member_epoch,
                         rebalance_timeout=-1, topic_partitions=None, subscribed_topic_names=None)  # fmt: skip
        epoch = answer.member_epoch
        await ask("consumer_group_heartbeat", version, **who, member_epoch=epoch + 5, rebalance_timeout=-1,
                  topic_partitions=None, subscribed_topic_names=None)  # fmt: skip
        await ask("consumer_group_describe", version, group_ids=(group, "nobody", ""))
        await ask("describe_groups", 6, groups=(group,))
        rows = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 3}]}]
        at = {"member_id": joined.member_id, "group_id": group}
        for each in (epoch, epoch + 1, -1):
            for api in (8, 9):
                await ask("offset_commit", api, topics=rows, **at, generation_id_or_member_epoch=each)
        some = [{"name": "orders", "partition_indexes": (0, 1)}]
        for mine in (epoch, epoch + 1):
            asked = [{"group_id": group, "member_id": joined.member_id, "member_epoch": mine, "topics": some}]
            await ask("offset_fetch", 9, groups=asked, require_stable=True)
        await ask("consumer_group_heartbeat", version, **who, member_epoch=-1, rebalance_timeout=-1)
        await ask("consumer_group_heartbeat", version, **who, member_epoch=-1, rebalance_timeout=-1)
        await ask("consumer_group_describe", version, group_ids=(group,))
        await ask("delete_groups", 2, groups_names=(group,))
    for version in range(6):
        await ask("list_groups", version, states_filter=("Stable",), types_filter=())
    for version in range(7):
        keys = {"key": "g"} if version < 4 else {"coordinator_keys": ("g", "h")}
        await ask("find_coordinator", version, **keys, key_type=0)
        if version:
            await ask("find_coordinator", version, **keys, key_type=9)


async def by_ids(ask: Ask) -> None:
    answer = await ask("metadata", 12, topics=[{"name": "orders"}], allow_auto_topic_creation=False)
    known, unknown = answer.topics[0].topic_id.bytes, b"\x07" * 16
    rows = [{"topic_id": each, "partitions": [{"partition_index": 0, "committed_offset": 2}]}
            for each in (known, unknown, bytes(16))]  # fmt: skip
    await ask("offset_commit", 10, group_id="by-ids", topics=rows, generation_id_or_member_epoch=-1)
    asked = [{"topic_id": each, "partition_indexes": (0,)} for each in (known, unknown)]
    await ask("offset_fetch", 10, groups=[{"group_id": "by-ids", "topics": asked}, {"group_id": "by-ids"}])
    for each in (known, unknown):
        rows = [{"topic_id": each, "partition_data": [{"index": 1, "records": batch()}]}]
        await ask("produce", 13, acks=-1, timeout=5_000, topic_data=rows)
        for version in (13, 16, 18):
            part = {"partition": 1, "fetch_offset": 0, "partition_max_bytes": 200, "current_leader_epoch": -1}
            asked = [{"topic_id": each, "partitions": [part]}]
            await ask("fetch", version, topics=asked, max_wait=1, min_bytes=1, max_bytes=1_000, session_epoch=-1)


async def transactions(ask: Ask) -> None:
    for version in range(6):
        await ask("init_producer_id", version, transactional_id="", transaction_timeout=5_000)
        await ask("init_producer_id", version, transactional_id="t", transaction_timeout=10**9)
    for version in (3, 4, 5):
        name = f"txn-{version}"
        for _ in range(2):
            started = await ask("init_producer_id", version, transactional_id=name, transaction_timeout=60_000)
        pid, epoch = started.producer_id, started.producer_epoch
        who = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch}
        old = {**who, "producer_epoch": epoch - 1}
        txn = {f"v3_and_below_{key}": value for key, value in who.items()}
        part = [{"name": "orders", "partitions": (0,)}]
        await ask("add_partitions_to_txn", 3, **txn, v3_and_below_topics=part)
        await ask("add_partitions_to_txn", 3, **{**txn, "v3_and_below_producer_id": 99}, v3_and_below_topics=part)
        missing = [*part, {"name": "nobody", "partitions": (0,)}]
        await ask("add_partitions_to_txn", 3, **txn, v3_and_below_topics=missing)
        for sequence in (0, 0, 2, 1):
            records = batch(1, (pid, epoch, sequence), 0x10)
            rows = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
            await ask("produce", 9, transactional_id=name, acks=-1, timeout=5_000, topic_data=rows)
        await ask("add_offsets_to_txn", 3, **who, group_id="in-txn")
        rows = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": version}]}]
        await ask("txn_offset_commit", 3, **who, group_id="in-txn", topics=rows)
        await ask("txn_offset_commit", 3, **old, group_id="in-txn", topics=rows)
        some = [{"group_id": "in-txn", "topics": [{"name": "orders", "partition_indexes": (0,)}]}]
        await ask("offset_fetch", 8, groups=some, require_stable=True)
        part_of = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
        for isolation in (0, 1):
            await ask("list_offsets", 7, replica_id=-1, isolation_level=isolation,
                      topics=[{"name": "orders", "partitions": part_of}])  # fmt: skip
        await ask("end_txn", 3, **old, committed=True)
        await ask("end_txn", 3, **who, committed=version != 4)
        await ask("end_txn", 3, **who, committed=version != 4, until=ended)
        await ask("end_txn", 3, **who, committed=version == 4)
        await ask("offset_fetch", 8, groups=some, require_stable=True)
        await ask("list_offsets", 7, replica_id=-1, isolation_level=1,
                  topics=[{"name": "orders", "partitions": part_of}])  # fmt: skip
    part = {"partition": 0, "fetch_offset": 2, "partition_max_bytes": 4_000, "current_leader_epoch": -1}
    answer = {"topics": [{"topic": "orders", "partitions": [part]}], "max_wait": 1, "max_bytes": 9_000}
    await ask("fetch", 12, **answer, isolation_level=1, session_epoch=-1)


async def fencing(ask: Ask) -> None:
    """A second producer of a transactional id, while the first has an open transaction."""
    for version in (3, 5):
        name = f"fenced-{version}"
        asked: dict[str, Any] = {"transactional_id": name, "transaction_timeout": 60_000, "until": ended}
        first = await ask("init_producer_id", version, **asked)
        pid, epoch = first.producer_id, first.producer_epoch
        txn = {"transactional_id": name, "producer_id": pid, "producer_epoch": epoch}
        part = [{"name": "orders", "partitions": (1,)}]
        await ask("add_partitions_to_txn", 3, **{f"v3_and_below_{key}": value for key, value in txn.items()},
                  v3_and_below_topics=part)  # fmt: skip
        rows = [{"name": "orders", "partition_data": [{"index": 1, "records": batch(1, (pid, epoch, 0), 0x10)}]}]
        await ask("produce", 9, transactional_id=name, acks=-1, timeout=5_000, topic_data=rows)
        second = await ask("init_producer_id", version, **asked)
        rows = [{"name": "orders", "partition_data": [{"index": 1, "records": batch(1, (pid, epoch, 1), 0x10)}]}]
        await ask("produce", 9, transactional_id=name, acks=-1, timeout=5_000, topic_data=rows)
        await ask("end_txn", 3, **txn, committed=True)
        mine = {"producer_id": second.producer_id, "producer_epoch": second.producer_epoch}
        for wrong in ({}, {"producer_epoch": epoch}, {"producer_id": 99}):
            await ask("init_producer_id", version, **{**asked, **mine, **wrong})
    part = {"partition": 1, "fetch_offset": 0, "partition_max_bytes": 4_000, "current_leader_epoch": -1}
    answer = {"topics": [{"topic": "orders", "partitions": [part]}], "max_wait": 1, "max_bytes": 9_000}
    await ask("fetch", 12, **answer, isolation_level=1, session_epoch=-1)


async def bumping(ask: Ask) -> None:
    """Transactions whose ends bump the epoch, and to which a write adds partitions."""
    answer = await ask("init_producer_id", 5, transactional_id="v2", transaction_timeout=60_000)
    pid, epoch = answer.producer_id, answer.producer_epoch
    for committed in (True, False):
        records = batch(1, (pid, epoch, 0), 0x10)
        rows = [{"name": "orders", "partition_data": [{"index": 1, "records": records}]}]
        await ask("produce", 12, transactional_id="v2", acks=-1, timeout=5_000, topic_data=rows)
        who = {"transactional_id": "v2", "producer_id": pid, "producer_epoch": epoch}
        offsets = [{"name": "orders", "partitions": [{"partition_index": 0, "committed_offset": 7}]}]
        await ask("txn_offset_commit", 5, **who, group_id="in-v2", topics=offsets)
        answer = await ask("end_txn", 5, **who, committed=committed)
        await ask("end_txn", 5, **who, committed=committed, until=ended)
        await ask("end_txn", 5, **who, committed=not committed)
        pid, epoch = answer.producer_id, answer.producer_epoch
    now = {"transactional_id": "v2", "producer_id": pid, "producer_epoch": epoch}
    await ask("end_txn", 5, **now, committed=True)
    await ask("end_txn", 5, **now, committed=False)
    await ask("end_txn", 5, **now, committed=False, until=ended)
    some = [{"group_id": "in-v2", "topics": [{"name": "orders", "partition_indexes": (0,)}]}]
    await ask("offset_fetch", 9, groups=some, require_stable=True)


async def settings(ask: Ask) -> None:
    def change(name: str, value: str | None, operation: int = 0, kind: int = 32, of: str = "g") -> Awaitable[Any]:
        row = {"name": name, "config_operation": operation, "value": value}
        asked = [{"resource_type": kind, "resource_name": of, "configs": [row]}]
        return ask("incremental_alter_configs", 1, resources=asked)

    await change("consumer.session.timeout.ms", "46000")
    await change("consumer.session.timeout.ms", "1")
    await change("consumer.session.timeout.ms", "x")
    await change("consumer.heartbeat.interval.ms", "6000", of="")
    await change("no.such.setting", "1")
    await change("retention.ms", "6000", kind=2, of="nobody")
    keys = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms")
    for name in ("g", "h"):
        asked = [{"resource_type": 32, "resource_name": name, "configuration_keys": keys}]
        await ask("describe_configs", 4, resources=asked)
    await ask("describe_configs", 4, resources=[{"resource_type": 2, "resource_name": "nobody"}])
    asked = [{"resource_type": 4, "resource_name": "1", "configuration_keys": ("group.min.session.timeout.ms",)}]
    await ask("describe_configs", 4, resources=asked)
    await change("consumer.session.timeout.ms", None, operation=1)


async def rest(ask: Ask) -> None:
    for version in range(7):
        if version < 6:
            await ask("delete_topics", version, topic_names=("nobody",), timeout=1_000) if version else None
        else:
            rows = [{"name": "nobody", "topic_id": bytes(16)}, {"name": None, "topic_id": b"\x07" * 16}]
            await ask("delete_topics", version, topics=rows, timeout=1_000)
            neither, both = {"name": None, "topic_id": bytes(16)}, {"name": "nobody", "topic_id": b"\x07" * 16}
            await ask("delete_topics", version, topics=[neither, both], timeout=1_000)
    await ask("sasl_handshake", 1, mechanism="PLAIN")
    for version in (0, 1, 2):
        await ask("describe_cluster", version)


SCRIPT: Final = (topics, data, classic, consumer, by_ids, transactions, fencing, bumping, settings, rest)


async def _until_served(bootstrap: str) -> None:
    """Kafka creates its own topics when they are first needed, and loads them."""
    speaker = Speaker(bootstrap, Transcript(""))
    for kind in (0, 1):
        asked: dict[str, Any] = {"coordinator_keys": ("g",), "key_type": kind}
        while (await speaker.ask("find_coordinator", 4, **asked)).coordinators[0].error_code:
            await asyncio.sleep(0.1)
    loading = (14, 15, 16)
    while (await speaker.ask("list_groups", 4)).error_code in loading:
        await asyncio.sleep(0.1)
    beat = {"generation_id": 1, "member_id": "m"}
    for name in _GROUPS:
        while (await speaker.ask("heartbeat", 0, group_id=name, **beat)).error_code in loading:
            await asyncio.sleep(0.1)
    for name in _TRANSACTIONAL:
        asked = {"transactional_id": name, "transaction_timeout": 60_000}
        while (await speaker.ask("init_producer_id", 4, **asked)).error_code:
            await asyncio.sleep(0.1)
    await speaker.close()


#: names that reach every partition of Kafka's own topics
_GROUPS: Final = tuple(f"g{at}" for at in range(40))
_TRANSACTIONAL: Final = ("t0",)


async def play(bootstrap: str, name: str) -> Transcript:
    """Run the whole script on one broker."""
    await _until_served(bootstrap)
    transcript = Transcript(name)
    for part in SCRIPT:
        speaker = Speaker(bootstrap, transcript)
        await part(speaker.ask)
        await speaker.close()
    return transcript
