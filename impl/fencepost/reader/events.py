"""What goes into the reading half of a consumer and what comes out.

Three sides drive it. The *application* calls: polls, seeks, pauses, commits, asks. The *member* beside it tells what is
assigned, and wants commits. The *network and clock* report. Calls that both halves take (subscriptions, ``Poll``,
``Close``) and what both hear of the coordinator are the member's own events.

A poll is one turn of the consumer's loop, as the member's is, and never waits: it ends with ``PollReturned`` in the
same step. The calls that wait (``CommitSync``, ``AskCommitted``, ``AskPosition``, ``Close``) end with ``CallReturned``,
in this step or a later one.
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

from .broker import LeaderRequest, LeaderResponse, Record
from .membership import Membership
from .partition import Leader
from .settings import Reset


class ReaderTimer(Enum):
    """What the reading half wants to be woken for; both belong to a call that waits."""

    CALL = "call"  #: the call's timeout
    RETRY = "retry"  #: a back-off is over


class Refused(MisuseError, ValueError):
    """The application asks what Kafka's consumer refuses with an exception at once; nothing has changed.

    ``exception`` is Kafka's name of it."""

    def __init__(self, message: str, exception: str) -> None:
        super().__init__(message)
        self.exception = exception


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """What is committed for a partition: the next record to read, with the epoch of the last one."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


#: Per partition, each once, in the order of the call.
Offsets: TypeAlias = tuple[tuple[TopicPartition, OffsetAndMetadata], ...]

# --- the application's events ---


@dataclass(frozen=True, slots=True)
class Assign:
    """Read exactly these, without membership; none unsubscribes, so use ``Unsubscribe`` for that."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Hand out nothing of these until they are resumed."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """Hand out records of these again."""

    at_ms: int
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class Seek:
    """Read on from here."""

    at_ms: int
    partition: TopicPartition
    offset: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class SeekToEnd:
    """Read on from an end of the log, by default the first; none named means all assigned ones."""

    at_ms: int
    partitions: tuple[TopicPartition, ...] = ()
    to: Reset = Reset.EARLIEST


@dataclass(frozen=True, slots=True)
class CommitSync:
    """Commit these, or the positions of all, and wait for it; ``timeout_ms`` None: the default timeout."""

    at_ms: int
    offsets: Offsets | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CommitAsync:
    """Commit these, or the positions of all. ``callback``: a number that ``CommitCallback`` tells; None: nobody is to
    be told."""

    at_ms: int
    offsets: Offsets | None = None
    callback: int | None = None


@dataclass(frozen=True, slots=True)
class AskCommitted:
    """What is committed for these?"""

    at_ms: int
    partitions: tuple[TopicPartition, ...]
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AskPosition:
    """Which record is the next one? Waits until there is a position."""

    at_ms: int
    partition: TopicPartition
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AskLag:
    """How far is the position behind the log's end? Does not wait."""

    at_ms: int
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class Wakeup:
    """Another thread wants the poll or call that waits, or the next one, to throw."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class RunCallbacks:
    """A poll has begun: callbacks of commits that are over run before the member polls (K-POLL-01)."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class CommitOnClose:
    """The new consumer begins to close: what comes before its member leaves; ends with ``CallReturned`` (N-CLOSE-01).
    ``timeout_ms``: for the whole close; None: as long as for a request."""

    at_ms: int
    timeout_ms: int | None = None


# --- the member's ---


@dataclass(frozen=True, slots=True)
class MembershipChanged:
    """What the member is from now on."""

    at_ms: int
    membership: Membership


@dataclass(frozen=True, slots=True)
class AssignmentAdopted:
    """A join or a reconciliation takes over its assignment, be it the same as before. ``replaced``: what is owned is
    put in place, so that the order of fetches begins anew (K-SUB-14); ``adopted``: the listener knows, and the interval
    of commits begins anew (K-CB-05, N-REC-08)."""

    at_ms: int
    _: KW_ONLY
    replaced: bool = True
    adopted: bool = True


