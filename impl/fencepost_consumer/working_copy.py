"""The working copy of a reader during one step: what every client library needs to change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fencepost.member.events import FindCoordinator, RequestMetadata, Send
from fencepost.protocol.offset_messages import OffsetCommitRequest, OffsetFetchRequest
from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Quirks
from fencepost_consumer.broker import LeaderRequest
from fencepost_consumer.events import (
    CancelReaderTimer,
    Problem,
    ProblemKind,
    ReaderCommand,
    ReaderTimer,
    SendToLeader,
    SetReaderTimer,
)
from fencepost_consumer.partition import Leader, Partition
from fencepost_consumer.rules import ReaderRules
from fencepost_consumer.state import Reader, Sent


class Thrown(Exception):
    """Ends the application's call with a problem. As in Kafka, earlier effects of the call remain."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem


class WorkingCopy:
    """``reader`` is replaced as the step proceeds; ``now``: the event's time; ``jitter``: factor of back-offs."""

    def __init__(self, reader: Reader, now: int, jitter: float) -> None:
        self.reader = reader
        self.now = now
        self.jitter = jitter
        self.commands: list[ReaderCommand] = []

    @property
    def quirks(self) -> Quirks | None:
        """The differences of the profile's client from the intended one; None: there are none."""
        return self.reader.settings.quirks

    @property
    def rules(self) -> ReaderRules:
        """The small choices of the profile's client."""
        return self.reader.settings.reading_rules

    def emit(self, command: ReaderCommand) -> None:
        """Append a command for the driver."""
        self.commands.append(command)

    def change(self, partition: TopicPartition, state: Partition) -> None:
        """Replace the state of an assigned partition; its place in the order stays."""
        self.reader = self.reader._replace(partitions={**self.reader.partitions, partition: state})

    def to_the_end(self, partition: TopicPartition) -> None:
        """Move a partition to the end of the fetch order, after records of it were returned (K-SUB-14)."""
        rest = dict(self.reader.partitions)
        state = rest.pop(partition, None)
        if state is not None:
            self.reader = self.reader._replace(partitions={**rest, partition: state})

    # --- requests ---

    def number(self) -> int:
        """Return a fresh id for a request."""
        number = self.reader.next_request_id
        self.reader = self.reader._replace(next_request_id=number + 1)
        return number

    def fly(self, request_id: int, sent: Sent) -> None:
        """Record a request as sent and unanswered."""
        self.reader = self.reader._replace(sent={**self.reader.sent, request_id: sent})

    def landed(self, request_id: int) -> Sent | None:
        """Remove and return an answered request; None if the reader gave it up."""
        rest = dict(self.reader.sent)
        sent = rest.pop(request_id, None)
        self.reader = self.reader._replace(sent=rest)
        return sent

    def send(self, body: OffsetCommitRequest | OffsetFetchRequest, sent: Sent) -> int:
        """Send a request to the coordinator; return its id."""
        request_id = self.number()
        self.fly(request_id, sent)
        self.emit(Send(request_id, body, timeout_ms=self.reader.settings.request_timeout_ms))
        return request_id

    def send_to(self, node: int, body: LeaderRequest, sent: Sent) -> None:
        """Send a request to the leader of partitions."""
        request_id = self.number()
        self.fly(request_id, sent)
        self.emit(SendToLeader(node, request_id, body, timeout_ms=self.reader.settings.request_timeout_ms))

    # --- the cluster ---

    def leader(self, partition: TopicPartition) -> Leader:
        """Return the leader in the metadata; unknown if a newer epoch than the metadata's has been seen (K-POS-08)."""
        last = self.reader.last_epochs.get(partition)
        known = self.reader.leaders.get(partition, Leader())
        return Leader(None, last) if known.epoch is not None and last is not None and known.epoch < last else known

    def watch(self) -> None:
        """Restrict the known epochs to the watched topics, as new metadata does (K-POS-08)."""
        reader, watched = self.reader, self.reader.watched_topics
        metadata_epochs = {each: leader.epoch for each, leader in reader.leaders.items() if leader.epoch is not None}
        epochs = {**metadata_epochs, **reader.last_epochs}
        self.reader = reader._replace(last_epochs={each: at for each, at in epochs.items() if each.topic in watched})

    def saw_epoch(self, partition: TopicPartition, epoch: int | None) -> None:
        """Handle a leader epoch in a response: metadata with a lower one is old (K-POS-08). The first epoch of a
        partition must be from metadata; a response alone is not kept."""
        last = self.reader.last_epochs.get(partition)
        if epoch is not None and last is not None and epoch > last:
            self.reader = self.reader._replace(last_epochs={**self.reader.last_epochs, partition: epoch})
            self.want_metadata()

    def want_metadata(self) -> None:
        """Request metadata, unless a request is pending."""
        if not self.reader.metadata_requested:
            self.reader = self.reader._replace(metadata_requested=True)
            self.emit(RequestMetadata(self.reader.watched_topics))

    def left_alone(self, node: int) -> bool:
        """Return whether the broker failed to respond recently and must not be asked yet (K-FETCH-01)."""
        return self.now < self.reader.unavailable.get(node, self.now)

    def by_leader(self, partitions: Mapping[TopicPartition, Leader]) -> dict[int, list[TopicPartition]]:
        """Group partitions by the node of their leader. Request metadata if a partition has none."""
        nodes: dict[int, list[TopicPartition]] = {}
        for partition, leader in partitions.items():
            if leader.node is None:
                self.want_metadata()
            else:
                nodes.setdefault(leader.node, []).append(partition)
        return nodes

    def coordinator_known(self, *, at_once: bool = False) -> bool:
        """Return whether the coordinator is known. If not, look it up, unless a look-up is in progress or its back-off
        runs; ``at_once`` ignores the back-off (K-FIND-01)."""
        coordinator = self.reader.coordinator
        if coordinator.node is not None:
            return True
        waits = not at_once and coordinator.retry_at is not None and self.now < coordinator.retry_at
        if not coordinator.looking_up and not waits:
            self.reader = self.reader._replace(coordinator=replace(coordinator, looking_up=True, retry_at=None))
            self.emit(FindCoordinator(self.reader.settings.group_id))
        return False

    def wake(self) -> None:
        """Throw once if another thread has called wakeup (K-POLL-06)."""
        if self.reader.wakeup:
            self.reader = self.reader._replace(wakeup=False)
            raise Thrown(Problem(ProblemKind.WAKEUP))

    def check_coordinator(self, *, waits: bool = False) -> None:
        """Throw the fatal error of the last look-up, if no call has thrown it yet (K-FIND-01). A call that ``waits``
        for a look-up polls the network first, so a wakeup is thrown first (K-POLL-06)."""
        problem = self.reader.coordinator.problem
        if problem is not None:
            if waits:
                self.wake()
            self.reader = self.reader._replace(coordinator=replace(self.reader.coordinator, problem=None))
            raise Thrown(problem)

    # --- timers ---

    def backoff(self, attempts: int) -> int:
        """Return the back-off in ms: exponential, base 2, with jitter (K-HB-05)."""
        settings = self.reader.settings
        exponential = settings.retry_backoff_ms * 2 ** min(attempts, 30)
        return min(int(exponential * self.jitter), settings.retry_backoff_max_ms)

    def arm(self, before: Mapping[ReaderTimer, int], after: Mapping[ReaderTimer, int]) -> None:
        """Emit a command for each timer that the step set, changed or cancelled."""
        for timer in ReaderTimer:
            if timer in after and after[timer] != before.get(timer):
                self.emit(SetReaderTimer(timer, max(0, after[timer] - self.now)))
            elif timer in before and timer not in after:
                self.emit(CancelReaderTimer(timer))
