"""A program that is killed: it serves random traffic of groups over a store in a file, and prints the requests to the
store, their results, and the answers.

It forks a child for each line of its input, ``{"path": ..., "seed": ..., "fault": ...}``, so that each starts quickly,
and prints when the child has ended. The output of a killed child remains in the pipe. ``fault`` breaks the store in a
named way.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from fencepost.aio import GroupBroker
from fencepost.log import Outlived, outlived
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.store import AppendError, SQLiteStore, sql, tables
from fencepost.store.packed import Run, encoded

PARTITIONS = 3
TOPICS = (Topic("t", bytes(15) + b"\1", 4), Topic("x", bytes(15) + b"\2", 4))
#: On a busy machine a write may take seconds. A commit that is answered too late counts as rejected here, although its
#: record is in the log, and a member whose session ends is gone without a line: neither may happen.
_NEVER_MS = 3_600_000
SETTINGS = Settings(
    group_min_session_timeout_ms=10,
    group_initial_rebalance_delay_ms=0,
    offsets_commit_timeout_ms=_NEVER_MS,
    group_consumer_session_timeout_ms=_NEVER_MS,
    group_consumer_max_session_timeout_ms=_NEVER_MS,
)
FULL, ROOM = 1, 1_000_000  #: pages; no fewer than the file has


def report(*words: Any) -> None:
    """Write a line; it is completely in the pipe when this returns."""
    os.write(1, json.dumps(words).encode() + b"\n")


class ReportingStore(SQLiteStore):
    """A store that prints each request before it handles it, and the result afterwards."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, PARTITIONS)
        self._numbers = count()
        self._flying: dict[int, asyncio.Future[None]] = {}

    def append(self, partition: int, records: Sequence[Record], *, leader_epoch: int) -> asyncio.Future[None]:
        self._report_landed()
        number = next(self._numbers)
        report("append", number, partition, [text for run in encoded(records) for text in _texts(run)])
        done = super().append(partition, records, leader_epoch=leader_epoch)
        self._flying[number] = done
        done.add_done_callback(lambda _: self._report_landed())
        return done

    def _report_landed(self) -> None:
        """The result is printed before the next append, which may be requested before any caller is notified."""
        for number, done in list(self._flying.items()):
            if done.done():
                del self._flying[number]
                report("landed", number, done.exception() is None)

    async def compact(self, partition: int) -> int:
        gone = await super().compact(partition)
        report("compacted", gone)
        return gone

    async def disk(self, pages: int) -> None:
        """The disk is full, or has room again."""
        connection: Any = self._connection
        await self._open().alone(lambda: connection.run(f"PRAGMA max_page_count = {pages}"))


def _texts(run: Run) -> list[list[Any]]:
    return [[*run.header, key.hex(), None if value is None else value.hex()] for key, value in run.pairs]


