"""The state of a reader: everything that its next step depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Quirks
from fencepost_consumer.broker import FetchedPartition, Record
from fencepost_consumer.events import OffsetAndMetadata, Offsets, Problem, ReaderTimer
from fencepost_consumer.membership import Membership
from fencepost_consumer.partition import FetchState, Leader, Partition, Position
from fencepost_consumer.settings import ReaderSettings, ResetPolicy


class Mode(Enum):
    """How the consumer gets its partitions; the modes exclude each other (K-SUB-01)."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    REGEX = "regex"
    MANUAL = "manual"

    @property
    def automatic(self) -> bool:
        """Whether membership decides the assignment."""
        return self in (Mode.TOPICS, Mode.PATTERN, Mode.REGEX)


# --- requests without a response ---


@dataclass(frozen=True, slots=True)
class SentCommit:
    """The commit with this number. ``identity``: member id and epoch that it was sent with."""

    number: int
    identity: tuple[str, int]


@dataclass(frozen=True, slots=True)
class SentLookup:
    """A look-up of committed offsets. ``names``: topic names by id, if the request contains ids."""

    names: Mapping[bytes, str]


@dataclass(frozen=True, slots=True)
class SentReset:
    """ListOffsets for these partitions, with the policies that they had (K-POS-03)."""

    node: int
    policies: Mapping[TopicPartition, ResetPolicy]


@dataclass(frozen=True, slots=True)
class SentValidation:
    """OffsetsForLeaderEpoch for these positions (K-POS-07)."""

    node: int
    positions: Mapping[TopicPartition, Position]


@dataclass(frozen=True, slots=True)
class SentFetch:
    """A fetch from these offsets."""

    node: int
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class SentEnd:
    """ListOffsets for the log's end, to compute a lag."""

    node: int
    partition: TopicPartition


Sent: TypeAlias = SentCommit | SentLookup | SentReset | SentValidation | SentFetch | SentEnd

# --- commits ---


class Cause(Enum):
    """The cause of a commit."""

    INTERVAL = "interval"
    ASYNC = "commitAsync"
    SYNC = "commitSync"
    MEMBER = "the member"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a commit ended. ``retriable``: it may be sent again; ``stale``: its epoch was too old (N-CMT-02);
    ``unfound``: the coordinator is unknown."""

    problem: Problem | None = None
    retriable: bool = False
    stale: bool = False
    unfound: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that has not ended, or whose callback has not run.

    ``number``: commits are numbered in call order. ``label``: the application's callback, or the member's commit id.
    ``request_id`` None without ``outcome``: the commit waits for the coordinator, or until ``retry_at``.
    ``reported_attempts``: the number of attempts after which callbacks have run. ``identity``: the member's identity at
    the last attempt. ``ended``: its place in the order in which commits end. ``deadline_ms``: end of the retries of a
    commit before a reconciliation (N-REC-04)."""

    number: int
    cause: Cause
    offsets: Offsets
    label: int | None = None
    closing: bool = False
    deadline_ms: int | None = None
    request_id: int | None = None
    attempts: int = 0
    reported_attempts: int = 0
    retry_at: int | None = None
    identity: tuple[str, int] = ("", -1)
    outcome: Outcome | None = None
    ended: int = 0


# --- look-ups of committed offsets ---


class Purpose(Enum):
    """Purpose of a look-up of committed offsets."""

    POSITIONS = "positions"
    CALL = "committed"


#: Key of a look-up: its purpose, or the number of the new consumer's search that began it (N-POLL-03).
LookupKey: TypeAlias = Purpose | int


@dataclass(frozen=True, slots=True)
class Lookup:
    """A look-up of committed offsets. ``identity``: the member's identity when it began (K-POS-08). ``found``: the
    result, None for partitions without a committed offset; ``problem``: the failure. ``shares``: another look-up for
    the same partitions whose response this one waits for, without its own request (N-CMT-04)."""

    partitions: tuple[TopicPartition, ...]
    identity: tuple[str, int]
    deadline_ms: int
    request_id: int | None = None
    attempts: int = 0
    retry_at: int | None = None
    found: Mapping[TopicPartition, OffsetAndMetadata | None] | None = None
    problem: Problem | None = None
    shares: LookupKey | None = None

    @property
    def over(self) -> bool:
        """Whether the look-up has ended, with or without success."""
        return self.found is not None or self.problem is not None


