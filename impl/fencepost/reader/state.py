"""The state of the reading half: everything that its next step depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fencepost.protocol.partitions import TopicPartition
from fencepost.quirks import Quirks, varies

from .broker import FetchedPartition, Record
from .events import OffsetAndMetadata, Offsets, Problem, ReaderTimer
from .membership import Membership
from .partition import FetchState, Leader, Partition, Position
from .settings import ReaderSettings, ResetPolicy


class Mode(Enum):
    """How the partitions come about; one way excludes the others (K-SUB-01)."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    REGEX = "regex"
    MANUAL = "manual"

    @property
    def automatic(self) -> bool:
        """Whether membership says what is assigned."""
        return self in (Mode.TOPICS, Mode.PATTERN, Mode.REGEX)


# --- requests without an answer ---


@dataclass(frozen=True, slots=True)
class SentCommit:
    """The commit of this number; ``identity``: as whom it was sent."""

    number: int
    identity: tuple[str, int]


@dataclass(frozen=True, slots=True)
class SentLookup:
    """A look-up of committed offsets; topics by their ids, if it went out with those."""

    names: Mapping[bytes, str]


@dataclass(frozen=True, slots=True)
class SentReset:
    """ListOffsets for these, by the policies that they had (K-POS-03)."""

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
    """ListOffsets for the log's end, for a lag."""

    node: int
    partition: TopicPartition


Sent: TypeAlias = SentCommit | SentLookup | SentReset | SentValidation | SentFetch | SentEnd

# --- commits ---


class Cause(Enum):
    """Who wants a commit."""

    INTERVAL = "interval"
    ASYNC = "commitAsync"
    SYNC = "commitSync"
    MEMBER = "the member"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a commit ended. ``retriable``: it may be sent again; ``stale``: its epoch was too old (N-CMT-02).
    ``unfound``: there is no coordinator to send it to."""

    problem: Problem | None = None
    retriable: bool = False
    stale: bool = False
    unfound: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit that is not over, or whose callback has not run.

    ``number``: commits are numbered in the order of the calls. ``label``: the application's callback, or the member's
    commit id. ``request_id`` None without ``outcome``: it waits for the coordinator, or until ``retry_at``.
    ``told``: after how many attempts
    callbacks have run. ``identity``: who the member was at the last sending. ``ended``: outcomes in order of their
    coming. ``deadline_ms``: when one before a reconciliation is not tried again (N-REC-04)."""

    number: int
    cause: Cause
    offsets: Offsets
    label: int | None = None
    closing: bool = False
    deadline_ms: int | None = None
    request_id: int | None = None
    attempts: int = 0
    told: int = 0
    retry_at: int | None = None
    identity: tuple[str, int] = ("", -1)
    outcome: Outcome | None = None
    ended: int = 0


# --- look-ups of committed offsets ---


class Purpose(Enum):
    """What committed offsets are looked up for."""

    POSITIONS = "positions"
    CALL = "committed"


#: Which look-up: by its purpose, or by the number of the search of the new consumer that began it (N-POLL-03).
LookupKey: TypeAlias = Purpose | int


@dataclass(frozen=True, slots=True)
class Lookup:
    """A look-up. ``identity``: who the member was when it began (K-POS-08). ``found``: the answer, None where nothing
    is committed; ``problem``: or why there is none. ``shares``: the look-up for the same partitions whose answer is
    waited for, instead of one of its own (N-CMT-04)."""

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
        """Whether it has brought something."""
        return self.found is not None or self.problem is not None


# --- the new consumer's background ---


@dataclass(frozen=True, slots=True)
class Search:
    """A search for positions that is under way in the new consumer's background (N-POLL-01, N-POLL-03).

    ``initializing``: the partitions without a position when it began. ``lookup``: the look-up that it waits for;
    ``resets``: the requests to leaders, by their ids. ``polls``: it was begun by a poll, and fetches follow it.
    ``deadline_ms``: what it meets at or after this time is thrown by the next search too."""

    number: int
    deadline_ms: int
    polls: bool
    initializing: tuple[TopicPartition, ...] = ()
    lookup: LookupKey | None = None
    resets: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PollEvent:
    """What the last poll of the new consumer has left with the background (N-POLL-01): a search of this number, and
    what it met. ``held``: a poll goes by it that leaves no event of its own. ``lasted``: in the midst of the poll the
    application's thread has waited for the background."""

    search: int
    problem: Problem | None = None
    held: bool = False
    lasted: bool = False


# --- what was fetched ---