class Traffic:
    """Run clients of a broker, each at random, until the end."""

    def __init__(self, groups: GroupBroker, random: Random, start: int) -> None:
        self.groups = groups
        self.random = random
        self.values = count(start)

    def rows(self, topic: str) -> tuple[tuple[int, int], tuple[o.OffsetCommitRequestTopic, ...]]:
        """Draw a partition and a new value, and how they are requested."""
        partition, value = self.random.randrange(4), next(self.values)
        row = o.OffsetCommitRequestPartition(partition, committed_offset=value, committed_metadata="x" * 1_500)
        return (partition, value), (o.OffsetCommitRequestTopic(name=topic, partitions=(row,)),)

    async def committer(self, group: str) -> None:
        """Commit without a member; sometimes as an unknown member, which is rejected."""
        while True:
            place, topics = self.rows("t")
            wrong = self.random.random() < 0.2
            member = {"member_id": "nobody", "generation_id_or_member_epoch": 7} if wrong else {}
            report("commit", group, *place)
            body = o.OffsetCommitRequest(group, topics=topics, **member)  # type: ignore[arg-type]
            answer = await self.groups.commit_offsets(body)
            self.answered(group, place, answer)
            await asyncio.sleep(0)

    def answered(self, group: str, place: tuple[int, int], answer: Any) -> bool:
        code = answer.topics[0].partitions[0].error_code
        report("committed" if code is ErrorCode.NONE else "refused", group, *place)
        return code is ErrorCode.NONE

    async def producer(self, group: str, producer_id: int) -> None:
        """Run transactions; their commits count when their end is answered. A transaction that an earlier child left
        open ends first, as it does when a producer asks for its id."""
        while not await self.ends(group, producer_id, commits=False):
            await asyncio.sleep(0.001)
        while True:
            place, topics = self.rows("x")
            body = o.TxnOffsetCommitRequest(
                group, transactional_id="tx", producer_id=producer_id, producer_epoch=0, topics=topics
            )
            report("pending", group, *place)
            answer = await self.groups.request(body, version=5)
            assert isinstance(answer, o.TxnOffsetCommitResponse)
            done = answer.topics[0].partitions[0].error_code is ErrorCode.NONE
            commits = done and self.random.random() < 0.6
            if commits:
                report("commit", group + "/x", *place)
            ended = await self.ends(group, producer_id, commits=commits)
            if commits and ended:
                report("committed", group + "/x", *place)
            elif ended:
                report("refused", group + "/x", *place)
            while not ended:  # it must end before the next one begins
                await asyncio.sleep(0.001)
                ended = await self.ends(group, producer_id, commits=commits)
                if ended:
                    report("committed" if commits else "refused", group + "/x", *place)
            await asyncio.sleep(0)

    async def ends(self, group: str, producer_id: int, *, commits: bool) -> bool:
        marker = o.WriteTxnMarkerRequest(
            producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, committed=commits
        )
        ended = await self.groups.mark(self.groups.partition_of(group), marker)
        return isinstance(ended, o.WriteTxnMarkerResponse) and ended.error_code is ErrorCode.NONE

    async def classic(self, group: str) -> None:
        """A member that joins, syncs, sends heartbeats for a while, and leaves or falls silent."""
        member = ""
        while True:
            asks = m.JoinGroupRequest(
                group,
                session_timeout_ms=40,
                rebalance_timeout_ms=30,
                member_id=member,
                protocol_type="work",
                protocols=(m.Protocol("even", b"x" * self.random.randrange(200)),),
            )
            joined = await self.groups.join(asks)
            member = joined.member_id if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED else ""
            if joined.error_code is not ErrorCode.NONE:
                await asyncio.sleep(0.002)
                continue
            share = (m.SyncGroupAssignment(joined.member_id, b"all"),)
            asks_share = m.SyncGroupRequest(
                group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type="work",
                protocol_name="even",
                assignments=share if joined.leader == joined.member_id else (),
            )
            synced = await self.groups.sync(asks_share)
            if synced.error_code is ErrorCode.NONE:
                report("generation", group, joined.generation_id)
            if self.random.random() < 0.7:
                await self.groups.leave(m.LeaveGroupRequest(group, (m.LeaveGroupMember(joined.member_id),)))

    async def consumer(self, group: str) -> None:
        """A member of KIP-848 that joins and leaves."""
        while True:
            name = f"member {next(self.values)}"
            joins = c.ConsumerGroupHeartbeatRequest(
                group,
                member_id=name,
                member_epoch=0,
                rebalance_timeout_ms=60_000,
                subscribed_topic_names=("t",),
                topic_partitions=(),
            )
            answer = await self.groups.consumer_heartbeat(joins)
            if answer.error_code is ErrorCode.NONE:
                report("member", group, name, True)
                await asyncio.sleep(self.random.random() * 0.01)
                leaves = c.ConsumerGroupHeartbeatRequest(group, member_id=name, member_epoch=-1)
                report("leaves", group, name)
                left = await self.groups.consumer_heartbeat(leaves)
                if left.error_code is ErrorCode.NONE:
                    report("member", group, name, False)
            await asyncio.sleep(0)


