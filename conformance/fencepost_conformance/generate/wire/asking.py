"""Questions to a broker before a trace is played on it: its API versions, the coordinator of the groups, and whether
that coordinator is ready."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as om
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.profiles import NEWEST_KAFKA
from fencepost.work.link import Unsupported
from fencepost_model.classic.scala import KAFKA_3_9

from ...common.addresses import Address
from ...common.errors import CannotRun, NotOffered
from ...traces.api_names import api_name
from ...traces.wire.questions import Questions
from ..plan import GroupProtocol

#: by API number, the lowest and highest version that broker and suite share
Ranges: TypeAlias = Mapping[int, tuple[int, int]]

_CLASSIC: Final[dict[int, type]] = {
    11: m.JoinGroupRequest, 12: m.HeartbeatRequest, 13: m.LeaveGroupRequest, 14: m.SyncGroupRequest,
}  # fmt: skip
_CONSUMER: Final[dict[int, type]] = {68: c.ConsumerGroupHeartbeatRequest}
#: requests of clients, by protocol
CLIENTS: Final[dict[GroupProtocol, dict[int, type]]] = {
    GroupProtocol.CLASSIC: _CLASSIC,
    GroupProtocol.CONSUMER: _CONSUMER,
    GroupProtocol.MIXED: _CLASSIC | _CONSUMER,
}
#: requests of administrators of groups, and of all clients about offsets; a broker may lack them
_ADMIN: Final[dict[int, type]] = {
    15: m.DescribeGroupsRequest, 16: m.ListGroupsRequest, 42: m.DeleteGroupsRequest,
    8: om.OffsetCommitRequest, 9: om.OffsetFetchRequest, 28: om.TxnOffsetCommitRequest, 47: om.OffsetDeleteRequest,
}  # fmt: skip
_DESCRIBE: Final[dict[int, type]] = {69: c.ConsumerGroupDescribeRequest}
ADMINISTRATORS: Final[dict[GroupProtocol, dict[int, type]]] = {
    GroupProtocol.CLASSIC: _ADMIN,
    GroupProtocol.CONSUMER: _DESCRIBE | _ADMIN,
    GroupProtocol.MIXED: _DESCRIBE | _ADMIN,
}

FIND_COORDINATOR, METADATA = 10, 3
#: APIs of transactions apart from groups; the first and last versions that the suite supports
INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN = 22, 25, 26
_TRANSACTIONS: Final = {INIT_PRODUCER_ID: (0, 6), ADD_OFFSETS_TO_TXN: (0, 4), END_TXN: (0, 5)}
#: APIs that create, enlarge and delete topics (answers to CreateTopics v7 contain topic ids, which the checker needs)
CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
_TOPICS: Final = {CREATE_TOPICS: (0, 7), DELETE_TOPICS: (0, 5), CREATE_PARTITIONS: (0, 2)}

_HEARTBEAT: Final = 68
#: the versions of ConsumerGroupHeartbeat in Kafka before KIP-848 was released
_EARLY_ACCESS: Final = (0, 0)
_FOR_GROUPS, _FOR_TRANSACTIONS = 0, 1
#: how often a coordinator that is not ready is asked again, and after how many seconds
_TRIES, _AGAIN_S = 200, 0.1
_NOT_YET: Final = frozenset(
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A broker's offer. ``ranges``: APIs of groups, offsets and transactions. ``topics``: APIs that change topics.
    ``absent``: names of APIs that it lacks, so that they are not tested. ``nodes``: number of brokers in its cluster.
    ``locates``: it answers FindCoordinator. ``metadata``: its versions of Metadata. ``given``: existing topics for the
    traces to use."""

    ranges: Ranges
    topics: Ranges
    nodes: int
    absent: tuple[str, ...] = ()
    locates: bool = True
    metadata: tuple[int, int] = (0, 0)
    given: tuple[str, ...] = ()


