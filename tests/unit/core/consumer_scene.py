"""A scene for consumer groups: three topics, short heartbeats, and a view of the group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost import coordinator
from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TaskDone, TaskKey, TaskKind, Topic, TopicsChanged
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record

from .scene import GROUP, Scene

#: Past every assignment interval (M-TGT-08).
LATER = 1_000
A, B, C = (bytes(15) + bytes([number]) for number in (1, 2, 3))
TOPICS = (Topic("a", A, 4), Topic("b", B, 2), Topic("c", C, 1))

Owned = Mapping[bytes, Iterable[int]]


def rows(owned: Owned) -> tuple[c.TopicPartitions, ...]:
    return tuple(c.TopicPartitions(topic, tuple(numbers)) for topic, numbers in owned.items())


def plain(assigned: Iterable[c.TopicPartitions | r.AssignedPartitions]) -> dict[bytes, tuple[int, ...]]:
    return {row.topic_id: row.partitions for row in assigned}


def kinds(records: Iterable[Record]) -> list[str]:
    """Return records by the short names of 11.3, with † for a tombstone."""
    return [_SHORT[type(record.key)] + ("†" if record.value is None else "") for record in records]


_SHORT: dict[type, str] = {
    r.ConsumerGroupMetadataKey: "GroupEpoch",
    r.ConsumerGroupPartitionMetadataKey: "PartitionMetadata",
    r.ConsumerGroupMemberMetadataKey: "MemberMetadata",
    r.ConsumerGroupTargetAssignmentMetadataKey: "TargetEpoch",
    r.ConsumerGroupTargetAssignmentMemberKey: "TargetMember",
    r.ConsumerGroupCurrentMemberAssignmentKey: "Current",
    r.ConsumerGroupRegularExpressionKey: "Regex",
}


class ConsumerScene(Scene):
    def __init__(self, profile: Profile = INTENDED, *, log: str = "at once", **settings: object) -> None:
        super().__init__(profile, log=log, **settings)  # type: ignore[arg-type]
        self.images = 0
        self.topics(*TOPICS)

    def topics(self, *topics: Topic) -> None:
        self.images += 1
        self.feed(TopicsChanged(self.now, topics, version=self.images))

    def beat(
        self,
        member: str,
        epoch: int,
        names: tuple[str, ...] | None = None,
        owned: Owned | None = None,
        *,
        group: str = GROUP,
        version: int = 1,
        timeout: int = -1,
        instance: str | None = None,
        regex: str | None = None,
        assignor: str | None = None,
        rack: str | None = None,
        client: str = "c",
        denied_topics: frozenset[str] = frozenset(),
    ) -> c.ConsumerGroupHeartbeatResponse | None:
        """Send a heartbeat; return its answer, or None if it waits for the log."""
        held = None if owned is None else rows(owned)
        body = c.ConsumerGroupHeartbeatRequest(
            group,
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=timeout,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=held,
        )
        answer = self.answers.get(self.ask(body, version, client, denied_topics=denied_topics))
        assert answer is None or isinstance(answer, c.ConsumerGroupHeartbeatResponse)
        return answer

    def ok(self, *positional: object, **more: object) -> c.ConsumerGroupHeartbeatResponse:
        """Send a heartbeat that must be answered without an error."""
        answer = self.beat(*positional, **more)  # type: ignore[arg-type]
        assert answer is not None
        assert answer.error_code is ErrorCode.NONE, answer
        return answer

    def error(self, *positional: object, **more: object) -> ErrorCode:
        """Send a heartbeat that must be answered immediately, and return the error."""
        answer = self.beat(*positional, **more)  # type: ignore[arg-type]
        assert answer is not None
        return answer.error_code

    def come(self, member: str, *names: str, timeout: int = 30_000, **more: object) -> c.ConsumerGroupHeartbeatResponse:
        """Let a member join with these topics."""
        return self.ok(member, 0, names, {}, timeout=timeout, **more)

    def written(self, since: int) -> list[str]:
        return kinds(self.records[since:])

    def resolved(self, *, failed: bool = False) -> None:
        """Complete the regex task of the group."""
        self.feed(TaskDone(self.now, TaskKey(TaskKind.REGEX, GROUP), failed=failed))

    @property
    def seen(self) -> ConsumerGroupView:
        view = coordinator.consumer_view(self.state, GROUP)
        assert view is not None
        return view

    def who(self, member: str) -> ConsumerMemberView:
        return next(row for row in self.seen.members if row.member_id == member)

    def described(self, version: int = 1, *names: str, **more: object) -> tuple[c.DescribedConsumerGroup, ...]:
        answer = self.answers[self.ask(c.ConsumerGroupDescribeRequest(names or (GROUP,)), version, **more)]  # type: ignore[arg-type]
        assert isinstance(answer, c.ConsumerGroupDescribeResponse)
        return answer.groups


def settled(profile: Profile = INTENDED, **more: object) -> ConsumerScene:
    """Return a scene in which m1 and m2 share topic a half and half, both STABLE at one epoch."""
    scene = ConsumerScene(profile, **more)  # type: ignore[arg-type]
    scene.come("m1", "a")
    scene.pass_time(LATER)
    scene.come("m2", "a")
    answer = scene.ok("m1", scene.who("m1").member_epoch, None, {A: range(4)})
    kept = plain(answer.assignment or ())
    scene.ok("m1", scene.who("m1").member_epoch, None, kept)
    scene.ok("m2", scene.who("m2").member_epoch, None, {})
    return scene