async def serve(path: Path, seed: int) -> None:
    """Run until the process is killed."""
    random = Random(seed)
    store = ReportingStore(path)
    report("starts")
    async with store, GroupBroker(store, SETTINGS, topics=TOPICS) as groups:
        traffic = Traffic(groups, random, seed * 1_000_000)
        clients = [traffic.committer(f"commits {number}") for number in range(3)]
        clients += [traffic.producer(f"transactions {number}", 100 + number) for number in range(2)]
        clients += [traffic.classic(f"classic {number % 2}") for number in range(3)]
        clients += [traffic.consumer(f"consumer {number}") for number in range(2)]
        running = [asyncio.ensure_future(client) for client in clients]
        report("serving")
        while True:
            await asyncio.wait(running, timeout=0.008, return_when=asyncio.FIRST_EXCEPTION)
            for each in running:
                if each.done():
                    each.result()
            if seed % 2 and random.random() < 0.4:
                await store.disk(FULL)
                await asyncio.sleep(random.random() * 0.02)
                await store.disk(ROOM)


# faults of the store


def acknowledges_early() -> None:
    """The fault: it acknowledges before the commit."""
    append = SQLiteStore.append

    def early(self: SQLiteStore, partition: int, records: Sequence[Record], *, leader_epoch: int) -> Any:
        append(self, partition, records, leader_epoch=leader_epoch).add_done_callback(lambda ended: ended.exception())
        done = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    SQLiteStore.append = early  # type: ignore[method-assign]


def writes_halves() -> None:
    """The fault: records of one append become durable one after the other."""
    append = tables.append

    def halves(on: Any, number: int, runs: Sequence[Run], leader_epoch: int) -> None:
        for run in runs:
            for pair in run.pairs:
                append(on, number, [Run(run.header, [pair])], leader_epoch)
                on.flush()
                on.on.run("COMMIT")
                on.on.run("BEGIN IMMEDIATE")

    tables.append = halves


def refuses_what_it_wrote() -> None:
    """The fault: sometimes it reports a failure of a write that succeeded."""
    append, random = tables.append, Random(1)

    def liar(on: Any, number: int, runs: Sequence[Run], leader_epoch: int) -> None:
        append(on, number, runs, leader_epoch)
        if random.random() < 0.1:
            raise AppendError(ErrorCode.KAFKA_STORAGE_ERROR, "a lie")

    tables.append = liar


def leaves_gaps() -> None:
    """The fault: an append continues behind a failed one."""
    append, random = tables.append, Random(2)

    def gaps(on: Any, number: int, runs: Sequence[Run], leader_epoch: int) -> None:
        if random.random() > 0.1:
            append(on, number, runs, leader_epoch)

    tables.append = gaps


def compacts_too_much() -> None:
    """The fault: compaction drops the last record of each key, too."""

    def more(records: Sequence[Any]) -> Outlived:
        found = outlived(records)
        return found._replace(superseded=found.superseded | set(range(found.head // 2)))

    sql.outlived = more  # type: ignore[attr-defined]


FAULTS: dict[str, Callable[[], None]] = {
    each.__name__: each
    for each in (acknowledges_early, writes_halves, refuses_what_it_wrote, leaves_gaps, compacts_too_much)
}


def main() -> None:
    """Run one child after the other."""
    sql.CHUNK = 20  # type: ignore[misc]
    sql.BATCHES = 7  # type: ignore[misc]
    sql.worth = lambda dirty, left: dirty >= max(10, left // 3)  # type: ignore[attr-defined]
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            report("child", os.getpid())
            if asked["fault"]:
                FAULTS[asked["fault"]]()
            asyncio.run(serve(Path(asked["path"]), asked["seed"]))
            os._exit(1)
        _, status = os.waitpid(child, 0)
        os.write(1, b"\n")
        report("gone", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
