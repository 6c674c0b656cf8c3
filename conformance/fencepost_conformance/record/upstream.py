"""What a recorder asks the broker before it begins: is it one node, and which settings does its coordinator have?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from kio.index import load_request_schema
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.static.primitive import i8

from fencepost.protocol.settings import Settings

from ..trace.lines import Setting
from ..wire.frames import (
    API_KEYS,
    MAX_RESPONSE_BYTES,
    MalformedFrame,
    RequestHeader,
    close,
    framed,
    read_frame,
    read_response,
    write_request,
)
from .addresses import Address, SeveralBrokers

#: Broker configuration -> field of Settings (G-CFG-01…04, 10…14, 25, 30, 31).
_CONFIGS = {
    "group.min.session.timeout.ms": "group_min_session_timeout_ms",
    "group.max.session.timeout.ms": "group_max_session_timeout_ms",
    "group.initial.rebalance.delay.ms": "group_initial_rebalance_delay_ms",
    "group.max.size": "group_max_size",
    "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    "group.consumer.session.timeout.ms": "group_consumer_session_timeout_ms",
    "group.consumer.min.session.timeout.ms": "group_consumer_min_session_timeout_ms",
    "group.consumer.max.session.timeout.ms": "group_consumer_max_session_timeout_ms",
    "group.consumer.heartbeat.interval.ms": "group_consumer_heartbeat_interval_ms",
    "group.consumer.min.heartbeat.interval.ms": "group_consumer_min_heartbeat_interval_ms",
    "group.consumer.max.heartbeat.interval.ms": "group_consumer_max_heartbeat_interval_ms",
    "group.consumer.max.size": "group_consumer_max_size",
    "group.consumer.assignors": "group_consumer_assignors",
    "group.consumer.migration.policy": "group_consumer_migration_policy",
    "group.consumer.assignment.interval.ms": "group_consumer_assignment_interval_ms",
    "group.consumer.min.assignment.interval.ms": "group_consumer_min_assignment_interval_ms",
    "group.consumer.max.assignment.interval.ms": "group_consumer_max_assignment_interval_ms",
}
_BROKER_RESOURCE = 4
_METADATA_VERSION, _CONFIGS_VERSION = 9, 4  # every broker since Kafka 2.6 has them


@dataclass(frozen=True, slots=True)
class Upstream:
    """``settings`` holds what differs from Kafka's defaults; ``known`` is false if the broker would not tell."""

    node_id: int
    settings: dict[str, Setting]
    known: bool


class _Session:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._count = reader, writer, 0

    async def ask(self, api: str, version: int, **fields: Any) -> Any:
        self._count += 1
        header = RequestHeader(API_KEYS[api], version, self._count, "fencepost-record")
        request = load_request_schema(API_KEYS[api], version)(**fields)
        self._writer.write(framed(write_request(header, request)))
        await self._writer.drain()
        frame = await read_frame(self._reader, MAX_RESPONSE_BYTES)
        if frame is None:
            raise MalformedFrame(f"the connection was closed instead of answering {api} v{version}")
        return read_response(api, version, frame)


async def inspect(address: Address) -> Upstream:
    """Ask the broker. Raises OSError, MalformedFrame (not a Kafka broker, or too old), or SeveralBrokers."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        session = _Session(reader, writer)
        metadata = await session.ask(
            "metadata",
            _METADATA_VERSION,
            topics=(),
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        if len(metadata.brokers) != 1:
            raise SeveralBrokers(f"the cluster has {len(metadata.brokers)} brokers; a recording covers exactly one")
        node = metadata.brokers[0].node_id
        settings, known = await _settings(session, int(node))
        return Upstream(int(node), settings, known)
    finally:
        await close(writer)


def _value(name: str, text: str) -> Setting:
    """The text that a broker tells, as a header holds it."""
    usual = getattr(Settings(), name)
    if isinstance(usual, tuple):
        return tuple(part.strip() for part in text.split(","))
    return text.lower() if isinstance(usual, str) else int(text)


async def _settings(session: _Session, node: int) -> tuple[dict[str, Setting], bool]:
    resource = DescribeConfigsResource(
        resource_type=i8(_BROKER_RESOURCE), resource_name=str(node), configuration_keys=tuple(_CONFIGS)
    )
    try:
        answer = await session.ask("describe_configs", _CONFIGS_VERSION, resources=(resource,))
    except MalformedFrame:
        return {}, False
    (result,) = answer.results
    if result.error_code.value != 0:
        return {}, False
    told = {
        _CONFIGS[row.name]: _value(_CONFIGS[row.name], row.value)
        for row in result.configs
        if row.name in _CONFIGS and row.value
    }
    usual = Settings()
    return {name: value for name, value in told.items() if value != getattr(usual, name)}, True
