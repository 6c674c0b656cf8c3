"""A broker for one client of the consumer protocol: it answers heartbeats from a script, and other requests so that the
client can work.

It has one topic ``t`` with three empty partitions, and another whose id cannot be resolved.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

from kio.index import load_entity_schema
from kio.schema.errors import ErrorCode
from kio.static.constants import EntityType

from fencepost.wire import frames

TOPIC, UNKNOWN = UUID(int=1), UUID(int=2)
PARTITIONS = 3
_VERSIONS = {
    "api_versions": (0, 3),
    "metadata": (10, 12),
    "find_coordinator": (4, 4),
    "consumer_group_heartbeat": (0, 1),
    "offset_fetch": (8, 8),
    "offset_commit": (8, 8),
    "list_offsets": (1, 7),
    "fetch": (4, 12),
}
_NOW = timedelta(0)
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class Beat:
    """A heartbeat that arrived: seconds since the first one, the epoch, and the reported partitions (None: no list)."""

    at: float
    epoch: int
    full: bool
    owned: dict[UUID, tuple[int, ...]] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer. ``lost``: the connection ends instead. ``held``: it is not sent before this is set."""

    epoch: int = 0
    assignment: dict[UUID, tuple[int, ...]] | None = None
    interval_ms: int = 5_000
    lost: bool = False
    held: threading.Event | None = None


Script = Callable[[int, Beat], Answer]


