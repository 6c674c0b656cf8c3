"""Drive one reader in tests: feed events, keep commands, with shortcuts for the common exchanges."""

from __future__ import annotations

from typing import Any, TypeVar

from driven import Driven

from fencepost.member.events import CoordinatorFound, Poll, Send, Subscribe
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import Client, Reader, ReaderSettings, Reset, ResetPolicy, step
from fencepost_consumer.broker import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListedOffset,
    ListOffsetsRequest,
    ListOffsetsResponse,
    Record,
)
from fencepost_consumer.events import (
    Arrived,
    CallReturned,
    CancelReaderTimer,
    CommitCallback,
    LeadersChanged,
    MembershipChanged,
    NeverArrived,
    PollReturned,
    ReaderCommand,
    ReaderEvent,
    ReaderTimer,
    ReaderTimerFired,
    SendToLeader,
    SetReaderTimer,
)
from fencepost_consumer.membership import Membership, Phase
from fencepost_consumer.partition import Leader

Kind = TypeVar("Kind")

T0, T1, T2, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2), TopicPartition("u", 0)
NODES = {T0: 1, T1: 2, T2: 1, U0: 2}
IDS = (("t", b"\1" * 16), ("u", b"\2" * 16))
EARLIEST, LATEST, NONE = ResetPolicy(Reset.EARLIEST), ResetPolicy(Reset.LATEST), ResetPolicy(Reset.NONE)


def records(first: int, last: int, epoch: int | None = None) -> tuple[Record, ...]:
    return tuple(Record(offset, f"r{offset}", epoch) for offset in range(first, last + 1))


class Driver(Driven):
    """A reader under test: ``reader`` is its present state, ``commands`` are those of the last event, ``callbacks`` all
    callbacks so far."""

    def __init__(self, client: Client = Client.CLASSIC, **settings: Any) -> None:
        settings.setdefault("reset", EARLIEST)
        self.reader = Reader(ReaderSettings(settings.pop("group_id", "g"), client=client, **settings))
        self.now = 1_000
        self.commands: tuple[ReaderCommand, ...] = ()
        self.sent: list[Send | SendToLeader] = []
        self.callbacks: list[CommitCallback] = []
        self.timers: dict[ReaderTimer, int] = {}

    def do(self, event: ReaderEvent, jitter: float = 1.0) -> tuple[ReaderCommand, ...]:
        self.reader, self.commands = step(self.reader, event, jitter)
        self.sent += [command for command in self.commands if isinstance(command, Send | SendToLeader)]
        self.callbacks += [command for command in self.commands if isinstance(command, CommitCallback)]
        self.set_timers(SetReaderTimer, CancelReaderTimer)
        return self.commands

    # --- beginning ---

    def leaders(self, epoch: int | None = None, **epochs: int) -> Driver:
        known = tuple((each, Leader(node, epoch)) for each, node in NODES.items())
        self.do(LeadersChanged(self.now, known, IDS))
        return self

    def coordinator(self) -> Driver:
        self.do(CoordinatorFound(self.now, node=9))
        return self

    def member(self, *owned: TopicPartition, **changes: Any) -> Driver:
        """Let the reader own these partitions, subscribed, in the stable generation 1."""
        if not self.reader.mode.automatic:
            self.do(Subscribe(self.now, frozenset({"t", "u"})))
            if self.reader.leaders:  # answer requests for metadata
                self.do(LeadersChanged(self.now, tuple(self.reader.leaders.items()), IDS))
        values = {"member_id": "m", "epoch": 1, "phase": Phase.STABLE, **changes}
        self.do(MembershipChanged(self.now, Membership(owned, **values)))
        return self

    def reading(self, *owned: TopicPartition, at: int = 0) -> Driver:
        """Return the reader of a member that reads these partitions from this offset."""
        self.leaders().coordinator().member(*owned)
        self.poll()
        self.committed(dict.fromkeys(owned, at))
        self.poll()
        return self

    # --- application ---

    def poll(self) -> PollReturned:
        self.do(Poll(self.now))
        return self.only(PollReturned)

    def offsets(self) -> list[tuple[TopicPartition, list[int]]]:
        """Return the offsets that a poll hands out."""
        returned = self.poll()
        assert returned.problem is None
        return [(partition, [each.offset for each in got]) for partition, got in returned.records]

    def returned(self) -> CallReturned:
        return self.only(CallReturned)

    # --- network and clock ---

    def asked(self, kind: type[Kind]) -> tuple[Send | SendToLeader, Kind]:
        """Return the oldest unanswered request of a kind."""
        for each in self.sent:
            if isinstance(each.body, kind):
                return each, each.body
        raise AssertionError(f"no {kind.__name__} in {self.sent}")

    def unasked(self, kind: type) -> None:
        assert not [each for each in self.sent if isinstance(each.body, kind)], self.sent

    def answer(self, kind: type, body: Any) -> tuple[ReaderCommand, ...]:
        sent, _ = self.asked(kind)
        self.sent.remove(sent)
        return self.do(Arrived(self.now, request_id=sent.request_id, body=body))

    def lose(self, kind: type) -> tuple[ReaderCommand, ...]:
        sent, _ = self.asked(kind)
        self.sent.remove(sent)
        return self.do(NeverArrived(self.now, request_id=sent.request_id))

    def committed(self, offsets: dict[TopicPartition, int], epoch: int = -1, **errors: Any) -> None:
        """Answer an OffsetFetch; partitions outside ``offsets`` have no commit."""
        _, body = self.asked(OffsetFetchRequest)
        (group,) = body.groups
        topics = tuple(
            OffsetFetchResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetFetchResponsePartition(
                        number,
                        committed_offset=offsets.get(self._named(topic, number), -1),
                        committed_leader_epoch=epoch,
                        error_code=errors.get("partition", ErrorCode.NONE),
                    )
                    for number in topic.partition_indexes
                ),
            )
            for topic in group.topics or ()
        )
        answer = OffsetFetchResponseGroup("g", topics=topics, error_code=errors.get("group", ErrorCode.NONE))
        self.answer(OffsetFetchRequest, OffsetFetchResponse((answer,)))

    @staticmethod
    def _named(topic: Any, number: int) -> TopicPartition:
        names = {each: name for name, each in IDS}
        return TopicPartition(topic.name or names[topic.topic_id], number)

    def listed(self, *listed: ListedOffset) -> None:
        self.answer(ListOffsetsRequest, ListOffsetsResponse(listed))

    def fetched(self, *fetched: FetchedPartition) -> None:
        self.answer(FetchRequest, FetchResponse(fetched))

    def commit_answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        _, body = self.asked(OffsetCommitRequest)
        topics = tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(each.partition_index, error) for each in topic.partitions
                ),
            )
            for topic in body.topics
        )
        self.answer(OffsetCommitRequest, OffsetCommitResponse(topics))

    def wait(self, delay_ms: int) -> None:
        """Let time pass; timers fire when they are due."""
        end = self.now + delay_ms
        kept: tuple[ReaderCommand, ...] = ()
        while self.timers and min(self.timers.values()) <= end:
            timer = min(self.timers, key=self.timers.__getitem__)
            self.now = self.timers.pop(timer)
            kept += self.do(ReaderTimerFired(self.now, timer))
        self.now = end
        self.commands = kept
