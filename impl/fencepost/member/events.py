"""What goes into a member and what comes out.

Two sides drive a member. The *application* calls: subscribe, poll, unsubscribe, close, and says how its rebalance
listener fared. The *network and clock* report: answers, lost connections, the coordinator's address, metadata, timers.
Each event carries the time at which it is handled.

A poll of the Java consumer is a loop; ``Poll`` is one turn of that loop (K-POLL-01, steps 1 to 6). A turn never waits
for the network: it ends with ``Returned``, in the same step or, if a listener has to run, in the step of the
``ListenerDone`` that answers the last ``Listener`` command. Deliver answers while nobody polls only as far as a client
would read them: its heartbeat thread reads while the member is in a generation, a parked JoinGroup waits for a poll.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import TypeAlias

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import RequestBody, ResponseBody

from .partitions import TopicPartition


class CloseOption(Enum):
    """How to leave (K-LEAVE-05, KIP-1092)."""

    DEFAULT = "default"
    LEAVE_GROUP = "leave group"
    REMAIN_IN_GROUP = "remain in group"


class CommitResult(Enum):
    """How the commit that a member asked for ended (K-CB-01)."""

    DONE = "done"
    RETRIABLE = "retriable"
    FAILED = "failed"


class MemberTimer(Enum):
    """What a member wants to be woken for."""

    HEARTBEAT = "heartbeat"  #: the next heartbeat is due
    SESSION = "session"  #: no good heartbeat for a session timeout (K-HB-02)
    POLL = "poll"  #: no poll for a poll interval (K-HB-03)
    RETRY = "retry"  #: back-off of the join loop (K-ERR-14), after which a poll goes on; or of a commit (N-REC-04)
    LOOKUP = "lookup"  #: back-off of the coordinator look-up (K-FIND-01)
    BACKOFF = "backoff"  #: the least gap between heartbeats to a consumer group (N-HB-07)


# --- the application's events ---


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Subscribe to these topics; none unsubscribes, so use ``Unsubscribe`` for that."""

    at_ms: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """Subscribe to the topics whose whole name matches a regular expression (K-JOIN-15)."""

    at_ms: int
    pattern: str


@dataclass(frozen=True, slots=True)
class SubscribeRegex:
    """Subscribe to the topics that match an RE2 expression in the eyes of a consumer group's coordinator (N-HB-02)."""

    at_ms: int
    regex: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The application subscribes to nothing any more."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class EnforceRebalance:
    """The application asks for a rebalance."""

    at_ms: int
    reason: str = ""


class PollPart(Enum):
    """Which part of a poll. The new consumer's two threads have theirs in turn, and so have its member and its reader,
    where they stand side by side (N-POLL-01)."""

    WHOLE = "all of it"
    RESUMED = "what comes after a commit that was over at once"
    BEGIN = "the application's thread hands an event over"
    BACKGROUND = "the background works it off"
    ERRANDS = "the application's thread does what the background has asked for"
    END = "it hands out records"
    BROKEN = "it throws"


@dataclass(frozen=True, slots=True)
class Poll:
    """The application polls. When a poll is RESUMED a join goes on where it was, and nothing that a poll begins with is
    looked at again (K-CB-01)."""

    at_ms: int
    part: PollPart = PollPart.WHOLE


@dataclass(frozen=True, slots=True)
class Close:
    """The application closes its consumer; nothing comes after it. ``timeout_ms``: how long it may wait in the end for
    what was sent (K-LEAVE-04); None: as long as for a request."""

    at_ms: int
    option: CloseOption = CloseOption.DEFAULT
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ListenerDone:
    """The listener call that was asked for last returned, or threw ``error``."""

    at_ms: int
    error: str | None = None


# --- the network's and the clock's events ---


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request. One for a request that the member gave up is ignored."""

    at_ms: int
    _: KW_ONLY
    request_id: int
    body: ResponseBody


@dataclass(frozen=True, slots=True)
class RequestLost:
    """The connection broke or the request's timeout passed (K-ERR-13)."""

    at_ms: int
    _: KW_ONLY
    request_id: int


@dataclass(frozen=True, slots=True)
class CoordinatorLost:
    """The connection to the coordinator cannot be used (K-FIND-01). ``moved``: an answer to the other half of the
    consumer said that it is no coordinator (K-OFF-11, K-ERR-13)."""

    at_ms: int
    _: KW_ONLY
    moved: bool = False


