"""Events and commands of a reader.

Events have three sources. The *application* calls: polls, seeks, pauses, commits, questions. The *member* reports its
assignment, and requests commits. The *network and the clock* report. Calls that both member and reader handle
(subscriptions, ``Poll``, ``Close``), and the coordinator's events, are the member's own classes.

A poll is one pass of the consumer's loop, like the member's, and never waits: it ends with ``PollReturned`` in the same
step. Calls that wait (``CommitSync``, ``AskCommitted``, ``AskPosition``, ``Close``) end with ``CallReturned``, in this
step or a later one.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import TypeAlias

from fencepost.member.events import (
    Close,
    CommitFinished,
    CommitRefused,
    CoordinatorFound,
    CoordinatorLost,
    Disconnect,
    FindCoordinator,
    LookupFailed,
    Poll,
    RequestMetadata,
    Send,
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
    Unsubscribe,
)
from fencepost.protocol.errors import ErrorCode, MisuseError
from fencepost.protocol.offset_messages import OffsetCommitResponse, OffsetFetchResponse
from fencepost.protocol.partitions import TopicPartition
from fencepost_consumer.broker import LeaderRequest, LeaderResponse, Record
from fencepost_consumer.membership import Membership
from fencepost_consumer.partition import Leader
from fencepost_consumer.settings import Reset


class ReaderTimer(Enum):
    """Timers of a reader; both belong to a call that waits."""

    CALL = "call"  #: the call's timeout
    RETRY = "retry"  #: a back-off is over


class Refused(MisuseError, ValueError):
    """Raised for a call that Kafka's consumer rejects immediately with an exception; nothing has changed.

    ``exception``: the name of Kafka's exception."""

    def __init__(self, message: str, exception: str) -> None:
        super().__init__(message)
        self.exception = exception


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset: the next record to read, with the epoch of the last one."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


#: Offsets by partition, each once, in the order of the call.
Offsets: TypeAlias = tuple[tuple[TopicPartition, OffsetAndMetadata], ...]

# --- the application's events ---


@dataclass(frozen=True, slots=True)
class Assign:
    """Read exactly these partitions, without membership. To drop all, use ``Unsubscribe``."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Return no records of these partitions until they are resumed."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """Return records of these partitions again."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Seek:
    """Continue reading at this offset."""

    at_ms: int
    partition: TopicPartition
    offset: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class SeekToEnd:
    """Continue reading at an end of the log, by default the start. No partition means all assigned ones."""

    at_ms: int
    partitions: tuple[TopicPartition, ...] = ()
    to: Reset = Reset.EARLIEST


@dataclass(frozen=True, slots=True)
class CommitSync:
    """Commit these offsets, or all positions, and wait; ``timeout_ms`` None: the default timeout."""

    at_ms: int
    offsets: Offsets | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CommitAsync:
    """Commit these offsets, or all positions. ``callback``: a number that ``CommitCallback`` returns; None: there is no
    callback."""

    at_ms: int
    offsets: Offsets | None = None
    callback: int | None = None


@dataclass(frozen=True, slots=True)
class AskCommitted:
    """Get the committed offsets of these partitions."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AskPosition:
    """Get the offset of the next record. Waits until there is a position."""

    at_ms: int
    partition: TopicPartition
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AskLag:
    """Get the distance of the position from the log's end. Does not wait."""

    at_ms: int
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Wakeup:
    """Another thread wants the waiting poll or call, or else the next one, to throw."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class RunCallbacks:
    """A poll has begun: run callbacks of commits that have ended, before the member polls (K-POLL-01)."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CommitOnClose:
    """The new consumer begins to close; this part comes before its member leaves, and ends with ``CallReturned``
    (N-CLOSE-01). ``timeout_ms``: for the whole close; None: the request timeout."""

    at_ms: int
    timeout_ms: int | None = None


# --- the member's events ---


@dataclass(frozen=True, slots=True)
class MembershipChanged:
    """The member's new view of its membership."""

    at_ms: int
    membership: Membership


@dataclass(frozen=True, slots=True)
class AssignmentAdopted:
    """A join or reconciliation takes over its assignment, changed or not. ``replaced``: the owned partitions are set
    again, so the fetch order starts again (K-SUB-14). ``adopted``: the listener knows, and the interval of commits
    starts again (K-CB-05, N-REC-08)."""

    at_ms: int
    _: KW_ONLY
    replaced: bool = True
    adopted: bool = True