# --- the new consumer's background ---


@dataclass(frozen=True, slots=True)
class Search:
    """A search for positions in progress in the new consumer's background (N-POLL-01, N-POLL-03).

    ``initializing``: partitions without a position when it began. ``lookup``: the look-up that it waits for;
    ``resets``: ids of its requests to leaders. ``polls``: a poll began it, and fetches follow it. ``deadline_ms``: the
    next search also throws a problem that occurs at or after this time."""

    number: int
    deadline_ms: int
    polls: bool
    initializing: tuple[TopicPartition, ...] = ()
    lookup: LookupKey | None = None
    resets: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PollEvent:
    """The event that the last poll of the new consumer left with the background (N-POLL-01). ``search``: the number of
    its search; ``problem``: the failure of that search. ``held``: the poll uses it without leaving a new event.
    ``lasted``: the application's thread has waited for the background during the poll."""

    search: int
    problem: Problem | None = None
    held: bool = False
    lasted: bool = False


# --- what was fetched ---


@dataclass(frozen=True, slots=True)
class Buffered:
    """Data fetched from one partition and not returned yet. ``offset``: the start of what is left. ``looked_at``: a
    poll has checked it, so ``records`` are those left, up to ``next_offset``. ``read``: a poll has returned some.
    ``in_line``: the next poll continues with it, and it has left the queue."""

    partition: TopicPartition
    offset: int
    fetched: FetchedPartition
    records: tuple[Record, ...] = ()
    next_offset: int = 0
    looked_at: bool = False
    read: bool = False
    in_line: bool = False


# --- calls that wait ---


