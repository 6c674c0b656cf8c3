"""What a recorder asks the broker before it begins: is it one node, and which settings does its coordinator have?"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kio.index import load_request_schema
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.static.primitive import i8

from fencepost.server.settings import FIELDS, value_of
from fencepost.server.wire.frames import (
    API_KEYS,
    ASK_S,
    MalformedFrame,
    NoAnswer,
    RequestHeader,
    close,
    connect,
    framed,
    read_answer,
    read_response,
    write_request,
)

from ..trace.lines import Setting
from .addresses import Address, SeveralBrokers

_BROKER_RESOURCE = 4
_METADATA_VERSION, _CONFIGS_VERSION = 9, 4  # every broker since Kafka 2.6 has them


@dataclass(frozen=True, slots=True)
class Upstream:
    """``settings``: the fields of ``Settings`` that the broker told; none if it does not tell."""

    node_id: int
    settings: dict[str, Setting]


class _Session:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._count = reader, writer, 0

    async def ask(self, api: str, version: int, **fields: Any) -> Any:
        self._count += 1
        header = RequestHeader(API_KEYS[api], version, self._count, "fencepost-record")
        request = load_request_schema(API_KEYS[api], version)(**fields)
        self._writer.write(framed(write_request(header, request)))
        await self._writer.drain()
        frame = await read_answer(self._reader, api, ASK_S)
        if frame is None:
            raise MalformedFrame(f"the connection was closed instead of answering {api} v{version}")
        return read_response(api, version, frame)


async def inspect(address: Address) -> Upstream:
    """Ask the broker. Raises OSError, MalformedFrame (not a Kafka broker, too old, or mute), or SeveralBrokers."""
    reader, writer = await connect(address.host, address.port)
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
        return Upstream(int(node), await _settings(session, int(node)))
    finally:
        await close(writer)


async def _settings(session: _Session, node: int) -> dict[str, Setting]:
    resource = DescribeConfigsResource(
        resource_type=i8(_BROKER_RESOURCE), resource_name=str(node), configuration_keys=tuple(FIELDS)
    )
    try:
        answer = await session.ask("describe_configs", _CONFIGS_VERSION, resources=(resource,))
    except NoAnswer:
        raise
    except MalformedFrame:
        return {}
    told: dict[str, Setting] = {}
    for result in answer.results:
        for row in result.configs if result.error_code.value == 0 else ():
            if row.name in FIELDS and row.value:
                with suppress(ValueError):  # said in a way that is not Kafka's: as good as not told
                    told[FIELDS[row.name]] = value_of(row.name, row.value)
    return told
