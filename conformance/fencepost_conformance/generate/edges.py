"""Traces with one integer of one request at a limit of its range: for all requests and all their integers.

Each begins with the same stage: a stable classic group, a consumer group with a member, a group that has only offsets,
and an open transaction. The request with the extreme number follows. Then every group's offsets are fetched, and the
next timers fire, including the one that expires offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from fencepost.protocol.embedded import Subscription, encode_subscription
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings

from ..targets.core import CoreSession
from ..targets.ids import MemberIds
from ..targets.java_order import JavaOrder
from ..traces.observation import Observation
from .extremes import Extreme, extremes

SETTINGS: Final = Settings(group_initial_rebalance_delay_ms=0, offsets_retention_ms=600_000)
TOPIC: Final = ev.Topic("orders", bytes(15) + b"\x07", 2)
_CLASSIC, _CONSUMER, _SIMPLE = "classic", "consumer", "simple"
_EXPIRY: Final = ev.TimerKey(ev.TimerKind.EXPIRY)
GREATEST: Final = (1 << 31) - 1
_LAST_PRODUCER_EPOCH: Final = (1 << 15) - 1
#: number of timers that fire after the request
_TIMERS: Final = 4


class Edge(NamedTuple):
    """``name`` says which number of which request is extreme; ``at`` is the index of that request in the events."""

    name: str
    events: Sequence[ev.Event]
    observations: Sequence[Observation]
    at: int


class Stage:
    """A coordinator and the events that it got; its records are replicated at once. It can be copied."""

    def __init__(self, profile: Profile, log: Sequence[Record] = ()) -> None:
        self.session = CoreSession(SETTINGS, profile, JavaOrder(MemberIds()))
        self.events: list[ev.Event] = []
        self.observations: list[Observation] = []
        self.now = self.number = 0
        self.end = len(log)
        self.generation = 0
        self.join = m.JoinGroupRequest(
            _CLASSIC,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id="",
            protocol_type="consumer",
            protocols=(m.Protocol("range", encode_subscription(Subscription(("orders",)))),),
        )
        self.feed(ev.Load(0, leader_epoch=1, records=tuple(log)))
        self.feed(ev.TopicsChanged(0, (TOPIC,), version=1))

    @property
    def member(self) -> str:
        """The id of the classic member, once it has one."""
        return self.join.member_id

    def set(self) -> None:
        """Create the groups and the transaction."""
        self.join_classic()
        self.ask(1, self.consumer_heartbeat())
        self.ask(9, self.commit())
        self.ask(5, self.transaction())

    def join_classic(self) -> None:
        """Join the classic group, which is then Stable."""
        answer = self.ask(9, self.join)
        self.join = replace(self.join, member_id=answer.member_id)
        self.ask(9, self.join)
        self.fire(ev.TimerKey(ev.TimerKind.JOIN, _CLASSIC))
        self.generation = self.session.groups[_CLASSIC].generation_id
        self.ask(5, self.sync())

    def feed(self, event: ev.Event) -> Observation:
        """Feed one event, then the high watermark after it."""
        seen = self.session.feed(event)
        self.events.append(event)
        self.observations.append(seen)
        if seen.records:
            self.end += len(seen.records)
            self.feed(ev.Appended(self.now, offset=self.end))
        return seen

    def ask(self, version: int, body: m.RequestBody) -> Any:
        """Send a request; returns the answer, None if there is none yet."""
        self.number += 1
        number, before = self.number, len(self.observations)
        self.now += 1
        self.feed(ev.Request(self.now, id=number, version=version, client_id="app", client_host="/10.0.0.1", body=body))
        replies = [reply for seen in self.observations[before:] for reply in seen.replies if reply.request_id == number]
        return replies[0].body if replies else None

    def fire(self, key: ev.TimerKey) -> None:
        """Fire a timer that is due."""
        self.now = max(self.now, self.session.armed[key])
        self.feed(ev.TimerFired(self.now, key))

    # requests that have every field that they can have

    def sync(self) -> m.SyncGroupRequest:
        """Return the leader's SyncGroup with an assignment."""
        return m.SyncGroupRequest(
            _CLASSIC,
            generation_id=self.generation,
            member_id=self.member,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(m.SyncGroupAssignment(self.member, b"mine"),),
        )

    @staticmethod
    def consumer_heartbeat() -> ConsumerGroupHeartbeatRequest:
        """Return a join of a consumer group's member."""
        return ConsumerGroupHeartbeatRequest(
            _CONSUMER,
            member_id="m1",
            member_epoch=0,
            rebalance_timeout_ms=45_000,
            subscribed_topic_names=("orders",),
            topic_partitions=(),
        )

    @staticmethod
    def topics(*, epoch: int = 3) -> tuple[o.OffsetCommitRequestTopic, ...]:
        """Return the topics of a commit; ``epoch``: its leader epoch."""
        rows = (
            o.OffsetCommitRequestPartition(
                0, committed_offset=5, committed_leader_epoch=epoch, committed_metadata="told"
            ),
            o.OffsetCommitRequestPartition(1, committed_offset=6, committed_leader_epoch=epoch),
        )
        return (o.OffsetCommitRequestTopic(name="orders", partitions=rows),)

    def commit(self) -> o.OffsetCommitRequest:
        """Return a commit without a member, to the group that has only offsets."""
        return o.OffsetCommitRequest(_SIMPLE, topics=self.topics())

    def transaction(self) -> o.TxnOffsetCommitRequest:
        """Return the same commit within a transaction."""
        return o.TxnOffsetCommitRequest(
            _SIMPLE, transactional_id="tx", producer_id=1_000, producer_epoch=2, topics=self.topics()
        )

    def requests(self) -> Iterator[tuple[int, m.RequestBody]]:
        """Yield a request of each kind, with its version, whose extreme numbers the stage's groups accept or reject."""
        yield 9, self.join
        yield 0, replace(self.join, rebalance_timeout_ms=-1)
        yield 9, replace(self.join, member_id="", group_instance_id="i")
        yield 5, self.sync()
        yield 4, m.HeartbeatRequest(_CLASSIC, generation_id=self.generation, member_id=self.member)
        yield 1, self.consumer_heartbeat()
        owned = (TopicPartitions(TOPIC.topic_id, (0, 1)),)
        stays = replace(self.consumer_heartbeat(), member_epoch=1, topic_partitions=owned)
        yield 1, stays
        yield 1, replace(self.consumer_heartbeat(), member_id="m2", instance_id="j")
        yield 9, self.commit()
        yield 2, replace(self.commit(), retention_time_ms=30_000, topics=self.topics(epoch=-1))
        mine = replace(
            self.commit(),
            group_id=_CLASSIC,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member,
        )
        yield 9, mine
        yield 9, replace(mine, group_id=_CONSUMER, generation_id_or_member_epoch=1, member_id="m1")
        yield 5, self.transaction()
        yield 5, replace(self.transaction(), group_id=_CONSUMER, generation_id=1, member_id="m1")
        yield 1, o.WriteTxnMarkerRequest(producer_id=1_000, producer_epoch=2, coordinator_epoch=1, committed=True)
        group = o.OffsetFetchRequestGroup(
            _CONSUMER,
            member_id="m1",
            member_epoch=1,
            topics=(o.OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 1)),),
        )
        yield 9, o.OffsetFetchRequest((group,))
        yield 0, o.OffsetDeleteRequest(_SIMPLE, (o.OffsetDeleteRequestTopic(name="orders", partition_indexes=(0, 1)),))
        yield 5, m.LeaveGroupRequest(_CLASSIC, (m.LeaveGroupMember(self.member),))
        yield 1, ConsumerGroupDescribeRequest((_CONSUMER,))

    def show(self) -> None:
        """Fetch the offsets of every group, and fire the next timers."""
        for group_id in (_CLASSIC, _CONSUMER, _SIMPLE):
            for stable in (False, True):
                self.ask(9, o.OffsetFetchRequest((o.OffsetFetchRequestGroup(group_id),), require_stable=stable))
        for _ in range(_TIMERS):
            due = sorted(self.session.armed.items(), key=lambda row: (row[1], str(row[0])))
            if due and due[0][1] < _LATEST:
                self.fire(due[0][0])
        self.ask(9, o.OffsetFetchRequest((o.OffsetFetchRequestGroup(_SIMPLE),)))