class ScriptedBroker:
    """Listens on loopback while it is entered.

    - ``script`` gets each heartbeat with its number, from 0.
    - ``known``: the metadata lack the topic before this is set; a client that asks after the first heartbeat waits for
      it.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._began: float | None = None
        self.port = 0
        self.known: threading.Event | None = None
        self.beats: list[Beat] = []

    def __enter__(self) -> ScriptedBroker:
        self._thread.start()
        started = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = started.result(60)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _stop(self) -> None:
        assert self._server is not None
        self._server.close()
        connections = asyncio.all_tasks() - {asyncio.current_task()}
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (frame := await frames.read_frame(reader, frames.MAX_REQUEST_BYTES)) is not None:
                header = frames.read_request_header(frame)
                version = min(header.api_version, _VERSIONS[header.api][1])  # the first request guesses
                entity = frames.read_request(header, frame)
                answer = await getattr(self, f"_{header.api}")(version, entity)
                if answer is None:
                    break
                writer.write(frames.framed(frames.write_response(header.correlation_id, answer)))
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client has disconnected, or the test is over
        finally:
            writer.close()

    async def _consumer_group_heartbeat(self, version: int, asked: Any) -> Any:
        now = time.monotonic()
        self._began = now if self._began is None else self._began
        rows = asked.topic_partitions
        beat = Beat(
            now - self._began,
            asked.member_epoch,
            asked.subscribed_topic_names is not None and asked.rebalance_timeout != timedelta(milliseconds=-1),
            None if rows is None else {row.topic_id: tuple(row.partitions) for row in rows},
        )
        number = len(self.beats)
        self.beats.append(beat)
        reply = self._script(number, beat)
        if reply.lost:
            return None
        if reply.held is not None:
            await asyncio.to_thread(reply.held.wait, _PATIENCE_S)
        schema = _schema("consumer_group_heartbeat", version)
        assignment = None
        if reply.assignment is not None:
            kinds = _kinds(schema)
            assignment = kinds.Assignment(
                topic_partitions=tuple(
                    kinds.TopicPartitions(topic_id=topic, partitions=each) for topic, each in reply.assignment.items()
                )
            )
        return schema(
            throttle_time=_NOW,
            error_code=ErrorCode.none,
            member_id=asked.member_id,
            member_epoch=reply.epoch if beat.epoch >= 0 else beat.epoch,
            heartbeat_interval=timedelta(milliseconds=reply.interval_ms),
            assignment=assignment,
        )

    async def _api_versions(self, version: int, _: Any) -> Any:
        schema = _schema("api_versions", version)
        kinds = _kinds(schema)
        rows = tuple(
            kinds.ApiVersion(api_key=frames.API_KEYS[api], min_version=first, max_version=last)
            for api, (first, last) in _VERSIONS.items()
        )
        return schema(error_code=ErrorCode.none, api_keys=rows, throttle_time=_NOW)

    async def _metadata(self, version: int, _: Any) -> Any:
        schema = _schema("metadata", version)
        kinds = _kinds(schema)
        partitions = tuple(
            kinds.MetadataResponsePartition(
                error_code=ErrorCode.none, partition_index=number, leader_id=1, leader_epoch=0, replica_nodes=(1,),
                isr_nodes=(1,), offline_replicas=(),
            )
            for number in range(PARTITIONS)
        )  # fmt: skip
        topic = kinds.MetadataResponseTopic(
            error_code=ErrorCode.none, name="t", topic_id=TOPIC, is_internal=False, partitions=partitions
        )
        hidden = self.known is not None and not self.known.is_set()
        if hidden and self.beats:
            await asyncio.to_thread(self.known.wait, _PATIENCE_S)
            hidden = False
        topics = () if hidden else (topic,)
        broker = kinds.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
        return schema(throttle_time=_NOW, brokers=(broker,), cluster_id="c", controller_id=1, topics=topics)

    async def _find_coordinator(self, version: int, asked: Any) -> Any:
        schema = _schema("find_coordinator", version)
        rows = tuple(
            _kinds(schema).Coordinator(
                key=key, node_id=1, host="127.0.0.1", port=self.port, error_code=ErrorCode.none, error_message=None
            )
            for key in asked.coordinator_keys
        )
        return schema(throttle_time=_NOW, coordinators=rows)

    async def _offset_fetch(self, version: int, asked: Any) -> Any:
        schema = _schema("offset_fetch", version)
        kinds = _kinds(schema)
        groups = tuple(
            kinds.OffsetFetchResponseGroup(
                group_id=group.group_id,
                topics=tuple(
                    kinds.OffsetFetchResponseTopics(
                        name=topic.name,
                        partitions=tuple(
                            kinds.OffsetFetchResponsePartitions(
                                partition_index=number, committed_offset=0, committed_leader_epoch=-1, metadata="",
                                error_code=ErrorCode.none,
                            )
                            for number in topic.partition_indexes
                        ),
                    )
                    for topic in group.topics or ()
                ),
                error_code=ErrorCode.none,
            )
            for group in asked.groups
        )  # fmt: skip
        return schema(throttle_time=_NOW, groups=groups)

    async def _offset_commit(self, version: int, asked: Any) -> Any:
        schema = _schema("offset_commit", version)
        kinds = _kinds(schema)
        return schema(
            throttle_time=_NOW,
            topics=tuple(
                kinds.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        kinds.OffsetCommitResponsePartition(
                            partition_index=row.partition_index, error_code=ErrorCode.none
                        )
                        for row in topic.partitions
                    ),
                )
                for topic in asked.topics
            ),
        )

    async def _list_offsets(self, version: int, asked: Any) -> Any:
        schema = _schema("list_offsets", version)
        kinds = _kinds(schema)
        return schema(
            throttle_time=_NOW,
            topics=tuple(
                kinds.ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=tuple(
                        kinds.ListOffsetsPartitionResponse(
                            partition_index=row.partition_index, error_code=ErrorCode.none, timestamp=-1, offset=0
                        )
                        for row in topic.partitions
                    ),
                )
                for topic in asked.topics
            ),
        )

    async def _fetch(self, version: int, _: Any) -> Any:
        """Return an answer without changes, after a while."""
        await asyncio.sleep(0.5)
        return _schema("fetch", version)(throttle_time=_NOW, error_code=ErrorCode.none, session_id=0, responses=())


def _schema(api: str, version: int) -> Any:
    return load_entity_schema(api, version, EntityType.response)


def _kinds(schema: Any) -> Any:
    """Return the module that has the rows of a message."""
    return import_module(schema.__module__)
