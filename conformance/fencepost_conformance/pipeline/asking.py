"""Questions to a broker before a trace is played on it: which versions it has, and whether its coordinator is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from kio.index import load_request_schema
from kio.schema.types import GroupId
from kio.static.primitive import i8

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.server.wire.frames import (
    API_KEYS,
    ASK_S,
    MalformedFrame,
    NoAnswer,
    RequestHeader,
    connect,
    framed,
    read_answer,
    read_response,
    write_request,
)

from ..console import CannotRun
from ..generate.plan import GroupProtocol
from ..targets.registry import TargetName
from ..trace.lines import API_OF_KEY

#: of each API, by its number, the lowest and highest version that broker and suite share
Ranges: TypeAlias = Mapping[int, tuple[int, int]]

_ADMIN: Final[dict[int, type]] = {
    15: m.DescribeGroupsRequest, 16: m.ListGroupsRequest, 42: m.DeleteGroupsRequest,
}  # fmt: skip
#: what the clients of a protocol, and who forges their requests, send
REQUESTS: Final[dict[GroupProtocol, dict[int, type]]] = {
    GroupProtocol.CLASSIC: {
        11: m.JoinGroupRequest, 12: m.HeartbeatRequest, 13: m.LeaveGroupRequest, 14: m.SyncGroupRequest, **_ADMIN,
    },
    GroupProtocol.CONSUMER: {68: c.ConsumerGroupHeartbeatRequest, 69: c.ConsumerGroupDescribeRequest, **_ADMIN},
}  # fmt: skip


async def ask(target: TargetName, api: str, version: int, **fields: Any) -> Any:
    """One question on a connection of its own. Raises ``MalformedFrame`` for whoever is no Kafka broker."""
    reader, writer = await connect(target.host, target.port)
    try:
        header = RequestHeader(API_KEYS[api], version, 1, "fencepost")
        writer.write(framed(write_request(header, load_request_schema(API_KEYS[api], version)(**fields))))
        await writer.drain()
        frame = await read_answer(reader, api, ASK_S)
    except NoAnswer as mute:
        raise MalformedFrame(f"{mute}; is this a Kafka broker?") from None
    finally:
        writer.close()
    if frame is None:
        raise MalformedFrame("the connection was closed; is this a Kafka broker?")
    return read_response(api, version, frame)


async def versions(target: TargetName, protocol: GroupProtocol) -> Ranges:
    """The versions of each API that is played. Raises ``CannotRun`` if one is missing."""
    answer = await ask(target, "api_versions", 0)
    told = {int(row.api_key): (int(row.min_version), int(row.max_version)) for row in answer.api_keys}
    ranges = {}
    for key, kind in REQUESTS[protocol].items():
        low, high = told.get(key, (1, 0))
        first, last = m.VERSIONS[kind]
        ranges[key] = max(low, first), min(high, last)
        if ranges[key][0] > ranges[key][1]:
            raise CannotRun(f"{target.host}:{target.port} does not offer {API_OF_KEY[key]} in a version known here")
    return ranges


async def coordinator_ready(target: TargetName, groups: Sequence[str]) -> None:
    """A new broker makes the log of its coordinator when somebody asks for it (F-FIND-02), and then loads it. Waits for
    both, so that traces are about groups."""
    waiting = list(groups)
    for _ in range(200):
        found = await ask(target, "find_coordinator", 3, key=waiting[0], key_type=i8(0))
        told = await ask(target, "describe_groups", 0, groups=tuple(GroupId(name) for name in waiting))
        waiting = [row.group_id for row in told.groups if row.error_code.value != 0]
        if not waiting and found.error_code.value == 0:
            return
        await asyncio.sleep(0.1)
        waiting = waiting or list(groups)
    raise CannotRun(f"{target.host}:{target.port} does not become coordinator of its groups")