class CallKind(Enum):
    """Kind of an application's call that has not returned."""

    COMMIT_SYNC = "commitSync"
    COMMITTED = "committed"
    POSITION = "position"
    CLOSE_COMMIT = "the commit of a close"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits until ``deadline_ms``, for this commit or partition. ``looked``: it has checked once, with the
    coordinator known, whether it can return. ``seeks``: it keeps looking for a coordinator for asynchronous commits,
    even if they fail meanwhile. ``search``: the new consumer's search for the position, while it runs; ``problem``: the
    failure of the last search; ``searched``: there was one."""

    kind: CallKind
    deadline_ms: int
    commit: int | None = None
    partition: TopicPartition | None = None
    looked: bool = False
    seeks: bool = False
    search: int | None = None
    searched: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Coordinator:
    """``node`` None: unknown. ``retry_at``: earliest time of the next look-up. ``problem``: the fatal error of the last
    one, for the next call that needs the coordinator."""

    node: int | None = None
    looking_up: bool = False
    failed_attempts: int = 0
    retry_at: int | None = None
    problem: Problem | None = None


class Reader(NamedTuple):
    """The reader of a consumer. Create it with ``Reader(settings)``; change it only with ``step``.

    Its mappings are never changed in place. The order of ``partitions`` is that of the next fetch (K-SUB-14).
    """

    settings: ReaderSettings
    mode: Mode = Mode.NONE
    topics: frozenset[str] = frozenset()
    membership: Membership = Membership()
    partitions: Mapping[TopicPartition, Partition] = MappingProxyType({})
    close_by_ms: int | None = None  #: a close of the new consumer has begun, and may wait until then (N-CLOSE-01)
    closed: bool = False

    # the cluster
    leaders: Mapping[TopicPartition, Leader] = MappingProxyType({})
    last_epochs: Mapping[TopicPartition, int] = MappingProxyType({})  #: highest seen (K-POS-08)
    topic_ids: Mapping[str, bytes] = MappingProxyType({})
    metadata_version: int = 0
    validated_version: int = 0  #: metadata that positions were last compared with (K-POS-07)
    metadata_requested: bool = False
    coordinator: Coordinator = Coordinator()

    # requests
    sent: Mapping[int, Sent] = MappingProxyType({})
    next_request_id: int = 0

    unavailable: Mapping[int, int] = MappingProxyType({})  #: brokers that did not respond, with the end of the back-off

    # positions
    lookups: Mapping[LookupKey, Lookup] = MappingProxyType({})
    lookup_problem: Problem | None = None  #: the next update of positions throws these three (N-POLL-03)
    reset_problem: Problem | None = None
    validation_problem: Problem | None = None
    ends: tuple[TopicPartition, ...] = ()  #: look up their log ends when they have a leader (K-POS-09)
    transient_topics: frozenset[str] = frozenset()  #: of log-end requests without a response (K-POS-08)

    # the new consumer's background
    committing: bool = False  #: an automatic commit, or one before a reconciliation, has no response (K-OFF-19)
    searches: tuple[Search, ...] = ()
    next_search: int = 0
    last_lookup: int | None = None  #: a search for the same partitions waits for it too (N-POLL-03)
    polled: PollEvent | None = None
    fetches_wanted: bool = False

    # records
    buffer: tuple[Buffered, ...] = ()

    # commits
    commits: tuple[Commit, ...] = ()
    next_commit: int = 0
    last_async: int = -1  #: the last asynchronous commit, until a synchronous one has waited for it
    outcomes: int = 0
    commit_due_ms: int | None = None  #: time of the next interval commit
    fenced: bool = False  #: an asynchronous commit was fenced (K-OFF-20)

    # calls
    waiting: Waiting | None = None
    wakeup: bool = False
    deadlines: Mapping[ReaderTimer, int] = MappingProxyType({})

    @property
    def quirks(self) -> Quirks | None:
        """The differences of the profile's client from the intended one; None: there are none."""
        return self.settings.quirks

    def position(self, partition: TopicPartition) -> int | None:
        """Return the offset of the next record to read; None without a valid position (K-SUB-04)."""
        state = self.partitions.get(partition)
        return None if state is None or state.valid is None else state.valid.offset

    @property
    def parting(self) -> bool:
        """Whether a close of the new consumer has committed: then only commits are sent (N-CLOSE-01)."""
        closes = self.closed or self.close_by_ms is not None
        return closes and (self.waiting is None or self.waiting.commit is None)

    @property
    def watched_topics(self) -> frozenset[str]:
        """The topics whose metadata matter: subscribed, assigned, or of a lag request."""
        return self.topics | {each.topic for each in self.partitions} | self.transient_topics

    def fetchable(self, partition: TopicPartition) -> bool:
        """Return whether records of the partition may be fetched and returned (K-SUB-03)."""
        state = self.partitions.get(partition)
        return state is not None and not state.paused and self.readable(partition) and state.valid is not None

    def readable(self, partition: TopicPartition) -> bool:
        """Return whether an assigned partition may be read, apart from a pause or a missing position (K-SUB-03)."""
        membership = self.membership
        if partition in membership.pending_revocation or partition in membership.pending_callback:
            return False
        return is_subscribed(self, partition.topic)

    @property
    def initializing(self) -> tuple[TopicPartition, ...]:
        """The partitions whose committed offset must be looked up (K-SUB-10)."""
        held = self.membership.pending_revocation if self.settings.reading_rules.revoked_not_initialised else ()
        return tuple(
            each
            for each, state in self.partitions.items()
            if state.state is FetchState.INITIALIZING and each not in held
        )

    @property
    def consumed(self) -> Offsets:
        """The offsets of an automatic commit: all valid positions (K-OFF-05)."""
        return tuple(
            (each, OffsetAndMetadata(state.valid.offset, state.valid.epoch))
            for each, state in self.partitions.items()
            if state.valid is not None
        )


def is_subscribed(reader: Reader, topic: str) -> bool:
    """Return whether the subscription allows reading the topic; a pattern or manual assignment allows any
    (K-SUB-03)."""
    if not reader.settings.reading_rules.dropped_topics_not_read:
        return True
    return reader.mode is not Mode.TOPICS or topic in reader.topics