@dataclass(frozen=True, slots=True)
class Buffered:
    """What came of one partition and is not handed out. ``offset``: where what is left begins. ``looked_at``: it was
    found good when its turn came, so ``records`` are those that are left, up to ``next_offset``. ``read``: some
    were handed out. ``in_line``: the next poll goes on with it, and it stands in the queue no more."""

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
    """A call of the application that has not returned."""

    COMMIT_SYNC = "commitSync"
    COMMITTED = "committed"
    POSITION = "position"
    CLOSE_COMMIT = "the commit of a close"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits until ``deadline_ms``, for this commit or partition. ``looked``: it has looked once whether it
    can return at once, with the coordinator known. ``seeks``: it goes on looking for a coordinator for
    asynchronous commits, whatever becomes of them meanwhile. ``search``: the new consumer's search for its position,
    while that is under way, and ``problem`` what the last one met; ``searched``: there was one."""

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
    """``node`` None: unknown. ``retry_at``: when the next look-up may be sent. ``problem``: why the last one failed for
    good, for the next call that needs the coordinator."""

    node: int | None = None
    looking_up: bool = False
    failed_attempts: int = 0
    retry_at: int | None = None
    problem: Problem | None = None


class Reader(NamedTuple):
    """The reading half of a consumer. Make one with ``Reader(settings)``; change it with ``step`` only.

    Mappings in it are never changed. The order of ``partitions`` is that of the next fetch (K-SUB-14).
    """

    settings: ReaderSettings
    mode: Mode = Mode.NONE
    topics: frozenset[str] = frozenset()
    membership: Membership = Membership()
    partitions: Mapping[TopicPartition, Partition] = MappingProxyType({})
    close_by_ms: int | None = None  #: the new consumer has begun to close, and may wait until then (N-CLOSE-01)
    closed: bool = False

    # the cluster
    leaders: Mapping[TopicPartition, Leader] = MappingProxyType({})
    last_epochs: Mapping[TopicPartition, int] = MappingProxyType({})  #: highest seen (K-POS-08)
    topic_ids: Mapping[str, bytes] = MappingProxyType({})
    metadata_version: int = 0
    validated_version: int = 0  #: the last one that positions were held against (K-POS-07)
    metadata_requested: bool = False
    coordinator: Coordinator = Coordinator()

    # requests
    sent: Mapping[int, Sent] = MappingProxyType({})
    next_request_id: int = 0

    unavailable: Mapping[int, int] = MappingProxyType({})  #: brokers that did not answer, and until when they are left

    # positions
    lookups: Mapping[LookupKey, Lookup] = MappingProxyType({})
    lookup_problem: Problem | None = None  #: these three are thrown when positions are updated next (N-POLL-03)
    reset_problem: Problem | None = None
    validation_problem: Problem | None = None
    ends: tuple[TopicPartition, ...] = ()  #: whose end is asked for as soon as there is a leader (K-POS-09)
    transient_topics: frozenset[str] = frozenset()  #: of questions for ends that have no answer (K-POS-08)

    # the new consumer's background
    committing: bool = False  #: an automatic commit, or one before a reconciliation, has no answer (K-OFF-19)
    searches: tuple[Search, ...] = ()
    next_search: int = 0
    last_lookup: int | None = None  #: that a search for the same partitions waits for too (N-POLL-03)
    polled: PollEvent | None = None
    fetches_wanted: bool = False

    # records
    buffer: tuple[Buffered, ...] = ()

    # commits
    commits: tuple[Commit, ...] = ()
    next_commit: int = 0
    last_async: int = -1  #: the last of those that nobody waits for, until a synchronous one has waited for it
    outcomes: int = 0
    commit_due_ms: int | None = None  #: of the interval
    fenced: bool = False  #: an asynchronous commit was (K-OFF-20)

    # calls
    waiting: Waiting | None = None
    wakeup: bool = False
    deadlines: Mapping[ReaderTimer, int] = MappingProxyType({})

    @property
    def quirks(self) -> Quirks | None:
        """What the client of the profile does otherwise."""
        return self.settings.quirks

    def position(self, partition: TopicPartition) -> int | None:
        """The next record to read, if there is a valid position (K-SUB-04)."""
        state = self.partitions.get(partition)
        return None if state is None or state.valid is None else state.valid.offset

    @property
    def parting(self) -> bool:
        """Whether a close of the new consumer has committed: only commits are sent from then on (N-CLOSE-01)."""
        closes = self.closed or self.close_by_ms is not None
        return closes and (self.waiting is None or self.waiting.commit is None)

    @property
    def watched_topics(self) -> frozenset[str]:
        """The topics whose metadata count: those of the subscription, and of what is assigned or asked about."""
        return self.topics | {each.topic for each in self.partitions} | self.transient_topics

    def fetchable(self, partition: TopicPartition) -> bool:
        """Whether records of the partition may be asked for and handed out (K-SUB-03)."""
        state = self.partitions.get(partition)
        return state is not None and not state.paused and self.readable(partition) and state.valid is not None

    def readable(self, partition: TopicPartition) -> bool:
        """Whether nothing but a pause or a missing position stands between an assigned partition and its records
        (K-SUB-03)."""
        membership = self.membership
        if partition in membership.pending_revocation or partition in membership.pending_callback:
            return False
        return is_subscribed(self, partition.topic)

    @property
    def initializing(self) -> tuple[TopicPartition, ...]:
        """The partitions whose committed offset is to be looked up (K-SUB-10)."""
        held = not_initialised(self)
        return tuple(
            each
            for each, state in self.partitions.items()
            if state.state is FetchState.INITIALIZING and each not in held
        )

    @property
    def consumed(self) -> Offsets:
        """What an automatic commit commits: every valid position (K-OFF-05)."""
        return tuple(
            (each, OffsetAndMetadata(state.valid.offset, state.valid.epoch))
            for each, state in self.partitions.items()
            if state.valid is not None
        )


@varies
def is_subscribed(reader: Reader, topic: str) -> bool:
    """Whether the present subscription lets the topic be read; a pattern or an assignment by hand lets any
    (K-SUB-03)."""
    return reader.mode is not Mode.TOPICS or topic in reader.topics


@varies
def not_initialised(reader: Reader) -> frozenset[TopicPartition]:
    """The partitions for which no committed offset is looked up, whatever their state (K-SUB-10)."""
    return reader.membership.pending_revocation
