"""Clients that send requests to a ``GroupBroker`` over a failing store, and the guarantees after every answer.

The reference model is small:

- An acknowledged commit is durable at that time.
- A fetch returns a durable offset, and none that is older in the log than the last commit acknowledged before the fetch
  began.
- A rejected commit leaves no record, unless the answer says that the coordinator is lost.
- Every request is answered, or ends with ``Stopped``.
- After the clients have stopped, sessions end and every group becomes empty.
- A new broker loads the offsets and epochs of the old one from the store.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVar

from fencepost import GroupBroker, Settings, Stopped, Topic
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.consumer_view import ConsumerGroupState
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import GroupConfig
from fencepost.protocol.view import GroupState
from fencepost.store import StoreError

from .broken import Broken
from .loop import Ran, run
from .store import Committed, FaultyStore, StoreFaults

PARTITIONS: Final = 3
TOPIC: Final = Topic("t", bytes(15) + b"\1", 4)
GROWN: Final = Topic("t", bytes(15) + b"\1", 6)
GROUPS: Final = ("a", "b", "c", "d")
SESSION_MS: Final = 6_000
SETTINGS: Final = Settings(
    group_min_session_timeout_ms=100,
    group_initial_rebalance_delay_ms=100,
    group_consumer_session_timeout_ms=SESSION_MS,
    group_consumer_min_session_timeout_ms=100,
    group_consumer_heartbeat_interval_ms=1_000,
    group_consumer_min_heartbeat_interval_ms=100,
)
#: errors after which the coordinator may still have written the record
_LOST: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
#: after this time all sessions, rebalance timeouts and retries of loads are over
SETTLED_S: Final = 120.0
_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Plan:
    """The choices of a seed that are made before the run."""

    faults: StoreFaults
    clients: int
    steps: int
    moves: int
    rivals: int
    restarts: int


def plan_of(random: Random) -> Plan:
    """The plan of a seed: half of them have failures of the store, a third moves of partitions."""
    slow = random.choice((0.0, 0.002, 0.05, 1.0))
    failing = random.random() < 0.5
    return Plan(
        faults=StoreFaults(
            slow_s=slow,
            refuse=random.choice((0.02, 0.2)) if failing else 0.0,
            doubt=random.choice((0.0, 0.05)) if failing else 0.0,
            unloadable=0.3 if failing else 0.0,
            no_compaction=0.3 if failing else 0.0,
        ),
        clients=random.randint(2, 6),
        steps=random.randint(4, 14),
        moves=random.choice((0, 0, 1, 3)),
        rivals=random.choice((0, 0, 0, 1)),
        restarts=random.choice((0, 0, 1)),
    )


class Schedule:
    """One run: call ``play``; ``answered`` then counts the checked answers."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.plan = plan_of(self._random)
        self.answered: Counter[str] = Counter()
        self._store = FaultyStore(PARTITIONS, self.plan.faults, Random(self._random.random()))
        self._broker: GroupBroker | None = None
        self._open = 0
        self._offset = 0
        self._acknowledged: dict[tuple[str, str, int], Committed] = {}
        self._forgotten: set[str] = set()  #: groups whose offsets may have been deleted
        self._clients: list[asyncio.Task[None]] = []

    async def play(self) -> None:
        async with self._store:
            await self._serve(self.plan.restarts)
            await self._come_to_rest()

    # brokers

    async def _serve(self, restarts: int) -> None:
        for life in range(restarts + 1):
            self._store.calm = True  # a broker whose first load fails does not start
            broker = self._broker = GroupBroker(self._store, SETTINGS, topics=[TOPIC], clock=self._clock)
            await broker.start()
            self._store.calm = False
            last = life == restarts
            tasks = [asyncio.create_task(self._client(number), name="client") for number in range(self.plan.clients)]
            tasks.append(asyncio.create_task(self._disturb(broker), name="disturb"))
            self._clients = tasks
            if last:
                await asyncio.gather(*tasks)
                return
            await asyncio.sleep(self._random.random() * 10)
            await broker.stop()
            await asyncio.gather(*tasks)

    def _clock(self) -> int:
        return int(asyncio.get_running_loop().time() * 1_000) + 1_700_000_000_000

    async def _disturb(self, broker: GroupBroker) -> None:
        """Move partitions, let another broker take one, grow topics, and change settings of groups."""
        random = self._random
        with suppress(Stopped):
            for _ in range(self.plan.moves):
                await asyncio.sleep(random.random() * 5)
                await self._move(broker, random.randrange(PARTITIONS))
            if random.random() < 0.5:
                broker.set_topics([GROWN])
            if random.random() < 0.3:
                broker.configure(random.choice(GROUPS), GroupConfig(consumer_session_timeout_ms=SESSION_MS))
            for _ in range(self.plan.rivals):
                await asyncio.sleep(random.random() * 5)
                await self._store.lead(random.randrange(PARTITIONS))

    async def _move(self, broker: GroupBroker, partition: int) -> None:
        """Move a partition away and back; retry if it cannot be loaded."""
        try:
            await broker.move(partition, self._random.choice((0.0, 0.5)))
        except StoreError:
            if not self.plan.faults.unloadable:
                raise
            self._store.calm = True
            await broker.move(partition)
            self._store.calm = False

    # clients

    async def _client(self, number: int) -> None:
        random = self._random
        plays: list[tuple[Callable[[int, str], Awaitable[None]], str]] = [
            (self._commits, random.choice(GROUPS[2:])),
            (self._classic, "a"),
            (self._consumer, "b"),
        ]
        play, group = random.choice([plays[0], *plays])
        with suppress(Stopped):
            await play(number, group)

    async def _pause(self) -> None:
        await asyncio.sleep(self._random.choice((0.0, 0.0, 0.001, 0.03, 0.5, 2.0)))

    async def _ask(self, kind: type[_Answer], body: m.RequestBody, version: int | None = None) -> _Answer | None:
        """Send a request, and return the answer; None if the client stopped waiting, which it sometimes does."""
        broker = self._broker
        assert broker is not None
        self._open += 1
        task = asyncio.ensure_future(broker.request(body, version=version, client_id="c", client_host="h"))
        task.add_done_callback(self._closed)
        if self._random.random() < 0.05:
            await asyncio.wait({task}, timeout=self._random.choice((0.0, 0.001, 0.2)))
            if not task.done():
                task.cancel()
                return None
        answer = await task
        if not isinstance(answer, kind):
            raise Broken(f"{type(body).__name__} is answered with {type(answer).__name__}")
        self.answered[kind.__name__] += 1
        return answer

    def _closed(self, task: asyncio.Future[m.ResponseBody]) -> None:
        self._open -= 1
        if not task.cancelled() and task.exception() is not None and not isinstance(task.exception(), Stopped):
            self.answered["exception"] += 1

    async def _commits(self, number: int, group: str) -> None:
        """A client without membership that commits, fetches, and sometimes deletes."""
        random = self._random
        for _ in range(self.plan.steps):
            await self._pause()
            roll = random.random()
            if roll < 0.55:
                await self._commit(group, "", -1)
            elif roll < 0.9:
                await self._fetch(group)
            elif roll < 0.93:
                self._forgotten.add(group)
                await self._ask(m.DeleteGroupsResponse, m.DeleteGroupsRequest((group,)))
            elif roll < 0.97:
                await self._ask(m.ListGroupsResponse, m.ListGroupsRequest())
            else:
                await self._misuse()

    async def _misuse(self) -> None:
        """Send a request in a version that does not exist: the broker rejects it, and other clients notice nothing."""
        try:
            answer = await self._ask(m.HeartbeatResponse, _heartbeat("a", 1, "x"), 99)
        except IllegalEvent:
            return
        if answer is not None:
            raise Broken("a request in a version that does not exist was not refused")

    async def _commit(self, group: str, member_id: str, generation: int) -> ErrorCode | None:
        self._offset += 1
        offset = self._offset
        partitions = sorted(self._random.sample(range(TOPIC.partitions), self._random.randint(1, 3)))
        rows = tuple(o.OffsetCommitRequestPartition(each, committed_offset=offset) for each in partitions)
        body = o.OffsetCommitRequest(
            group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=(o.OffsetCommitRequestTopic(name="t", partitions=rows),),
        )
        answer = await self._ask(o.OffsetCommitResponse, body, 9)
        if answer is None:
            return None
        (topic,) = answer.topics
        errors = {row.partition_index: row.error_code for row in topic.partitions}
        if sorted(errors) != partitions:
            raise Broken(f"a commit of partitions {partitions} is answered for {sorted(errors)}")
        for partition, error in errors.items():
            commit = (group, "t", partition, offset)
            if error is ErrorCode.NONE:
                if commit not in self._store.durable:
                    raise Broken(f"{commit} was acknowledged and is not in the store")
                before = self._acknowledged.get(commit[:3])
                if before is None or self._place(before) < self._place(commit):
                    self._acknowledged[commit[:3]] = commit
            elif error not in _LOST and commit in self._store.durable:
                raise Broken(f"{commit} was refused with {error.name} and is in the store")
        return errors[partitions[0]]

    def _place(self, commit: Committed) -> int:
        assert self._broker is not None
        return self._store.log[self._broker.partition_of(commit[0])].index(commit)

    async def _fetch(self, group: str) -> None:
        known = {key: commit for key, commit in self._acknowledged.items() if key[0] == group}
        topics = (o.OffsetFetchRequestTopic(name="t", partition_indexes=tuple(range(TOPIC.partitions))),)
        body = o.OffsetFetchRequest((o.OffsetFetchRequestGroup(group, topics=topics),))
        answer = await self._ask(o.OffsetFetchResponse, body, 9)
        if answer is None:
            return
        (answered,) = answer.groups
        if answered.error_code is not ErrorCode.NONE:
            return
        for row in answered.topics[0].partitions:
            key = (group, "t", row.partition_index)
            if row.committed_offset < 0:
                if key in known and group not in self._forgotten:
                    raise Broken(f"{known[key]} was acknowledged, and a later fetch finds nothing")
                continue
            found = (*key, row.committed_offset)
            if found not in self._store.durable:
                raise Broken(f"a fetch answers {found}, which is not in the store")
            if key in known and group not in self._forgotten and self._place(found) < self._place(known[key]):
                raise Broken(f"{known[key]} was acknowledged, and a later fetch answers {found}")

    async def _classic(self, number: int, group: str) -> None:
        """A member of a classic group, which may stop without leaving."""
        member_id = ""
        for _ in range(self.plan.steps):
            await self._pause()
            joined = await self._ask(m.JoinGroupResponse, _join(group, member_id))
            if joined is None:
                continue
            if joined.error_code is not ErrorCode.NONE:
                member_id = joined.member_id if joined.error_code is ErrorCode.MEMBER_ID_REQUIRED else ""
                continue
            member_id = joined.member_id
            shares = tuple(m.SyncGroupAssignment(each.member_id, b"share") for each in joined.members)
            synced = await self._ask(
                m.SyncGroupResponse,
                m.SyncGroupRequest(
                    group,
                    generation_id=joined.generation_id,
                    member_id=member_id,
                    protocol_type="work",
                    protocol_name="even",
                    assignments=shares,
                ),
            )
            if synced is None or synced.error_code is not ErrorCode.NONE:
                continue
            while True:
                await self._pause()
                if self._random.random() < 0.4:
                    await self._commit(group, member_id, joined.generation_id)
                beat = await self._ask(m.HeartbeatResponse, _heartbeat(group, joined.generation_id, member_id))
                if self._random.random() < 0.1:
                    return
                if beat is not None and beat.error_code is not ErrorCode.NONE:
                    break
        if member_id:
            leaver = (m.LeaveGroupMember(member_id),)
            await self._ask(m.LeaveGroupResponse, m.LeaveGroupRequest(group, members=leaver))

    async def _consumer(self, number: int, group: str) -> None:
        """A member of a consumer group, which may stop without leaving."""
        member_id, epoch = f"member-{number}-{self._offset}", 0
        owned: tuple[c.TopicPartitions, ...] = ()
        for _ in range(self.plan.steps * 2):
            await self._pause()
            body = c.ConsumerGroupHeartbeatRequest(
                group,
                member_id=member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=5_000 if epoch == 0 else -1,
                subscribed_topic_names=("t",) if epoch == 0 else None,
                topic_partitions=owned if epoch == 0 or self._random.random() < 0.5 else None,
            )
            beat = await self._ask(c.ConsumerGroupHeartbeatResponse, body)
            if beat is None:
                continue
            if beat.error_code is not ErrorCode.NONE:
                if beat.error_code not in _LOST:
                    epoch, owned = 0, ()
                continue
            epoch = beat.member_epoch
            if beat.assignment is not None:
                owned = beat.assignment
            if epoch > 0 and self._random.random() < 0.4:
                await self._commit(group, member_id, epoch)
            if self._random.random() < 0.05:
                return
        await self._ask(
            c.ConsumerGroupHeartbeatResponse,
            c.ConsumerGroupHeartbeatRequest(group, member_id=member_id, member_epoch=-1),
        )

    # the end

    async def _come_to_rest(self) -> None:
        broker = self._broker
        assert broker is not None
        self._store.calm = True
        await asyncio.sleep(SETTLED_S)
        if self._open:
            raise Broken(f"{self._open} requests are unanswered {SETTLED_S:g} s after the last was sent")
        for name, group in broker.views().items():
            if group.state not in (GroupState.EMPTY, GroupState.DEAD):
                raise Broken(f"group {name} is {group.state.value} although its members are gone for {SETTLED_S:g} s")
        for name, consumers in broker.consumer_views().items():
            if consumers.state is not ConsumerGroupState.EMPTY:
                raise Broken(f"group {name} is {consumers.state.value} although its members are gone")
        held = {name: broker.offsets_view(name) for name in GROUPS if broker.partition_of(name) in broker.led}
        epochs = {name: each.group_epoch for name, each in broker.consumer_views().items() if name in held}
        await broker.stop()
        again = GroupBroker(self._store, SETTINGS, topics=[GROWN], clock=self._clock)
        async with again:
            for name, before in held.items():
                if again.offsets_view(name) != before:
                    raise Broken(f"offsets of group {name}: {before} before a load, {again.offsets_view(name)} after")
            for name, epoch in epochs.items():
                found = again.consumer_view(name)
                if found is None or found.group_epoch < epoch:
                    raise Broken(f"group {name} had epoch {epoch} before a load, {found and found.group_epoch} after")
        try:
            await broker.request(_heartbeat("a", 1, "x"))
        except Stopped:
            return
        raise Broken("a broker that was stopped answers")


def _join(group: str, member_id: str) -> m.JoinGroupRequest:
    return m.JoinGroupRequest(
        group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=5_000,
        member_id=member_id,
        protocol_type="work",
        protocols=(m.Protocol("even", b""),),
    )


def _heartbeat(group: str, generation: int, member_id: str) -> m.HeartbeatRequest:
    return m.HeartbeatRequest(group, generation_id=generation, member_id=member_id)


def play(seed: int) -> tuple[Ran, Schedule]:
    """Run one schedule."""
    schedule = Schedule(seed)
    return run(schedule.play(), Random(seed)), schedule
