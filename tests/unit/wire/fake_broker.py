"""A broker of one node with just enough APIs to be recorded: every heartbeat is answered NONE."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Container
from typing import Any

from kio.index import load_response_schema
from kio.schema.api_versions.v0.response import ApiVersion
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.response import Coordinator
from kio.schema.metadata.v9.response import MetadataResponseBroker
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i16, i32, i32Timedelta

from fencepost.protocol.kafka_names import broker_rows
from fencepost.protocol.settings import Settings
from fencepost.wire.frames import (
    API_KEYS,
    MalformedFrame,
    close,
    framed,
    read_frame,
    read_request,
    read_request_header,
    write_response,
)

HOST = "127.0.0.1"
NOW = i32Timedelta.parse(datetime.timedelta(0))


class FakeBroker:
    """A fake broker.

    - ``cluster``: the brokers of its metadata by node id, of which it is number 0 itself; it looks up coordinators at
      the last one.
    - ``unreported``: settings (Kafka's names) that it does not report.
    - ``mute``: APIs that it never answers.
    - ``port``: set once it is entered.
    - ``raw``: called first, with the bytes of a frame, and returns those of the answer. A frame that ``raw`` does not
      answer and that cannot be read closes the connection.
    - ``beat_error``: the error of every heartbeat.
    - ``seen``: each frame with its length, the number of its connection, and ``client`` or ``server``.
    """

    def __init__(
        self,
        initial_delay_ms: int = 777,
        unreported: Container[str] = (),
        mute: Container[str] = (),
    ) -> None:
        self.cluster: dict[int, FakeBroker] = {0: self}
        config = broker_rows(Settings(group_initial_rebalance_delay_ms=initial_delay_ms))
        self.config = {name: value for name, value in config if name not in unreported}
        self.mute = mute
        self.raw: Callable[[bytes], bytes | None] = lambda _: None
        self.beat_error = ErrorCode.none
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.seen: list[tuple[int, str, bytes]] = []

    async def __aenter__(self) -> FakeBroker:
        self.server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.die()

    async def die(self) -> None:
        self.server.close()
        await asyncio.gather(*[close(writer) for writer in self.writers])
        self.writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.connections += 1
        number = self.connections

        def send(answer: bytes) -> None:
            self.seen.append((number, "server", framed(answer)))
            writer.write(framed(answer))

        while (frame := await read_frame(reader, 1 << 20)) is not None:
            self.seen.append((number, "client", framed(frame)))
            if (answer := self.raw(frame)) is not None:
                send(answer)
                continue
            try:
                header = read_request_header(frame)
                request = read_request(header, frame)
            except MalformedFrame:
                await close(writer)
                return
            if header.api in self.mute:
                continue
            schema: Any = load_response_schema(header.api_key, header.api_version)
            entity = schema(**getattr(self, header.api)(request))
            send(write_response(header.correlation_id, entity))
            await writer.drain()

    def api_versions(self, request: Any) -> dict[str, Any]:
        offered = {"join_group": (0, 99), "metadata": (9, 9), "describe_configs": (4, 4), "describe_cluster": (0, 99)}
        rows = [
            ApiVersion(api_key=i16(API_KEYS[api]), min_version=i16(low), max_version=i16(high))
            for api, (low, high) in offered.items()
        ]
        return {"error_code": ErrorCode.none, "api_keys": tuple(rows)}

    def metadata(self, request: Any) -> dict[str, Any]:
        brokers = tuple(
            MetadataResponseBroker(node_id=BrokerId(number), host=HOST, port=i32(each.port))
            for number, each in self.cluster.items()
        )
        return {"throttle_time": NOW, "brokers": brokers, "topics": ()}

    def describe_configs(self, request: Any) -> dict[str, Any]:
        (resource,) = request.resources
        rows = tuple(
            DescribeConfigsResourceResult(
                name=name, value=value, read_only=True, is_sensitive=False, synonyms=(), documentation=None
            )
            for name, value in self.config.items()
        )
        result = DescribeConfigsResult(
            error_code=ErrorCode.none,
            error_message=None,
            resource_type=i8(4),
            resource_name=resource.resource_name,
            configs=rows,
        )
        return {"throttle_time": NOW, "results": (result,)}

    def find_coordinator(self, request: Any) -> dict[str, Any]:
        number, coordinator = max(self.cluster.items())
        row = Coordinator(
            key=request.coordinator_keys[0],
            node_id=BrokerId(number),
            host=HOST,
            port=i32(coordinator.port),
            error_code=ErrorCode.none,
            error_message=None,
        )
        return {"throttle_time": NOW, "coordinators": (row,)}

    def heartbeat(self, request: Any) -> dict[str, Any]:
        return {"throttle_time": NOW, "error_code": self.beat_error}
