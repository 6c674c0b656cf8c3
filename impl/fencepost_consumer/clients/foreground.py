"""The client libraries whose calls do their own work: Java's classic consumer, and kafka-python.

A poll runs the whole order of work on the application's thread, and a call that waits continues with each event. Only
heartbeats have a thread.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import PollPart
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import commits, committed, fetching, positions
from fencepost_consumer.events import CallReturned, PollReturned, Problem, ProblemKind
from fencepost_consumer.state import CallKind, Commit, Purpose, SentCommit, SentLookup, Waiting
from fencepost_consumer.turn import Turn


class ForegroundConsumer(Turn):
    """What Java's classic consumer and kafka-python do alike (8.6 to 8.8)."""

    def poll(self, part: PollPart) -> bool:
        """Run steps 2, 6 and 7 of K-POLL-01. During a rebalance, position look-ups wait, but records are returned
        (K-POLL-05)."""
        commits.run_callbacks(self)
        if not self.reader.mode.automatic or self.reader.membership.settled:
            commits.maybe_auto_commit(self)
            positions.update(self)
        return True

    def fetch_on(self, found: bool) -> None:
        """Send the next fetches, even if there are records to return (K-POLL-04)."""
        fetching.send_fetches(self)

    def look_for_position(self, partition: TopicPartition, waiting: Waiting | None) -> CallReturned | None:
        """Update positions as a poll does. Each pass may enable the next one: after a committed offset comes its
        validation."""
        if waiting is not None and (self.now >= waiting.deadline_ms or committed.blocks(self)):
            return None
        if self.reader.initializing and Purpose.POSITIONS in self.reader.lookups and waiting is not None:
            positions.fill(self)  # committed offsets have been found: set the positions of all partitions
        before = None
        while before != self.reader.partitions and self.reader.position(partition) is None:
            before = self.reader.partitions
            positions.update(self)
        offset = self.reader.position(partition)
        return None if offset is None else CallReturned(offset)

    def _commit_of(self, waiting: Waiting | None) -> Commit | None:
        return next((each for each in self.reader.commits if waiting and each.number == waiting.commit), None)

    def commit_attempted(self) -> None:
        """Run callbacks after an attempt of the call's synchronous commit (K-OFF-18). An attempt is over when it has a
        response, or when the call's time is over."""
        waiting = self.reader.waiting
        commit = self._commit_of(waiting)
        if waiting is None or commit is None or commit.outcome is not None:
            return
        over = (
            commit.attempts > commit.reported_attempts if commit.request_id is None else self.now >= waiting.deadline_ms
        )
        if over:
            commits.set_reported_attempts(self, commit, commit.attempts)
            commits.run_callbacks(self, throw=waiting.kind is not CallKind.CLOSE)

    def commit_result(self, waiting: Waiting) -> CallReturned | None:
        """Wait for the commit. Callbacks of earlier asynchronous commits run first. A commit of nothing waits for
        these commits (K-OFF-21)."""
        commit = self._commit_of(waiting)
        assert commit is not None
        self.commit_attempted()
        if commit.outcome is None:
            return None
        if waiting.seeks:
            self.check_coordinator()
            if self.now < waiting.deadline_ms and self.seeks_coordinator(waiting):
                return None
        if not commit.outcome.unfound:
            commits.run_callbacks(self)
        if not commit.offsets and commits.flying_async(self):
            return None
        return CallReturned(problem=commit.outcome.problem)

    def close_result(self, waiting: Waiting) -> CallReturned | None:
        """Wait for the commit, for asynchronous commits and for other requests to the coordinator (K-LEAVE-04). The
        last callbacks run even if the commits failed."""
        self.commit_attempted()
        commit = self._commit_of(waiting)
        late, failed = self.now >= waiting.deadline_ms, self.reader.coordinator.problem
        if waiting.seeks and failed is not None:
            commits.last_callbacks(self)
            return CallReturned(problem=Problem(ProblemKind.KAFKA, failed.error))
        still_seeks = waiting.seeks and not late and self.seeks_coordinator(waiting)
        if commit is not None and commit.outcome is not None and not still_seeks:
            if not commit.outcome.unfound:
                commits.run_callbacks(self, throw=False)
            if commit.offsets or not commits.flying_async(self):
                commits.give_up(self, commit.number)
                commit = None
        elif waiting.seeks and not still_seeks:
            commits.run_callbacks(self, throw=False)
        pending = commit is not None or (not late and self.seeks_coordinator(waiting)) or commits.open_async(self)
        if (pending or self.close_awaits_responses()) and not late:
            return None
        commits.last_callbacks(self)
        return CallReturned()

    def close_awaits_responses(self) -> bool:
        """Return whether a close waits for responses of the coordinator, apart from its commits."""
        return False


