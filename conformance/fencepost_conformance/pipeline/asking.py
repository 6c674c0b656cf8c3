"""Questions to a broker before a trace is played on it: which versions it has, which broker coordinates the groups, and
whether that is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.work.link import Unsupported

from ..console import CannotRun
from ..generate.plan import GroupProtocol
from ..record.addresses import Address
from ..trace.lines import API_OF_KEY
from ..wire.questions import Questions

#: of each API, by its number, the lowest and highest version that broker and suite share
Ranges: TypeAlias = Mapping[int, tuple[int, int]]

_CLASSIC: Final[dict[int, type]] = {
    11: m.JoinGroupRequest, 12: m.HeartbeatRequest, 13: m.LeaveGroupRequest, 14: m.SyncGroupRequest,
}  # fmt: skip
_CONSUMER: Final[dict[int, type]] = {68: c.ConsumerGroupHeartbeatRequest}
#: what the clients of a protocol send
CLIENTS: Final[dict[GroupProtocol, dict[int, type]]] = {
    GroupProtocol.CLASSIC: _CLASSIC,
    GroupProtocol.CONSUMER: _CONSUMER,
    GroupProtocol.MIXED: _CLASSIC | _CONSUMER,
}
#: what administrators of groups send; a broker may do without
_ADMIN: Final[dict[int, type]] = {
    15: m.DescribeGroupsRequest, 16: m.ListGroupsRequest, 42: m.DeleteGroupsRequest,
}  # fmt: skip
_DESCRIBE: Final[dict[int, type]] = {69: c.ConsumerGroupDescribeRequest}
ADMINISTRATORS: Final[dict[GroupProtocol, dict[int, type]]] = {
    GroupProtocol.CLASSIC: _ADMIN,
    GroupProtocol.CONSUMER: _DESCRIBE | _ADMIN,
    GroupProtocol.MIXED: _DESCRIBE | _ADMIN,
}

#: with which topics are made, made larger and deleted; the first versions and the last that are spoken here (the answer
#: to the seventh tells the ids of topics, so that the checker knows them)
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
_TOPICS: Final = {CREATE_TOPICS: (0, 7), DELETE_TOPICS: (0, 5), CREATE_PARTITIONS: (0, 2)}

_FOR_GROUPS: Final = 0
#: how often a coordinator that is not ready is asked again, and after how many seconds
_TRIES, _AGAIN_S = 200, 0.1
_NOT_YET: Final = frozenset(
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a broker has of what is played. ``topics``: of what changes topics. ``absent``: names of APIs that it
    does without, so that nobody asks. ``nodes``: how many brokers its cluster has."""

    ranges: Ranges
    topics: Ranges
    nodes: int
    absent: tuple[str, ...] = ()


def offer(told: Ranges, protocol: GroupProtocol, where: Address, nodes: int) -> Offer:
    """From the versions that a broker told. Raises ``CannotRun`` if what clients cannot do without is missing."""
    shared, absent = {}, []
    for key, kind in (CLIENTS[protocol] | ADMINISTRATORS[protocol]).items():
        low, high = told.get(key, (1, 0))
        first, last = m.VERSIONS[kind]
        bounds = max(low, first), min(high, last)
        if bounds[0] <= bounds[1]:
            shared[key] = bounds
        elif key in CLIENTS[protocol]:
            raise CannotRun(f"{where} does not offer {API_OF_KEY[key]} in a version known here")
        else:
            absent.append(API_OF_KEY[key])
    topics = {
        key: (max(low, first), min(high, last))
        for key, (first, last) in _TOPICS.items()
        for low, high in [told.get(key, (1, 0))]
        if max(low, first) <= min(high, last)
    }
    return Offer(shared, topics, nodes, tuple(absent))


def absent_words(absent: Sequence[str]) -> str:
    """What a broker does without, in a line; empty if nothing."""
    return f"the broker does not offer {', '.join(absent)}: nobody asked for it" if absent else ""


async def coordinator_of(broker: Questions, group_id: str, where: Address) -> Address:
    """FindCoordinator, again and again until somebody is: a new broker makes the log of its coordinator when it is
    asked for (F-FIND-02). Raises ``CannotRun``."""
    for _ in range(_TRIES):
        try:
            found = await broker.ask("find_coordinator", 0, 3, key=group_id, key_type=_FOR_GROUPS)
        except Unsupported as unknown:
            raise CannotRun(f"{where}: {unknown}") from None
        if found.error_code.value == 0:
            return Address(str(found.host), int(found.port))
        await asyncio.sleep(_AGAIN_S)
    raise CannotRun(f"{where} names no coordinator of group {group_id}: {found.error_code.name}")


async def coordinator_ready(broker: Questions, groups: Sequence[str], where: Address) -> None:
    """Waits until the coordinator has loaded the groups' log, so that traces are about groups. Raises ``CannotRun``."""
    for name in groups:
        for _ in range(_TRIES):
            if await _state_of(broker, name) not in _NOT_YET:
                break
            await asyncio.sleep(_AGAIN_S)
        else:
            raise CannotRun(f"{where} does not become coordinator of its groups")


async def _state_of(broker: Questions, group_id: str) -> int:
    """What is answered to a description of the group, or to a heartbeat of nobody where there are no descriptions."""
    try:
        told = await broker.ask("describe_groups", 0, 4, groups=(group_id,))
    except Unsupported:
        beat = await broker.ask("heartbeat", 0, 3, group_id=group_id, generation_id=-1, member_id="nobody")
        return int(beat.error_code.value)
    return int(told.groups[0].error_code.value) if told.groups else 0