@dataclass(frozen=True, slots=True)
class CommitWanted:
    """The member's ``Commit``; answered by ``TellMember`` with a ``CommitFinished``. ``closing``: it is the last one,
    which waits for the asynchronous ones too (K-LEAVE-04)."""

    at_ms: int
    _: KW_ONLY
    commit_id: int
    partitions: frozenset[TopicPartition]
    closing: bool = False


# --- the network's and the clock's ---


@dataclass(frozen=True, slots=True)
class Arrived:
    """The answer to a request. One for a request that was given up is ignored."""

    at_ms: int
    _: KW_ONLY
    request_id: int
    body: OffsetCommitResponse | OffsetFetchResponse | LeaderResponse


@dataclass(frozen=True, slots=True)
class NeverArrived:
    """The connection broke or the request's timeout passed."""

    at_ms: int
    _: KW_ONLY
    request_id: int


@dataclass(frozen=True, slots=True)
class LeadersChanged:
    """The leaders as metadata has them from now on, and the topics' ids: of partitions that are not among them nothing
    is known any more."""

    at_ms: int
    leaders: tuple[tuple[TopicPartition, Leader], ...]
    topic_ids: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class ReaderTimerFired:
    """A timer that is set and due."""

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
    """What a call throws, or a callback is told, by Kafka's names."""

    API = "ApiException"  #: an error code as it is
    COMMIT_FAILED = "CommitFailedException"
    FENCED_INSTANCE = "FencedInstanceIdException"
    ILLEGAL_STATE = "IllegalStateException"  #: a code that no fetch knows
    INVALID_GROUP = "InvalidGroupIdException"
    KAFKA = "KafkaException"  #: a code that the request does not know
    NO_OFFSET = "NoOffsetForPartitionException"
    OUT_OF_RANGE = "OffsetOutOfRangeException"
    REBALANCE = "RebalanceInProgressException"
    RETRIABLE_COMMIT = "RetriableCommitFailedException"
    TIMEOUT = "TimeoutException"
    TRUNCATION = "LogTruncationException"
    WAKEUP = "WakeupException"


@dataclass(frozen=True, slots=True)
class Problem:
    """What a call throws. ``partitions``: those that it is about."""

    kind: ProblemKind
    error: ErrorCode | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class SendToLeader:
    """Send to this broker; answer ``Arrived``, or ``NeverArrived`` after ``timeout_ms``."""

    node: int
    request_id: int
    body: LeaderRequest
    _: KW_ONLY
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class TellMember:
    """Hand this event to the member beside."""

    event: CommitFinished | CommitRefused


@dataclass(frozen=True, slots=True)
class CommitCallback:
    """Call the application's callback of an asynchronous commit."""

    callback: int
    offsets: Offsets
    problem: Problem | None = None


#: Partitions in the order in which their records are handed out, each with its records in order.
Records: TypeAlias = tuple[tuple[TopicPartition, tuple[Record, ...]], ...]


@dataclass(frozen=True, slots=True)
class PollReturned:
    """This turn of the poll is over. ``advanced``: a position moved, be it without records, so that the whole poll ends
    (K-FETCH-02)."""

    records: Records = ()
    advanced: bool = False
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class CallReturned:
    """Any other call is over. ``value``: the position or lag, None if unknown; what is committed, None per partition
    where nothing is."""

    value: int | tuple[tuple[TopicPartition, OffsetAndMetadata | None], ...] | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class SetReaderTimer:
    """Replaces the timer of that kind."""

    timer: ReaderTimer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelReaderTimer:
    """Forget this timer."""

    timer: ReaderTimer


ReaderCommand: TypeAlias = (
    Send
    | SendToLeader
    | FindCoordinator
    | Disconnect
    | RequestMetadata
    | TellMember
    | CommitCallback
    | PollReturned
    | CallReturned
    | SetReaderTimer
    | CancelReaderTimer
)
