"""A group of whole consumers (member and reader), the real coordinator with its offsets, and the logs that they read.

Programs process the records of each poll and commit, automatically or by calls, synchronously or not. They crash
between processing and commit, come back, leave and join, while records are written and leaders move. Every step is
checked: the new owner of a partition continues where the group has committed, so no record is skipped; and no offset is
committed before its records were processed. In the end all records are read and committed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from fencepost.member import Member, MemberSettings
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.assignors.sticky import CooperativeStickyAssignor
from fencepost.member.consumer import ConsumerMember, ConsumerSettings
from fencepost.member.events import (
    Answered,
    CancelMemberTimer,
    Close,
    CoordinatorFound,
    FindCoordinator,
    Listener,
    ListenerDone,
    MemberTimer,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    RequestLost,
    RequestMetadata,
    Returned,
    Send,
    SetMemberTimer,
    Subscribe,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.events import Appended, Event, Load, Request, TaskDone, TimerFired, Topic, TopicsChanged
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    RequestBody,
    SyncGroupRequest,
)
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest
from fencepost.protocol.offset_records import OffsetCommitKey
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost_consumer import Client, Reader, ReaderSettings, Reset, ResetPolicy
from fencepost_consumer import events as ev
from fencepost_consumer.broker import (
    FetchRequest,
    FetchResponse,
    LeaderRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    Record,
)
from fencepost_consumer.consumer import Consumer, ConsumerCommand, ConsumerEvent, consumer_of, step
from fencepost_consumer.partition import Leader

from ....targets.core import CoreSession
from ....targets.ids import MemberIds
from ....targets.java_order import JavaOrder
from ..broken import demand
from .logs import Log, failed

PARTITIONS: Final = (*(TopicPartition("t", number) for number in range(3)), TopicPartition("u", 0))
TOPICS: Final = (Topic("t", b"\1" * 16, 3), Topic("u", b"\2" * 16, 1))
_VERSIONS: Final = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    ConsumerGroupHeartbeatRequest: 1,
}
_DELAY_MS, _POLL_MS = 5, 40
_CHAOS_MS, _QUIET_MS = 15_000, 20_000


@dataclass
class Tally:
    """``processed``: records, counted each time; ``resumed``: partitions that a program took over where another, or an
    earlier process, had committed; ``again``: records that were processed once more."""

    processed: int = 0
    resumed: int = 0
    again: int = 0
    commits: int = 0
    crashes: int = 0


class Program:
    """A program with a consumer, over several processes. ``commits``: "auto", or the name of a call."""

    def __init__(self, group: Group, name: str, client: Client, commits: str) -> None:
        self.group, self.name, self.client, self.commits = group, name, client, commits
        self.process = 0
        self.running = False
        self.consumer = self._fresh()
        self.timers: dict[object, int] = {}
        self.uncommitted = False
        self.reads: dict[TopicPartition, int] = {}  #: next offset by partition, in this ownership

    def _fresh(self) -> Consumer:
        auto = self.commits == "auto"
        member: Member | ConsumerMember
        if self.client is Client.CONSUMER:
            member = ConsumerMember(ConsumerSettings("g", auto_commit=auto), f"{self.name}.{self.process}")
        else:
            assignors = (CooperativeStickyAssignor(),) if self.group.cooperative else (RangeAssignor(),)
            member = Member(MemberSettings("g", auto_commit=auto, session_timeout_ms=6_000, assignors=assignors))
        settings = ReaderSettings(
            "g",
            client=self.client,
            auto_commit=auto,
            auto_commit_interval_ms=300,
            reset=ResetPolicy(Reset.EARLIEST),
            max_poll_records=self.group.rng.choice((2, 5)),
        )
        return consumer_of(member, Reader(settings))

    def start(self) -> None:
        self.process += 1
        self.running = True
        self.consumer = self._fresh()
        self.timers, self.reads = {}, {}
        self.take(Subscribe(self.group.now, frozenset({"t", "u"})))
        self._poll(self.process)

    def stop(self, *, crash: bool) -> None:
        """Crash, perhaps between processing and commit, or close."""
        if crash:
            self.running = False
            self.group.tally.crashes += 1
        elif self.idle:
            self.take(Close(self.group.now))

    @property
    def idle(self) -> bool:
        consumer = self.consumer
        free = consumer.stage is None and consumer.reader.waiting is None and not consumer.member.closed
        return self.running and free

    def _poll(self, process: int) -> None:
        if process == self.process and self.running:
            if self.idle:
                self.take(Poll(self.group.now))
            if self.uncommitted and self.idle:
                self._commit()
            self.group.later(_POLL_MS, lambda: self._poll(process))

    def receive(self, process: int, event: ConsumerEvent) -> None:
        """Receive a message for a process of this program."""
        if process == self.process and self.running:
            self.take(event)

    def take(self, event: ConsumerEvent) -> None:
        self.consumer, commands = step(self.consumer, event, self.group.rng.uniform(0.8, 1.2))
        for gone in self.reads.keys() - self.consumer.reader.partitions.keys():
            del self.reads[gone]
        for command in commands:
            self._carry_out(command)

    def _carry_out(self, command: ConsumerCommand) -> None:
        group, process = self.group, self.process
        match command:
            case Send(request_id=number, body=body):
                group.send(self, process, number, body)
            case ev.SendToLeader(request_id=number, body=body):
                group.later(_DELAY_MS, lambda: group.lead(self, process, number, body))
            case FindCoordinator():
                group.later(_DELAY_MS, lambda: self.receive(process, CoordinatorFound(group.now, node=9)))
            case RequestMetadata():
                group.later(_DELAY_MS, lambda: group.metadata(self, process))
            case Listener():
                group.later(_DELAY_MS, lambda: self.receive(process, ListenerDone(group.now)))
            case SetMemberTimer(timer=timer, delay_ms=delay) | ev.SetReaderTimer(timer=timer, delay_ms=delay):
                at = self.timers[timer] = group.now + delay
                group.later(delay, lambda: self._fire(process, timer, at))
            case CancelMemberTimer(timer=timer) | ev.CancelReaderTimer(timer=timer):
                self.timers.pop(timer, None)
            case ev.PollReturned(records=records) if records:
                self._process(records)
            case ev.CallReturned() | Returned() if self.consumer.member.closed:
                self.running = False
            case ev.CallReturned(problem=problem) | ev.CommitCallback(problem=problem) if problem is not None:
                self.uncommitted = True  # so commit again after the next poll

    def _fire(self, process: int, timer: MemberTimer | ev.ReaderTimer, at: int) -> None:
        if process == self.process and self.running and self.timers.get(timer) == at:
            del self.timers[timer]
            now = self.group.now
            fired = MemberTimerFired(now, timer) if isinstance(timer, MemberTimer) else ev.ReaderTimerFired(now, timer)
            self.take(fired)

    def _process(self, records: ev.Records) -> None:
        for partition, several in records:
            for record in several:
                self.group.process(partition, record, self.reads.get(partition))
                self.reads[partition] = record.offset + 1
        self._commit()

    def _commit(self) -> None:
        self.uncommitted = False
        if self.commits == "sync":
            self.take(ev.CommitSync(self.group.now))
        elif self.commits == "async":
            self.take(ev.CommitAsync(self.group.now, callback=0))


class Group:
    """The whole group. ``seed`` decides which programs there are and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(f"group that reads {seed}")
        self.now = 0
        self.tally = Tally()
        self.cooperative = self.rng.random() < 0.5
        settings = Settings(
            group_initial_rebalance_delay_ms=0,
            group_consumer_assignment_interval_ms=0,
            group_consumer_session_timeout_ms=6_000,
            group_consumer_min_session_timeout_ms=6_000,
            group_consumer_heartbeat_interval_ms=1_000,
            group_consumer_min_heartbeat_interval_ms=1_000,
        )
        self.core = CoreSession(settings, INTENDED, JavaOrder(MemberIds()))
        self.logs = {each: Log(each, Leader(1 + each.partition % 2, 0)) for each in PARTITIONS}
        self.done = dict.fromkeys(PARTITIONS, 0)  #: everything before it was processed by some program
        self.committed: dict[TopicPartition, int] = {}
        client = self.rng.choice((Client.CLASSIC, Client.CONSUMER))
        self.programs = [
            Program(self, f"p{number}", client, self.rng.choice(("auto", "sync", "async"))) for number in range(3)
        ]
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._count = self._requests = self._written = 0
        self._askers: dict[int, tuple[Program, int, int]] = {}

    # --- the loop ---

    def run(self) -> Tally:
        """Run to the end; raises ``Broken``."""
        self.feed(Load(0, leader_epoch=1, records=()))
        self.feed(TopicsChanged(0, TOPICS, version=1))
        for program in self.programs:
            self.later(self.rng.randint(0, 2_000), program.start)
        self.later(0, self._write)
        self.later(1_000, self._disturb)
        self._until(_CHAOS_MS)
        for program in self.programs:
            if not program.running:
                program.start()
        self._until(_CHAOS_MS + _QUIET_MS)
        for partition, log in self.logs.items():
            what = f"{partition}: ends at {log.end}, done {self.done[partition]}, committed {self.committed}"
            demand(self.done[partition] == log.end, "K-POLL-01", what)
            demand(log.end == 0 or self.committed.get(partition) == log.end, "K-OFF-05", what)
        return self.tally

    def later(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self._agenda, (self.now + delay_ms, self._count, what))

    def _until(self, end: int) -> None:
        while True:
            first = min(self.core.armed.values(), default=end)
            if self._agenda and self._agenda[0][0] <= min(first, end - 1):
                at, _, what = heapq.heappop(self._agenda)
                self.now = max(self.now, at)
                what()
            elif first < end:
                self.now = max(self.now, first)
                key = min((key for key, at in self.core.armed.items() if at <= self.now), key=str)
                self.feed(TimerFired(self.now, key))
            else:
                break
        self.now = end

    def _write(self) -> None:
        """Write records, and move leaders."""
        if self.now < _CHAOS_MS:
            log = self.logs[self.rng.choice(PARTITIONS)]
            log.append(self.rng.randint(1, 3))
            if self.rng.random() < 0.05:
                log.move()
            self.later(self.rng.randint(20, 200), self._write)

    def _disturb(self) -> None:
        if self.now < _CHAOS_MS:
            program = self.rng.choice(self.programs)
            if program.running:
                program.stop(crash=self.rng.random() < 0.6)
            else:
                program.start()
            self.later(self.rng.randint(200, 3_000), self._disturb)

    # --- the brokers ---

    def send(self, program: Program, process: int, number: int, body: RequestBody) -> None:
        """Send to the coordinator. During the chaos one request in fifty is lost, and the connection with it."""
        if self.now < _CHAOS_MS and self.rng.random() < 0.02:
            self.later(_DELAY_MS, lambda: program.receive(process, RequestLost(self.now, request_id=number)))
            return
        self.later(_DELAY_MS, lambda: self._arrive(program, process, number, body))

    def _arrive(self, program: Program, process: int, number: int, body: RequestBody) -> None:
        self._requests += 1
        self._askers[self._requests] = (program, process, number)
        version = _VERSIONS.get(type(body))
        if isinstance(body, OffsetCommitRequest):
            version = 9 if body.topics[0].name else 10
        elif isinstance(body, OffsetFetchRequest):
            version = 9 if (body.groups[0].topics or ())[0].name else 10
        assert version is not None
        request = Request(
            self.now, id=self._requests, version=version, client_id=program.name, client_host="/h", body=body
        )
        self.feed(request)

    def feed(self, event: Event) -> None:
        """Run one step of the coordinator; its records are replicated at once."""
        seen = self.core.feed(event)
        for reply in seen.replies:
            program, process, number = self._askers.pop(reply.request_id)
            answer = Answered(self.now, request_id=number, body=reply.body)
            self.later(_DELAY_MS, lambda to=program, of=process, what=answer: self._answer(to, of, what))  # type: ignore[misc]
        for record in seen.records:
            if isinstance(record.key, OffsetCommitKey):
                self._stored(record.key, record.value)
        for key in seen.tasks:
            self.later(0, lambda each=key: self.feed(TaskDone(self.now, each)))  # type: ignore[misc]
        if seen.records:
            self._written += len(seen.records)
            self.feed(Appended(self.now, offset=self._written))

    def _answer(self, program: Program, process: int, answer: Answered) -> None:
        program.receive(process, Answered(self.now, request_id=answer.request_id, body=answer.body))

    def _stored(self, key: OffsetCommitKey, value: Any) -> None:
        """No offset is committed before its records were processed (INV-CL-04, K-OFF-05)."""
        if value is None:
            return
        partition = TopicPartition(key.topic, key.partition)
        self.tally.commits += 1
        text = f"{partition} is committed up to {value.offset}, but processed up to {self.done[partition]}"
        demand(value.offset <= self.done[partition], "INV-CL-04", text)
        self.committed[partition] = value.offset

    def lead(self, program: Program, process: int, number: int, body: LeaderRequest) -> None:
        """Deliver the leaders' answer."""
        answer: ListOffsetsResponse | OffsetForLeaderEpochResponse | FetchResponse
        match body:
            case ListOffsetsRequest():
                answer = ListOffsetsResponse(tuple(self.logs[each].list(time) for each, time in body.timestamps))
            case OffsetForLeaderEpochRequest():
                answer = OffsetForLeaderEpochResponse(
                    tuple(self.logs[each.partition].epoch_end(each) for each in body.partitions)
                )
            case FetchRequest():
                rows = []
                for each in body.partitions:
                    log = self.logs[each.partition]
                    error = log.wrong_leader(each.current_leader_epoch)
                    rows.append(failed(log.fetch(each), error) if error else log.fetch(each))
                answer = FetchResponse(tuple(rows))
        arrived = ev.Arrived(self.now, request_id=number, body=answer)
        program.receive(process, arrived)

    def metadata(self, program: Program, process: int) -> None:
        """Deliver metadata: topics for the member, leaders for the reader."""
        program.receive(process, MetadataChanged(self.now, TOPICS))
        leaders = tuple((each, log.leader) for each, log in self.logs.items())
        ids = tuple((topic.name, topic.topic_id) for topic in TOPICS)
        program.receive(process, ev.LeadersChanged(self.now, leaders, ids))

    # --- what is processed ---

    def process(self, partition: TopicPartition, record: Record, expected: int | None) -> None:
        """Check a record: it follows the previous one, and the first of an ownership is at the committed offset."""
        self.tally.processed += 1
        if expected is None:
            begin = self.committed.get(partition, 0)
            self.tally.resumed += begin > 0
            text = f"{partition} is read from {record.offset} on, but was processed up to {self.done[partition]}"
            demand(record.offset <= self.done[partition], "K-POS-01", text)
        else:
            demand(record.offset == expected, "K-FETCH-02", f"{partition}: {record.offset} follows {expected - 1}")
        self.tally.again += record.offset < self.done[partition]
        self.done[partition] = max(self.done[partition], record.offset + 1)
