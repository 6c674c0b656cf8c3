"""The working copy of the reading half during one step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fencepost.member.events import FindCoordinator, RequestMetadata, Send
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Quirks

from .broker import LeaderRequest
from .events import CancelReaderTimer, Problem, ProblemKind, ReaderCommand, ReaderTimer, SendToLeader, SetReaderTimer
from .partition import Leader, Partition, Position
from .settings import Client
from .state import Reader, Sent


class Thrown(Exception):
    """The call of the application ends here; what was done before stays done, as in Kafka."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


class Turn:
    """``reader`` is replaced as the step goes on; ``now``: the event's time; ``jitter``: factor of back-offs."""

    def __init__(self, reader: Reader, now: int, jitter: float) -> None:
        self.reader = reader
        self.now = now
        self.jitter = jitter
        self.commands: list[ReaderCommand] = []

    @property
    def quirks(self) -> Quirks | None:
        """What the client of the profile does otherwise."""
        return self.reader.settings.quirks

    @property
    def client(self) -> Client:
        """Whose order of things is kept."""
        return self.reader.settings.client

    def emit(self, command: ReaderCommand) -> None:
        """Ask the driver for this."""
        self.commands.append(command)

    def change(self, partition: TopicPartition, state: Partition) -> None:
        """Another state of an assigned partition, in its place in the order."""
        self.reader = self.reader._replace(partitions={**self.reader.partitions, partition: state})

    def place(self, partition: TopicPartition, position: Position) -> None:
        """Read an assigned partition from here, once its leader has confirmed it. kafka-python knows no epochs
        (K-PY-02)."""
        state = self.reader.partitions[partition]
        python = self.client is Client.KAFKA_PYTHON
        self.change(partition, state.seek_validated(position) if python else state.seek(position))

    def to_the_end(self, partition: TopicPartition) -> None:
        """A partition that was read is fetched after the others (K-SUB-14)."""
        rest = dict(self.reader.partitions)
        state = rest.pop(partition, None)
        if state is not None:
            self.reader = self.reader._replace(partitions={**rest, partition: state})

    # --- requests ---

    def number(self) -> int:
        """A fresh id for a request."""
        number = self.reader.next_request_id
        self.reader = self.reader._replace(next_request_id=number + 1)
        return number

    def fly(self, request_id: int, sent: Sent) -> None:
        """A request is under way."""
        self.reader = self.reader._replace(sent={**self.reader.sent, request_id: sent})

    def landed(self, request_id: int) -> Sent | None:
        """What an answered request was; None for one that was given up."""
        rest = dict(self.reader.sent)
        sent = rest.pop(request_id, None)
        self.reader = self.reader._replace(sent=rest)
        return sent

    def send(self, body: OffsetCommitRequest | OffsetFetchRequest, sent: Sent) -> int:
        """To the coordinator."""
        request_id = self.number()
        self.fly(request_id, sent)
        self.emit(Send(request_id, body, timeout_ms=self.reader.settings.request_timeout_ms))
        return request_id

    def send_to(self, node: int, body: LeaderRequest, sent: Sent) -> None:
        """To the leader of partitions."""
        request_id = self.number()
        self.fly(request_id, sent)
        self.emit(SendToLeader(node, request_id, body, timeout_ms=self.reader.settings.request_timeout_ms))

    # --- the cluster ---

    def leader(self, partition: TopicPartition) -> Leader:
        """The leader as metadata has it; unknown if a newer epoch than metadata's has been seen (K-POS-08)."""
        last = self.reader.last_epochs.get(partition)
        known = self.reader.leaders.get(partition, Leader())
        return Leader(None, last) if known.epoch is not None and last is not None and known.epoch < last else known

    def watch(self) -> None:
        """Metadata are asked for anew, for what is read now: epochs of other topics are forgotten (K-POS-08)."""
        reader, watched = self.reader, self.reader.watched_topics
        told = {each: leader.epoch for each, leader in reader.leaders.items() if leader.epoch is not None}
        epochs = {**told, **reader.last_epochs}
        self.reader = reader._replace(last_epochs={each: at for each, at in epochs.items() if each.topic in watched})

    def saw_epoch(self, partition: TopicPartition, epoch: int | None) -> None:
        """An answer told a leader epoch: metadata with a lower one is old (K-POS-08). Of a partition whose epoch was
        never told nothing is kept."""
        last = self.reader.last_epochs.get(partition)
        if epoch is not None and last is not None and epoch > last:
            self.reader = self.reader._replace(last_epochs={**self.reader.last_epochs, partition: epoch})
            self.want_metadata()

    def want_metadata(self) -> None:
        """Ask once until it comes."""
        if not self.reader.metadata_requested:
            self.reader = self.reader._replace(metadata_requested=True)
            self.emit(RequestMetadata(self.reader.watched_topics))

    def left_alone(self, node: int) -> bool:
        """Whether the broker has just not answered (K-FETCH-01)."""
        return self.now < self.reader.unavailable.get(node, self.now)

    def by_leader(self, partitions: Mapping[TopicPartition, Leader]) -> dict[int, list[TopicPartition]]:
        """Partitions by the node to ask; those without one wait for metadata."""
        nodes: dict[int, list[TopicPartition]] = {}
        for partition, leader in partitions.items():
            if leader.node is None:
                self.want_metadata()
            else:
                nodes.setdefault(leader.node, []).append(partition)
        return nodes

    def coordinator_known(self, *, at_once: bool = False) -> bool:
        """If it is not: look it up, unless a look-up is under way or, but for who asks ``at_once``, failed a moment ago
        (K-FIND-01)."""
        coordinator = self.reader.coordinator
        if coordinator.node is not None:
            return True
        waits = not at_once and coordinator.retry_at is not None and self.now < coordinator.retry_at
        if not coordinator.looking_up and not waits:
            self.reader = self.reader._replace(coordinator=replace(coordinator, looking_up=True, retry_at=None))
            self.emit(FindCoordinator(self.reader.settings.group_id))
        return False

    def wake(self) -> None:
        """Throw, once, if another thread has asked for it (K-POLL-06)."""
        if self.reader.wakeup:
            self.reader = self.reader._replace(wakeup=False)
            raise Thrown(Problem(ProblemKind.WAKEUP))

    def check_coordinator(self, *, waits: bool = False) -> None:
        """Throw what the last look-up met, if that is for good and nobody has been told (K-FIND-01). Who ``waits`` for
        a look-up looks at the network first, which a wakeup ends (K-POLL-06)."""
        problem = self.reader.coordinator.problem
        if problem is not None:
            if waits:
                self.wake()
            self.reader = self.reader._replace(coordinator=replace(self.reader.coordinator, problem=None))
            raise Thrown(problem)

    # --- timers ---

    def backoff(self, attempts: int) -> int:
        """Exponential, base 2, with jitter (K-HB-05)."""
        settings = self.reader.settings
        exponential = settings.retry_backoff_ms * 2 ** min(attempts, 30)
        return min(int(exponential * self.jitter), settings.retry_backoff_max_ms)

    def arm(self, before: Mapping[ReaderTimer, int], after: Mapping[ReaderTimer, int]) -> None:
        """Tell the difference between the timers before and after the step."""
        for timer in ReaderTimer:
            if timer in after and after[timer] != before.get(timer):
                self.emit(SetReaderTimer(timer, max(0, after[timer] - self.now)))
            elif timer in before and timer not in after:
                self.emit(CancelReaderTimer(timer))
