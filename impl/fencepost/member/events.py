"""Events and commands of a member.

Events have two sources. The *application* calls subscribe, poll, unsubscribe and close, and reports how its rebalance
listener ended. The *network and the clock* report responses, lost connections, the coordinator's address, metadata and
timers. Each event carries the time at which it is handled.

A poll of the Java consumer is a loop; ``Poll`` is one pass of that loop (K-POLL-01, steps 1 to 6). A pass never waits
for the network. It ends with ``Returned``: in the same step, or, if a listener must run, in the step of the
``ListenerDone`` that follows the last ``Listener`` command. Between polls, deliver only the responses that a client
would read then: its heartbeat thread reads while the member is in a generation; a JoinGroup response waits for a poll.
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
    """Timers that a member sets."""

    __hash__ = object.__hash__  # a member equals only itself; timers are looked up in every step

    HEARTBEAT = "heartbeat"  #: the next heartbeat is due
    SESSION = "session"  #: no good heartbeat for a session timeout (K-HB-02)
    POLL = "poll"  #: no poll for a poll interval (K-HB-03)
    RETRY = "retry"  #: back-off of the join loop (K-ERR-14), after which a poll resumes it; or of a commit (N-REC-04)
    LOOKUP = "lookup"  #: back-off of the coordinator look-up (K-FIND-01)
    BACKOFF = "backoff"  #: the least gap between heartbeats to a consumer group (N-HB-07)


# --- the application's events ---


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The application subscribes to these topics. For none, use ``Unsubscribe``."""

    at_ms: int
    topics: frozenset[str]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """The application subscribes to the topics whose whole name matches a regular expression (K-JOIN-15)."""

    at_ms: int
    pattern: str


@dataclass(frozen=True, slots=True)
class SubscribeRegex:
    """The application subscribes to a RE2 expression, which the coordinator of a consumer group matches (N-HB-02)."""

    at_ms: int
    regex: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The application drops its subscription."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class EnforceRebalance:
    """The application asks for a rebalance."""

    at_ms: int
    reason: str = ""


class PollPart(Enum):
    """Part of a poll. The two threads of the new consumer each have parts; so have the member and the reader, where a
    client uses both (N-POLL-01)."""

    WHOLE = "all of it"
    RESUMED = "what comes after a commit that was over at once"
    BEGIN = "the application's thread hands an event over"
    BACKGROUND = "the background works it off"
    BACKGROUND_EVENTS = "the application's thread does what the background has asked for"
    END = "it hands out records"
    BROKEN = "it throws"


@dataclass(frozen=True, slots=True)
class Poll:
    """The application polls. A RESUMED poll continues the join, without repeating the first steps of the poll
    (K-CB-01)."""

    at_ms: int
    part: PollPart = PollPart.WHOLE


@dataclass(frozen=True, slots=True)
class Close:
    """The application closes its consumer; it is the last call. ``timeout_ms``: how long close may wait at the end for
    outstanding responses (K-LEAVE-04); None: the request timeout."""

    at_ms: int
    option: CloseOption = CloseOption.DEFAULT
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ListenerDone:
    """The last requested listener call returned, or threw ``error``."""

    at_ms: int
    error: str | None = None


# --- the network's and the clock's events ---


@dataclass(frozen=True, slots=True)
class Answered:
    """A response to a request. The member ignores it if it gave up the request."""

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
    """The connection to the coordinator cannot be used (K-FIND-01). ``moved``: a response to the reader said that the
    node is not the coordinator (K-OFF-11, K-ERR-13)."""

    at_ms: int
    _: KW_ONLY
    moved: bool = False


@dataclass(frozen=True, slots=True)
class CoordinatorFound:
    """The look-up succeeded: ``node`` is the coordinator from now on."""

    at_ms: int
    _: KW_ONLY
    node: int


@dataclass(frozen=True, slots=True)
class LookupFailed:
    """The look-up failed. ``error`` None: no broker responded."""

    at_ms: int
    error: ErrorCode | None


@dataclass(frozen=True, slots=True)
class MetadataChanged:
    """The client's new metadata of the cluster's topics; also the reply to ``RequestMetadata``."""

    at_ms: int
    topics: tuple[Topic, ...]


@dataclass(frozen=True, slots=True)
class CommitFinished:
    """A requested commit ended. The member ignores it if it gave up the commit."""

    at_ms: int
    _: KW_ONLY
    commit_id: int
    result: CommitResult


@dataclass(frozen=True, slots=True)
class CommitRefused:
    """The coordinator rejected a commit of this member with an error about its membership, and the member has not
    changed since (K-OFF-12, K-OFF-13)."""

    at_ms: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class MemberTimerFired:
    """A timer fired that is set and due."""

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
    """Send to the coordinator. Without a response within ``timeout_ms``, pass ``RequestLost``."""

    request_id: int
    body: RequestBody
    _: KW_ONLY
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class FindCoordinator:
    """Ask any broker for the group's coordinator; then pass ``CoordinatorFound`` or ``LookupFailed``."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Drop the connection to the coordinator, and every request on it."""


@dataclass(frozen=True, slots=True)
class RequestMetadata:
    """Fetch fresh metadata that covers these topics and topic ids (all topics if both are empty); then pass
    ``MetadataChanged``."""

    topics: frozenset[str]
    topic_ids: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class Commit:
    """Commit the positions of these partitions that have a valid one (K-CB-01, K-LEAVE-04, N-REC-04); then pass
    ``CommitFinished``. For a classic member that is not STABLE the result is FAILED, without a request (K-OFF-02). For
    a consumer group's member that has an epoch, STALE_MEMBER_EPOCH is ``RETRIABLE`` (N-CMT-02)."""

    commit_id: int
    partitions: frozenset[TopicPartition]


class Call(Enum):
    """Kind of listener call. A listener without a ``LOST`` callback gets ``REVOKED`` instead (K-CB-10)."""

    REVOKED = "revoked"
    ASSIGNED = "assigned"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Listener:
    """Call the rebalance listener; the member resumes at ``ListenerDone``. Partitions are in Kafka's order."""

    call: Call
    partitions: tuple[TopicPartition, ...]


class FailureKind(Enum):
    """Reason why a call throws."""

    ANSWER = "answer"  #: a fatal error code
    UNEXPECTED = "unexpected"  #: a code that is not defined for the request (Kafka's KafkaException)
    LISTENER = "listener"  #: the rebalance listener threw (K-CB-09)
    ASSIGNOR = "assignor"  #: the leader's assignor threw or broke its rules (K-JOIN-20)
    ASSIGNMENT = "assignment"  #: the received assignment cannot be used (K-JOIN-14)


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure that a call throws."""

    kind: FailureKind
    error: ErrorCode | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Returned:
    """The poll, unsubscribe or close in progress returns, or throws ``failure``. ``again``: for a poll in parts, the
    background has queued more meanwhile, so its loop makes another pass."""

    failure: Failure | None = None
    again: bool = False


@dataclass(frozen=True, slots=True)
class SetMemberTimer:
    """Set the timer, replacing the one of the same kind."""

    timer: MemberTimer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelMemberTimer:
    """Cancel this timer."""

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