def offer(supported: Ranges, protocol: GroupProtocol, where: Address, nodes: int, given: Sequence[str] = ()) -> Offer:
    """Return the versions that broker and suite share. ``given``: existing topics for the traces to use.

    Raises ``NotOffered`` if an API is missing that the protocol needs."""
    needed = CLIENTS[protocol]
    known = {key: m.VERSIONS[kind] for key, kind in (needed | ADMINISTRATORS[protocol]).items()} | _TRANSACTIONS
    ranges = {key: bounds for key, spoken in known.items() if (bounds := _shared(supported, key, spoken)) is not None}
    topics = {key: bounds for key, spoken in _TOPICS.items() if (bounds := _shared(supported, key, spoken)) is not None}
    for key in needed:
        if key not in ranges:
            raise NotOffered(_missing(supported, key, known[key], protocol, where))
    if _HEARTBEAT in needed:
        if supported[_HEARTBEAT] == _EARLY_ACCESS:
            raise NotOffered(
                f"{where} offers ConsumerGroupHeartbeat v0 only (KIP-848 in early access, as in Kafka 3.7 to 3.9); "
                f"--protocol {protocol} needs v1"
            )
        if CREATE_TOPICS not in topics and not given:
            raise NotOffered(
                f"{where} does not offer CreateTopics, which --protocol {protocol} needs; "
                "or name existing topics with --topic NAME"
            )
    absent = [key for key in known if key not in ranges]
    absent += [key for key in _TOPICS if key not in topics and not given]
    absent += [FIND_COORDINATOR] if FIND_COORDINATOR not in supported else []
    if absent and FIND_COORDINATOR in absent and nodes > 1:
        raise NotOffered(f"{where} does not offer FindCoordinator, which a cluster of {nodes} brokers needs")
    metadata = supported.get(METADATA, (0, 0))
    return Offer(
        ranges, topics, nodes, tuple(map(api_name, absent)), FIND_COORDINATOR in supported, metadata, tuple(given)
    )


def _shared(supported: Ranges, key: int, known: tuple[int, int]) -> tuple[int, int] | None:
    low, high = supported.get(key, (1, 0))
    bounds = max(low, known[0]), min(high, known[1])
    return bounds if bounds[0] <= bounds[1] else None


def _missing(supported: Ranges, key: int, known: tuple[int, int], protocol: GroupProtocol, where: Address) -> str:
    if key not in supported:
        return f"{where} does not offer {api_name(key)}, which --protocol {protocol} needs"
    (low, high), (first, last) = supported[key], known
    return f"{where} offers {api_name(key)} v{low}-v{high}; --protocol {protocol} needs one of v{first}-v{last}"


def default_profile(supported: Ranges) -> str:
    """Return the default profile for a broker with these versions.

    Kafka 3.7 to 3.9 have KIP-848 in early access, and the Scala coordinator by default."""
    early = supported.get(_HEARTBEAT) == _EARLY_ACCESS
    return KAFKA_3_9.name if early else NEWEST_KAFKA.name


async def coordinator_of(broker: Questions, group_id: str, where: Address) -> Address:
    """Return the coordinator of a group. Repeats FindCoordinator until it names a broker, since a new cluster creates
    the offsets topic at the first request (F-FIND-02). Raises ``CannotRun``."""
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
    """Wait until the coordinator has loaded the groups' log, so that traces test groups. Raises ``CannotRun``."""
    for name in groups:
        for _ in range(_TRIES):
            if await _state_of(broker, name) not in _NOT_YET:
                break
            await asyncio.sleep(_AGAIN_S)
        else:
            raise CannotRun(f"{where} does not become the coordinator of its groups")


async def _state_of(broker: Questions, group_id: str) -> int:
    """Return the error code of the first of these requests that the broker offers; 0 if it offers none. None of them
    creates a group: descriptions, and heartbeats of an unknown member."""
    nobody = {"group_id": group_id, "member_id": "nobody"}
    with suppress(Unsupported):
        return _code(await broker.ask("describe_groups", 0, 4, groups=(group_id,)))
    with suppress(Unsupported):
        return _code(await broker.ask("consumer_group_describe", 0, 1, group_ids=(group_id,)))
    with suppress(Unsupported):
        return _code(await broker.ask("heartbeat", 0, 3, generation_id=-1, **nobody))
    with suppress(Unsupported):
        return _code(await broker.ask("consumer_group_heartbeat", 0, 1, member_epoch=c.LEAVE_EPOCH, **nobody))
    return 0


def _code(answer: Any) -> int:
    """Return the error code of an answer, or of its first group."""
    rows = getattr(answer, "groups", None)
    row = answer if rows is None else next(iter(rows), None)
    return 0 if row is None else int(row.error_code.value)


async def transaction_coordinator(
    broker: Questions, transactional_id: str, where: Address, offer: Offer
) -> Address | None:
    """Return the coordinator of a transactional id; None if the broker names none."""
    if not offer.locates:
        return where
    for _ in range(_TRIES):
        try:
            found = await broker.ask("find_coordinator", 1, 3, key=transactional_id, key_type=_FOR_TRANSACTIONS)
        except Unsupported:
            return None
        if found.error_code.value == 0:
            return where if offer.nodes == 1 else Address(str(found.host), int(found.port))
        await asyncio.sleep(_AGAIN_S)
    return None