class JavaClassicConsumer(ForegroundConsumer):
    """``ClassicKafkaConsumer``, with ``group.protocol=classic`` (``ConsumerCoordinator``, ``OffsetFetcher``).

    A call that waits runs ``client.poll`` in its own loop, so what it does first it does alone: it finds the
    coordinator, then waits for its look-up (K-FIND-01, K-POS-08)."""

    loops_in_calls = True
    keeps_lookup_of_manual = True  # K-POS-08: the pending look-up is replaced only by one for other partitions

    def fetch_on(self, found: bool) -> None:
        """First compare positions with new metadata, even in a poll where a rebalance prevents position look-ups: each
        fetch does so (K-POS-07)."""
        positions.hold_against_metadata(self)
        super().fetch_on(found)

    def keeps_failed_lookup(self) -> bool:
        """Without membership, the next call that needs the coordinator throws the failure, even if another call
        started the look-up (K-FIND-01). In a group the member throws it."""
        waiting = self.reader.waiting
        if waiting is not None and waiting.seeks:
            own = any(each.number == waiting.commit for each in self.reader.commits)
            return waiting.kind is CallKind.COMMIT_SYNC or not own  # the commit of a close has no one to report to
        asks = waiting is None or waiting.kind in (CallKind.COMMITTED, CallKind.POSITION)
        return asks and not self.reader.mode.automatic

    def fails_committed(self, *, kept: bool) -> bool:
        """Without membership, a look-up stays for the next call, which looks up the coordinator again (K-POS-08)."""
        return not kept and self.reader.mode.automatic

    def seeks_coordinator(self, waiting: Waiting) -> bool:
        """A close first looks up an unknown coordinator for asynchronous commits that wait for it (K-LEAVE-04), and a
        call continues the search that ``coordinator_moved`` began (K-OFF-21)."""
        if self.reader.coordinator.node is not None:
            return False
        own = any(each.number == waiting.commit and each.outcome is None for each in self.reader.commits)
        unsent = waiting.kind is CallKind.CLOSE and not own and commits.unsent_async(self)
        return (waiting.seeks or unsent) and not self.coordinator_known()

    def coordinator_moved(self) -> None:
        """A call that waits for other asynchronous commits looks up the coordinator before it sees that they failed
        with the connection (K-OFF-21)."""
        waiting = self.reader.waiting
        commit = self._commit_of(waiting)
        if waiting is None or commit is None or self.reader.fenced or not commits.flying_async(self):
            return
        if not commit.offsets:
            commits.run_callbacks(self)
            self.reader = self.reader._replace(waiting=replace(waiting, seeks=True))

    def close_awaits_responses(self) -> bool:
        """A close waits until no request to the coordinator is outstanding, as long as it is known (K-LEAVE-04)."""
        asked = any(isinstance(each, SentCommit | SentLookup) for each in self.reader.sent.values())
        return self.reader.coordinator.node is not None and (self.reader.membership.asks or asked)


class KafkaPythonConsumer(ForegroundConsumer):
    """kafka-python, as article S1 describes it (K-PY-01 to K-PY-04)."""

    java = False
    uses_leader_epochs = False  # K-PY-02: positions are set without validation
    drops_unfetchable = True  # K-PY-04

    def poll(self, part: PollPart) -> bool:
        """Return nothing during a rebalance: the poll blocks until it is done (K-PY-01)."""
        if self.reader.mode.automatic and not self.reader.membership.settled:
            self.emit(PollReturned())
            return False
        return super().poll(part)
