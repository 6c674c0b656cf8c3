"""Clients with an application that reads records, and commits its positions, over the members of the simulation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from fencepost.member import Member
from fencepost.member.consumer import ConsumerMember
from fencepost.member.events import (
    Answered,
    CloseOption,
    Command,
    Commit,
    CommitFinished,
    CommitResult,
    Listener,
    MemberEvent,
    RequestLost,
    Returned,
    Send,
)
from fencepost.member.partitions import TopicPartition
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import RequestBody

from ..simulate.broken import Broken
from ..simulate.consumer_host import ConsumerHost
from ..simulate.host import Host, MemberHost, Surroundings
from ..simulate.plan import HostPlan
from .journal import Journal, Kind, Row

#: records that a poll returns for each partition
RECORDS: Final = 5
#: ids of the application's own requests; those of the member are smaller
_FIRST_ID: Final = 1_000_000
_REQUEST_MS: Final = 30_000

M = TypeVar("M", Member, ConsumerMember)


class Room(Surroundings, Protocol):
    """The session that a client belongs to."""

    journal: Journal
    commit_ms: int
    high: dict[TopicPartition, int]
    repeated: int

    def alert(self, broken: Broken) -> None: ...


class Client(MemberHost[M]):
    """A program that reads its partitions and commits every few seconds, and before it gives a partition up.

    ``positions``: the next offset of each partition that it owns; a partition is missing until OffsetFetch is
    answered."""

    def __init__(self, plan: HostPlan, room: Room) -> None:
        self._room = room
        self.positions: dict[TopicPartition, int] = {}
        self._fetching: set[TopicPartition] = set()
        self._asked: dict[int, tuple[o.OffsetCommitRequest | o.OffsetFetchRequest, int | None]] = {}
        self._next_id = _FIRST_ID
        super().__init__(plan, room)

    # --- the member's life ---

    def start(self) -> None:
        self.positions, self._fetching = {}, set()
        self._asked.clear()
        self.given_up = None
        self._say("starts")
        super().start()
        process = self.process
        self._room.later(self._room.commit_ms, lambda: self._commit_again(process))

    def stop(self) -> None:
        """Close the consumer as soon as the program is free."""
        process = self.process

        def close() -> None:
            if process != self.process or not self.running or self.member.closed:
                return
            wait = self.busy_until - self._room.now if self.busy_until > self._room.now else 100
            if self.idle and self._room.now >= self.busy_until:
                self._say("closes")
                self.close(CloseOption.DEFAULT)
            else:
                self._room.later(wait, close)

        close()

    def crash(self) -> None:
        self._say("crashes")
        super().crash()

    def handle(self, event: MemberEvent) -> None:
        before = self.member
        super().handle(event)
        after = self.member
        if before.state is not after.state:
            self._say(f"{before.state.value} → {after.state.value}")
        for lost in self.positions.keys() - after.assignment:
            del self.positions[lost]
        self._fetching &= after.assignment

    @contextmanager
    def _alerting(self) -> Iterator[None]:
        """Report a broken property as an alert, and continue."""
        try:
            yield
        except Broken as broken:
            self._room.alert(broken)

    def _check_stall(self, body: RequestBody) -> None:
        with self._alerting():
            super()._check_stall(body)

    def _carry_out(self, command: Command) -> None:
        match command:
            case Commit(commit_id=commit_id, partitions=partitions):
                self._commit(partitions, commit_id)
                return
            case Listener(call=call, partitions=partitions):
                owned = " ".join(str(each.partition) for each in sorted(partitions)) or "no partition"
                self._say(f"listener: {call.value} {owned}")
            case Returned(failure=failure) if failure is not None:
                self._say(f"the call throws: {failure.error.name if failure.error else failure.kind.value}")
            case _:
                pass
        super()._carry_out(command)
        if isinstance(command, Returned) and self.member.closed:
            self._say("has closed")

    # --- the application ---

    def poll(self) -> None:
        free = self.idle and self._room.now >= self.busy_until
        super().poll()
        if free and self.idle:
            self._read()

    def _read(self) -> None:
        """Fetch the offsets of new partitions, and process the records of the others."""
        new = self.member.assignment - self.positions.keys() - self._fetching
        if new and self.member.coordinator.node is not None:
            self._fetch(sorted(new))
        for partition in self.readable:
            position = self.positions[partition]
            high = self._room.high.get(partition, 0)
            self._room.repeated += min(RECORDS, max(0, high - position))
            self.positions[partition] = position + RECORDS
            self._room.high[partition] = max(high, position + RECORDS)

    @property
    def readable(self) -> list[TopicPartition]:
        """The partitions that have a position and that the member may read now."""
        subscription = self.member.subscription
        return sorted(self.positions.keys() - subscription.pending_revocation - subscription.pending_callback)

    def _commit_again(self, process: int) -> None:
        if process != self.process or not self.running:
            return
        owned = self.member.assignment
        if owned and self.idle and self._room.now >= self.busy_until:
            self._commit(owned, None)
        self._room.later(self._room.commit_ms, lambda: self._commit_again(process))

    def _commit(self, partitions: Iterable[TopicPartition], commit_id: int | None) -> None:
        """Commit positions. ``commit_id``: the member waits for the result."""
        rows = {each: self.positions[each] for each in sorted(partitions) if each in self.positions}
        if not rows:
            if commit_id is not None:
                self._finished(commit_id, CommitResult.DONE)
            return
        member_id, epoch = self.identity
        body = o.OffsetCommitRequest(
            self.plan.settings.group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            group_instance_id=self.plan.settings.group_instance_id,
            topics=tuple(
                o.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=tuple(
                        o.OffsetCommitRequestPartition(each.partition, committed_offset=offset)
                        for each, offset in rows.items()
                        if each.topic == topic
                    ),
                )
                for topic in dict.fromkeys(each.topic for each in rows)
            ),
        )
        self._ask(body, commit_id)

    def _fetch(self, wanted: list[TopicPartition]) -> None:
        self._fetching |= set(wanted)
        member_id, epoch = self.identity
        consumer = self.plan.is_consumer
        topics = tuple(
            o.OffsetFetchRequestTopic(
                name=topic, partition_indexes=tuple(each.partition for each in wanted if each.topic == topic)
            )
            for topic in dict.fromkeys(each.topic for each in wanted)
        )
        group = o.OffsetFetchRequestGroup(
            self.plan.settings.group_id,
            member_id=member_id if consumer else None,
            member_epoch=epoch if consumer else -1,
            topics=topics,
        )
        self._ask(o.OffsetFetchRequest((group,), require_stable=True), None)

    def _ask(self, body: o.OffsetCommitRequest | o.OffsetFetchRequest, commit_id: int | None) -> None:
        self._next_id += 1
        number, process = self._next_id, self.process
        self._asked[number] = body, commit_id
        self._room.network.send(self, Send(number, body, timeout_ms=_REQUEST_MS))
        lost = RequestLost(self._room.now + _REQUEST_MS, request_id=number)
        self._room.later(_REQUEST_MS, lambda: self.receive(process, lost))

    @property
    def identity(self) -> tuple[str, int]:
        """The member id, and the epoch or generation."""
        if isinstance(self.member, ConsumerMember):
            return self.member.member_id, self.member.epoch
        return self.member.generation.member_id, self.member.generation.generation_id

    # --- answers to the application ---

    def receive(self, process: int, event: MemberEvent) -> None:
        if process != self.process or not self.running:
            return
        if isinstance(event, Answered | RequestLost) and event.request_id > _FIRST_ID:
            asked = self._asked.pop(event.request_id, None)
            if asked is not None:
                self._answered(*asked, event)
            return
        super().receive(process, event)

    def _answered(
        self,
        body: o.OffsetCommitRequest | o.OffsetFetchRequest,
        commit_id: int | None,
        event: Answered | RequestLost,
    ) -> None:
        answer = event.body if isinstance(event, Answered) else None
        if isinstance(body, o.OffsetFetchRequest):
            self._fetching.clear()  # what is still missing is asked for again
            if isinstance(answer, o.OffsetFetchResponse):
                self._found(answer)
            return
        errors = {ErrorCode.REQUEST_TIMED_OUT}
        if isinstance(answer, o.OffsetCommitResponse):
            errors = {each.error_code for topic in answer.topics for each in topic.partitions}
        done = errors == {ErrorCode.NONE}
        if commit_id is not None:
            self._finished(commit_id, CommitResult.DONE if done else CommitResult.FAILED)

    def _found(self, answer: o.OffsetFetchResponse) -> None:
        for topic in answer.groups[0].topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if each.error_code is ErrorCode.NONE and partition in self.member.assignment:
                    self.positions[partition] = max(each.committed_offset, 0)

    def _finished(self, commit_id: int, result: CommitResult) -> None:
        room, process = self._room, self.process
        room.later(0, lambda: self.receive(process, CommitFinished(room.now, commit_id=commit_id, result=result)))

    def _say(self, text: str) -> None:
        self._room.journal.rows.append(Row(self._room.now, Kind.CLIENT, self.plan.name, text))


class ClassicClient(Client[Member], Host):
    """A client of the classic protocol."""

    @property
    def works(self) -> bool:
        return super().works and bool(self.readable)

    def check(self, before: Member, event: MemberEvent, commands: tuple[Command, ...]) -> None:
        with self._alerting():
            super().check(before, event, commands)


class ConsumerClient(Client[ConsumerMember], ConsumerHost):
    """A client of the protocol of KIP-848."""

    @property
    def works(self) -> bool:
        return super().works and bool(self.readable)

    def check(self, before: ConsumerMember, event: MemberEvent, commands: tuple[Command, ...]) -> None:
        with self._alerting():
            super().check(before, event, commands)


AnyClient = ClassicClient | ConsumerClient