@dataclass(frozen=True, slots=True)
class CommitWanted:
    """The member's ``Commit``; ``PassToMember`` with a ``CommitFinished`` answers it. ``closing``: the last commit,
    which also waits for the asynchronous ones (K-LEAVE-04)."""

    at_ms: int
    _: KW_ONLY
    commit_id: int
    partitions: frozenset[TopicPartition]
    closing: bool = False


# --- the network's and the clock's events ---


@dataclass(frozen=True, slots=True)
class Arrived:
    """A response to a request. The reader ignores it if it gave up the request."""

    at_ms: int
    _: KW_ONLY
    request_id: int
    body: OffsetCommitResponse | OffsetFetchResponse | LeaderResponse


@dataclass(frozen=True, slots=True)
class NeverArrived:
    """The connection broke, or the request timed out."""

    at_ms: int
    _: KW_ONLY
    request_id: int


@dataclass(frozen=True, slots=True)
class LeadersChanged:
    """The leaders and topic ids in new metadata. Of other partitions, nothing is known any longer."""

    at_ms: int
    leaders: tuple[tuple[TopicPartition, Leader], ...]
    topic_ids: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderTimerFired:
    """A timer fired that is set and due."""

    at_ms: int
    timer: ReaderTimer


ReaderEvent: TypeAlias = (
    Subscribe
    | SubscribePattern
    | SubscribeRegex
    | Unsubscribe
    | Assign
    | Pause
    | Resume
    | Seek
    | SeekToEnd
    | RunCallbacks
    | CommitOnClose
    | Poll
    | CommitSync
    | CommitAsync
    | AskCommitted
    | AskPosition
    | AskLag
    | Wakeup
    | Close
    | MembershipChanged
    | AssignmentAdopted
    | CommitWanted
    | Arrived
    | NeverArrived
    | CoordinatorFound
    | CoordinatorLost
    | LookupFailed
    | LeadersChanged
    | ReaderTimerFired
)


# --- commands ---


class ProblemKind(Enum):
    """The exception of a call or callback, by Kafka's name."""

    API = "ApiException"  #: the error code's own exception
    COMMIT_FAILED = "CommitFailedException"
    FENCED_INSTANCE = "FencedInstanceIdException"
    ILLEGAL_STATE = "IllegalStateException"  #: a code that is not defined for fetches
    INVALID_GROUP = "InvalidGroupIdException"
    KAFKA = "KafkaException"  #: a code that is not defined for the request
    NO_OFFSET = "NoOffsetForPartitionException"
    OUT_OF_RANGE = "OffsetOutOfRangeException"
    REBALANCE = "RebalanceInProgressException"
    RETRIABLE_COMMIT = "RetriableCommitFailedException"
    TIMEOUT = "TimeoutException"
    TRUNCATION = "LogTruncationException"
    WAKEUP = "WakeupException"


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem that a call throws. ``partitions``: the partitions concerned."""

    kind: ProblemKind
    error: ErrorCode | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class SendToLeader:
    """Send to this broker; then pass ``Arrived``, or ``NeverArrived`` after ``timeout_ms``."""

    node: int
    request_id: int
    body: LeaderRequest
    _: KW_ONLY
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class PassToMember:
    """Pass this event to the member."""

    event: CommitFinished | CommitRefused


@dataclass(frozen=True, slots=True)
class CommitCallback:
    """Call the application's callback for an asynchronous commit."""

    callback: int
    offsets: Offsets
    problem: Problem | None = None


#: Partitions in the order in which polls return them, each with its records in order.
Records: TypeAlias = tuple[tuple[TopicPartition, tuple[Record, ...]], ...]


@dataclass(frozen=True, slots=True)
class PollReturned:
    """This pass of the poll is over. ``advanced``: a position moved, perhaps without records, so the whole poll ends
    (K-FETCH-02)."""

    records: Records = ()
    advanced: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class CallReturned:
    """Any other call is over. ``value``: the position or lag, None if unknown; or the committed offsets, None for
    partitions without one."""

    value: int | tuple[tuple[TopicPartition, OffsetAndMetadata | None], ...] | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class SetReaderTimer:
    """Set the timer, replacing the one of the same kind."""

    timer: ReaderTimer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelReaderTimer:
    """Cancel this timer."""

    timer: ReaderTimer


ReaderCommand: TypeAlias = (
    Send
    | SendToLeader
    | FindCoordinator
    | Disconnect
    | RequestMetadata
    | PassToMember
    | CommitCallback
    | PollReturned
    | CallReturned
    | SetReaderTimer
    | CancelReaderTimer
)