#: timers with later deadlines do not fire, so that time can still move forward
_LATEST: Final = 1 << 40


def edges(profile: Profile, wanted: Callable[[Extreme], bool] = lambda _: True) -> Iterator[Edge]:
    """Yield a trace of the core for each ``wanted`` extreme number of each request; none for a number that a host may
    not pass in."""
    first = Stage(profile)
    first.set()
    for place, (version, body) in enumerate(first.requests()):
        for extreme in extremes(body):
            if not extreme.fits or not wanted(extreme):
                continue
            stage = Stage(profile)
            stage.set()
            at = len(stage.events)
            try:
                stage.ask(version, extreme.value)
            except IllegalEvent:
                continue
            stage.show()
            name = f"{type(body).__name__} v{version} #{place} {extreme.path}={extreme.number}"
            yield Edge(name, stage.events, stage.observations, at)


def last_epochs(profile: Profile) -> Iterator[Edge]:
    """Yield traces of groups that are loaded at their last generation or epoch, or one before it, and of producers with
    the last epoch and the greatest id (G-VOC-04, G-VOC-07)."""
    for epoch in (GREATEST - 1, GREATEST):
        empty = GroupMetadataValue("consumer", generation=epoch, protocol=None, leader=None, current_state_timestamp=0)
        stage = Stage(profile, [Record(GroupMetadataKey(_CLASSIC), empty)])
        at = len(stage.events)
        stage.join_classic()
        stage.ask(4, m.HeartbeatRequest(_CLASSIC, generation_id=stage.generation, member_id=stage.member))
        mine = replace(stage.commit(), group_id=_CLASSIC, member_id=stage.member)
        stage.ask(9, replace(mine, generation_id_or_member_epoch=stage.generation))
        stage.show()
        yield Edge(f"generation {epoch}", stage.events, stage.observations, at)
        log = [
            Record(r.ConsumerGroupMetadataKey(_CONSUMER), r.ConsumerGroupMetadataValue(epoch)),
            Record(
                r.ConsumerGroupTargetAssignmentMetadataKey(_CONSUMER),
                r.ConsumerGroupTargetAssignmentMetadataValue(epoch),
            ),
        ]
        stage = Stage(profile, log)
        at = len(stage.events)
        joined = stage.ask(1, stage.consumer_heartbeat())
        owned = (TopicPartitions(TOPIC.topic_id, (0, 1)),)
        stays = replace(stage.consumer_heartbeat(), member_epoch=joined.member_epoch, topic_partitions=owned)
        stage.ask(1, stays)
        stage.ask(1, replace(stage.consumer_heartbeat(), member_id="m2"))
        stage.ask(1, replace(stays, member_epoch=-1))  # Kafka cannot fence the last member of such a group (G-VOC-07)
        yield Edge(f"group epoch {epoch}", stage.events, stage.observations, at)
    for epoch in (_LAST_PRODUCER_EPOCH - 1, _LAST_PRODUCER_EPOCH):
        stage = Stage(profile)
        at = len(stage.events)
        first = replace(stage.transaction(), producer_id=(1 << 63) - 1, producer_epoch=epoch)
        stage.ask(5, first)
        stage.ask(5, replace(first, producer_id=first.producer_id - (1 << 32)))  # equal in its lower half
        for committed in (True, False):
            end = o.WriteTxnMarkerRequest(
                producer_id=first.producer_id, producer_epoch=epoch, coordinator_epoch=GREATEST, committed=committed
            )
            stage.ask(1, end)
        stage.show()
        yield Edge(f"producer epoch {epoch}", stage.events, stage.observations, at)


def expiries(profile: Profile) -> Iterator[Edge]:
    """Yield traces of a commit whose expiry comes out at, before or after -1, which also means none (F-REC-20)."""
    for expiry in (-2, -1, 0, 1):
        stage = Stage(profile)
        at = len(stage.events)
        retention = expiry - (stage.now + 1)  # the request comes a millisecond later
        stage.ask(2, replace(stage.commit(), retention_time_ms=retention, topics=stage.topics(epoch=-1)))
        stage.show()
        yield Edge(f"expiry at {expiry}", stage.events, stage.observations, at)