@dataclass(frozen=True, slots=True)
class CoordinatorFound:
    """The look-up has an answer: the node to ask from now on."""

    at_ms: int
    _: KW_ONLY
    node: int


@dataclass(frozen=True, slots=True)
class LookupFailed:
    """``error`` None: no broker answered."""

    at_ms: int
    error: ErrorCode | None


@dataclass(frozen=True, slots=True)
class MetadataChanged:
    """The cluster's topics as the client knows them from now on; also the answer to ``RequestMetadata``."""

    at_ms: int
    topics: tuple[Topic, ...]


@dataclass(frozen=True, slots=True)
class CommitFinished:
    """One for a commit that the member gave up is ignored."""

    at_ms: int
    _: KW_ONLY
    commit_id: int
    result: CommitResult


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """The coordinator refuses a commit of this member with an error that is about its membership, and the member has
    not changed since (K-OFF-12, K-OFF-13)."""

    at_ms: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class MemberTimerFired:
    """A timer that is set and due."""

    at_ms: int
    timer: MemberTimer


MemberEvent: TypeAlias = (
    Subscribe
    | SubscribePattern
    | SubscribeRegex
    | Unsubscribe
    | EnforceRebalance
    | Poll
    | Close
    | ListenerDone
    | Answered
    | RequestLost
    | CoordinatorLost
    | CoordinatorFound
    | LookupFailed
    | MetadataChanged
    | CommitFinished
    | CommitRefused
    | MemberTimerFired
)


# --- commands ---


@dataclass(frozen=True, slots=True)
class Send:
    """Send to the coordinator; without an answer within ``timeout_ms`` tell ``RequestLost``."""

    request_id: int
    body: RequestBody
    _: KW_ONLY
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Ask any broker who coordinates the group; answer ``CoordinatorFound`` or ``LookupFailed``."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Drop the connection to the coordinator, and every request on it."""


@dataclass(frozen=True, slots=True)
class RequestMetadata:
    """Fetch fresh metadata that covers these topics and those with these ids (all topics if both are empty); answer
    ``MetadataChanged``."""

    topics: frozenset[str]
    topic_ids: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit all valid positions of these partitions, those that have one (K-CB-01, K-LEAVE-04, N-REC-04); answer
    ``CommitFinished``. To a classic member that is not STABLE that is FAILED, and nothing is sent (K-OFF-02).
    STALE_MEMBER_EPOCH, to a member of a consumer group that has an epoch, is ``RETRIABLE`` (N-CMT-02)."""

    commit_id: int
    partitions: frozenset[TopicPartition]


class Call(Enum):
    """The three calls of a rebalance listener. A listener that has none for ``LOST`` takes ``REVOKED``'s (K-CB-10)."""

    REVOKED = "revoked"
    ASSIGNED = "assigned"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Listener:
    """Call the rebalance listener; the member goes on at ``ListenerDone``. Partitions in Kafka's order."""

    call: Call
    partitions: tuple[TopicPartition, ...]


class FailureKind(Enum):
    """Why a call throws."""

    ANSWER = "answer"  #: a fatal error code
    UNEXPECTED = "unexpected"  #: a code that the request does not know (Kafka's KafkaException)
    LISTENER = "listener"  #: the rebalance listener threw (K-CB-09)
    ASSIGNOR = "assignor"  #: the leader's assignor threw or broke its rules (K-JOIN-20)
    ASSIGNMENT = "assignment"  #: the received assignment cannot be used (K-JOIN-14)


@dataclass(frozen=True, slots=True)
class Failure:
    """What a call throws."""

    kind: FailureKind
    error: ErrorCode | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """The poll, unsubscribe or close in progress returns, or throws ``failure``. ``again``: of a poll in parts, that
    the background has asked for more meanwhile, so that its loop has another turn."""

    failure: Failure | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class SetMemberTimer:
    """Replaces the timer of that kind."""

    timer: MemberTimer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelMemberTimer:
    """Forget this timer."""

    timer: MemberTimer


Command: TypeAlias = (
    Send
    | FindCoordinator
    | Disconnect
    | RequestMetadata
    | Commit
    | Listener
    | Returned
    | SetMemberTimer
    | CancelMemberTimer
)
