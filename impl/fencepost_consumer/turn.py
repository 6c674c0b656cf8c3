"""One step of a consumer, as a client library takes it.

The consumers of all client libraries read and commit by the same rules: a position is the offset of the next record, a
commit contains positions, and the coordinator and the leaders answer everyone alike. They differ in how they arrange
this work:

- *Java's classic consumer* has one thread for calls, and a call that waits runs its own loop: coordinator first, then
  one look-up at a time.
- *Java's new consumer* (KIP-848) has two threads. The application's thread passes events to a background thread, which
  sends requests and uses their responses when they arrive, with or without a call that waits for them.
- *kafka-python* has the order of the classic consumer, without leader epochs.

The modules of this package contain the common rules, and ask their ``Turn`` where libraries differ. ``Turn`` has the
usual answer. The classes in ``clients``, one for each library, override what their library does differently; each
override says why, with its rule or KIP.

A difference that is a fact is a class attribute. A difference in the work itself is a method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar

from fencepost.member.events import PollPart
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.events import CallReturned, OffsetAndMetadata, Problem
from fencepost_consumer.partition import Position
from fencepost_consumer.state import CallKind, Coordinator, Waiting
from fencepost_consumer.working_copy import WorkingCopy


class Turn(WorkingCopy, ABC):
    """A step of a client library: the working copy of the reader, and the library's differences from the others."""

    #: Whether the library is one of Java's. Some faults are in both of its consumers.
    java: ClassVar[bool] = True
    #: Whether requests and responses are handled by a background thread (N-POLL-01).
    in_background: ClassVar[bool] = False
    #: Whether offset requests and their errors are those of a consumer group (KIP-848, N-CMT-01 to N-CMT-06).
    kip_848: ClassVar[bool] = False

    #: Whether positions have leader epochs, and are validated (KIP-320, K-POS-07).
    uses_leader_epochs: ClassVar[bool] = True
    #: Whether fetched records of a partition that cannot be read now are dropped (K-PY-04).
    drops_unfetchable: ClassVar[bool] = False
    #: Whether a change of subscription or assignment drops the fetched records of partitions that are not in both
    #: (K-SUB-03).
    drops_records_early: ClassVar[bool] = False
    #: Whether a seek with a newer leader epoch forgets the leader that was known before it (K-POS-08).
    seek_forgets_old_leader: ClassVar[bool] = False
    #: Whether the topic of a request for the log's end is watched until the response (K-POS-08).
    watches_topics_of_lag: ClassVar[bool] = False
    #: Whether a request to a leader that has just failed to respond counts as sent and lost (K-FETCH-01).
    loses_requests_to_unavailable: ClassVar[bool] = False

    #: Whether a call that waits runs its own loop. It finds the coordinator before it uses any response, counts its own
    #: failed look-ups of the coordinator, and checks only at its beginning which partitions a look-up is for
    #: (K-FIND-01, K-POS-08).
    loops_in_calls: ClassVar[bool] = False
    #: Whether several look-ups of committed offsets may be in progress (N-CMT-04). Else there is one at a time, for one
    #: generation, and all calls share it (K-POS-08).
    several_lookups: ClassVar[bool] = False
    #: Whether a look-up for a manual assignment outlives the assignment of its partitions (K-POS-08).
    keeps_lookup_of_manual: ClassVar[bool] = False

    #: Whether the coordinator is looked up even if no request waits for it (N-POLL-02).
    looks_up_coordinator_unasked: ClassVar[bool] = False
    #: Whether a node that is no longer the coordinator may still answer earlier requests (K-ERR-13).
    keeps_former_connection: ClassVar[bool] = False

    #: Whether a commit waits for an unknown coordinator even if no call waits for the commit (N-CMT-06).
    commits_wait_for_coordinator: ClassVar[bool] = False
    #: Whether the reader retries the commit before a rebalance. Else the member does (K-CB-01, N-REC-04).
    retries_member_commits: ClassVar[bool] = False
    #: Whether at most one automatic commit is in flight; it is forgotten when it ends (K-OFF-19).
    one_automatic_commit: ClassVar[bool] = False

    # --- polls and positions ---

    @abstractmethod
    def poll(self, part: PollPart) -> bool:
        """Do the work of a poll before records are returned. Return whether records are returned after this part."""

    @abstractmethod
    def fetch_on(self, found: bool) -> None:
        """Fetch after a poll has collected its records; ``found``: a record, or a position that moved."""

    @abstractmethod
    def look_for_position(self, partition: TopicPartition, waiting: Waiting | None) -> CallReturned | None:
        """Look for a position, and return it once it is known. ``waiting`` None: the call has just begun."""

    def place(self, partition: TopicPartition, position: Position) -> None:
        """Read an assigned partition from ``position``, after its leader has confirmed it."""
        state = self.reader.partitions[partition]
        self.change(partition, state.seek(position) if self.uses_leader_epochs else state.seek_validated(position))

    def accepts_committed(self, partition: TopicPartition, found: OffsetAndMetadata) -> bool:
        """Return whether a committed offset that was looked up may become the position."""
        return True

    # --- calls that wait ---

    def throws_wakeup(self, kind: CallKind) -> bool:
        """Return whether a wakeup ends a waiting call before it checks whether it can return (K-POLL-06)."""
        return kind not in (CallKind.CLOSE, CallKind.CLOSE_COMMIT)

    @abstractmethod
    def commit_result(self, waiting: Waiting) -> CallReturned | None:
        """Return the result of a synchronous commit; None while it waits (K-OFF-18, K-OFF-21)."""

    @abstractmethod
    def close_result(self, waiting: Waiting) -> CallReturned | None:
        """Return the result of a close; None while it waits (K-LEAVE-04, N-CLOSE-01)."""

    def commit_attempted(self) -> None:
        """Run callbacks after an attempt of a synchronous commit, before its next attempt."""

    def seeks_coordinator(self, waiting: Waiting) -> bool:
        """Return whether the call looks up the coordinator only for asynchronous commits."""
        return False

    def continue_background(self) -> None:
        """Continue work that no call waits for, at the end of each step."""

    # --- the coordinator ---

    def coordinator_found(self, node: int) -> Coordinator:
        """Return what is known about a coordinator that was found."""
        return Coordinator(node)

    def coordinator_moved(self) -> None:
        """Handle a response that says the coordinator has moved, before it is forgotten."""

    @property
    def failed_lookup(self) -> Problem | None:
        """The fatal error of a look-up of the coordinator that the next call throws (K-FIND-01)."""
        return self.reader.coordinator.problem

    def throw_failed_lookup(self, *, waits: bool = False) -> None:
        """Throw that error; ``waits``: the call waits for the coordinator."""
        if self.failed_lookup is not None:
            self.check_coordinator(waits=waits)

    def forget_failed_lookup(self) -> None:
        """Forget that error where the application changes the subscription, if the member throws it."""

    def keeps_failed_lookup(self) -> bool:
        """Return whether such an error is kept for a later call to throw."""
        return False

    def fails_committed(self, *, kept: bool) -> bool:
        """Return whether such an error also ends look-ups of committed offsets; ``kept``: a later call throws it."""
        return not kept


def ids_of(turn: Turn, partitions: Iterable[TopicPartition]) -> Mapping[bytes, str]:
    """Return topic names by the ids to send; empty if the request sends names. Offset requests of consumer groups name
    topics by id if all ids are known (N-CMT-01, G-WIRE-30)."""
    known = turn.reader.topic_ids
    topics = {each.topic for each in partitions}
    by_id = turn.kip_848 and turn.rules.offsets_by_topic_id
    if not by_id or not topics <= known.keys():
        return {}
    return {known[name]: name for name in topics}
