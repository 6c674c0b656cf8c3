"""The client library with a background thread: Java's new consumer.

The application's thread passes events to the background thread, and waits for their results or not.
``fencepost_consumer.background`` has the work of that thread.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.member.events import PollPart
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer import background, calls, commits
from fencepost_consumer.events import CallReturned, OffsetAndMetadata, Problem
from fencepost_consumer.state import CallKind, Coordinator, Waiting
from fencepost_consumer.turn import Turn


class JavaAsyncConsumer(Turn):
    """``AsyncKafkaConsumer``, with ``group.protocol=consumer`` (KIP-848, KIP-945; ``CommitRequestManager``,
    ``OffsetsRequestManager``, ``CoordinatorRequestManager``).

    Requests belong to managers that the background polls, so none waits for a call of the application (8.11, 8.12)."""

    in_background = True  # N-POLL-01
    kip_848 = True  # N-CMT-01 to N-CMT-06
    drops_records_early = True  # K-SUB-03: before the background learns of the change
    seek_forgets_old_leader = True  # K-POS-08: the background sets the position after it has seen the epoch
    watches_topics_of_lag = True  # K-POS-08
    loses_requests_to_unavailable = True  # K-FETCH-01
    several_lookups = True  # N-CMT-04
    looks_up_coordinator_unasked = True  # N-POLL-02
    keeps_former_connection = True  # K-ERR-13
    commits_wait_for_coordinator = True  # N-CMT-06
    retries_member_commits = True  # N-REC-04
    one_automatic_commit = True  # K-OFF-19

    def poll(self, part: PollPart) -> bool:
        """Leave an event with the background. Records are returned in the last part of a pass (N-POLL-01)."""
        background.poll(self, part)
        return part in (PollPart.WHOLE, PollPart.END)

    def fetch_on(self, found: bool) -> None:
        """Ask the background for fetches only if the poll ends here; else its next event asks (N-POLL-01)."""
        if found:
            background.want_fetches(self)

    def look_for_position(self, partition: TopicPartition, waiting: Waiting | None) -> CallReturned | None:
        """Let the background search, one search after another (N-POLL-05)."""
        return None if waiting is None else background.position(self, waiting, partition)

    def accepts_committed(self, partition: TopicPartition, found: OffsetAndMetadata) -> bool:
        """The background takes the epoch of every committed offset, whatever the partition's state, and sets no
        position of a partition that is about to be revoked or lost (K-POS-08)."""
        self.saw_epoch(partition, found.leader_epoch)
        return partition in self.reader.initializing

    def continue_background(self) -> None:
        """Use look-ups that have ended, and send those that wait (N-POLL-03)."""
        background.continue_lookups(self)

    # --- calls that wait ---

    def throws_wakeup(self, kind: CallKind) -> bool:
        """``position`` throws a wakeup between its searches, and they continue (K-POLL-06)."""
        return super().throws_wakeup(kind) and kind is not CallKind.POSITION

    def commit_result(self, waiting: Waiting) -> CallReturned | None:
        """Wait for the last asynchronous commit before the commit itself, then run callbacks once (K-OFF-18)."""
        if commits.last_async(self):
            return None
        commit = next(each for each in self.reader.commits if each.number == waiting.commit)
        if not commit.reported_attempts:
            self.reader = self.reader._replace(last_async=-1)
            commits.set_reported_attempts(self, commit, 1)
            commits.run_callbacks(self)
        return None if commit.outcome is None else CallReturned(problem=commit.outcome.problem)

    def close_result(self, waiting: Waiting) -> CallReturned | None:
        """Wait for the commit of the close, and for the last asynchronous commit (N-CLOSE-01)."""
        if not calls.close_has_committed(self, waiting):
            return None
        if commits.last_async(self) and self.now < waiting.deadline_ms:
            return None
        commits.last_callbacks(self)
        return CallReturned()

    # --- the coordinator ---

    def coordinator_found(self, node: int) -> Coordinator:
        """Keep a back-off before the next look-up, and a failure that no poll has thrown yet (K-FIND-01)."""
        return Coordinator(node, retry_at=self.now + self.backoff(0), problem=self.reader.coordinator.problem)

    @property
    def failed_lookup(self) -> Problem | None:
        """No call throws the failure except the next poll (K-FIND-01)."""
        return None

    def forget_failed_lookup(self) -> None:
        """On subscribe the member throws the failure; unsubscribe ignores it (N-TR-07)."""
        self.reader = self.reader._replace(coordinator=replace(self.reader.coordinator, problem=None))

    def keeps_failed_lookup(self) -> bool:
        """Without membership the next poll throws the failure. In a group the member does. A synchronous commit gets it
        as its result."""
        return not self.reader.mode.automatic

    def fails_committed(self, *, kept: bool) -> bool:
        """The failure also ends the look-ups that wait for the coordinator."""
        return True
