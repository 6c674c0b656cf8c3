"""Scenes with a broker of groups, and a store that is slow or fails on request of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fencepost.aio import GroupBroker
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.store import MemoryStore, Store

QUICK = Settings(group_min_session_timeout_ms=10, group_initial_rebalance_delay_ms=20)
TOPIC = Topic("t", bytes(15) + b"\1", 4)


class SlowStore(MemoryStore):
    """Let appends land, or fail, when the test calls ``land``. As every store must, it rejects appends that were queued
    before a failure was reported."""

    def __init__(self) -> None:
        super().__init__(4)
        self.slow = False
        self.asked: list[tuple[int, Sequence[Record], int, asyncio.Future[None]]] = []

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        if not self.slow:
            return super().append(partition, records, leader_epoch=leader_epoch)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.asked.append((partition, records, leader_epoch, done))
        return done

    async def land(self, failure: Exception | None = None) -> None:
        asked, self.asked = self.asked, []
        for partition, records, epoch, done in asked:
            if failure is not None:
                done.set_exception(failure)
                continue
            ended = super().append(partition, records, leader_epoch=epoch)
            done.set_result(await ended)
        for _ in range(3):
            await asyncio.sleep(0)


def play(scene: Callable[[GroupBroker], Awaitable[None]], store: Store | None = None, **options: Any) -> None:
    async def main() -> None:
        given = MemoryStore(4) if store is None else store
        async with asyncio.timeout(30), GroupBroker(given, QUICK, topics=[TOPIC], **options) as groups:
            await scene(groups)

    asyncio.run(main())


def commit(group: str, offset: int, partition: int = 0) -> o.OffsetCommitRequest:
    rows = (o.OffsetCommitRequestPartition(partition, committed_offset=offset),)
    return o.OffsetCommitRequest(group, topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),))


async def committed(groups: GroupBroker, group: str, offset: int) -> ErrorCode:
    answer = await groups.commit_offsets(commit(group, offset))
    return answer.topics[0].partitions[0].error_code


def offsets(groups: GroupBroker, group: str) -> list[int]:
    return [row.offset for row in groups.offsets_view(group).committed]


def join(group: str, member: str = "", session: int = 60_000) -> m.JoinGroupRequest:
    return m.JoinGroupRequest(
        group,
        session_timeout_ms=session,
        rebalance_timeout_ms=60_000,
        member_id=member,
        protocol_type="work",
        protocols=(m.Protocol("even", b""),),
    )


async def member(groups: GroupBroker, group: str) -> str:
    joined = await groups.join(join(group, (await groups.join(join(group))).member_id))
    assert joined.generation_id == 1
    share = (m.SyncGroupAssignment(joined.member_id, b"all"),)
    synced = await groups.sync(
        m.SyncGroupRequest(
            group,
            generation_id=1,
            member_id=joined.member_id,
            protocol_type="work",
            protocol_name="even",
            assignments=share,
        )
    )
    assert synced.assignment == b"all"
    return joined.member_id
