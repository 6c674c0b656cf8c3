"""The state of a KIP-848 member: everything that the next step depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fencepost.protocol.events import Topic

from ..events import Call, CloseOption, Failure, MemberTimer
from ..partitions import TopicPartition
from ..settings import ConsumerSettings
from ..state import Coordinator
from ..subscription import SubscriptionState


class ConsumerState(Enum):
    """State of a KIP-848 member (N-ST-01…10). As intended, a member passes LEAVING within one step."""

    UNSUBSCRIBED = "Unsubscribed"
    JOINING = "Joining"
    RECONCILING = "Reconciling"
    ACKNOWLEDGING = "Acknowledging"
    STABLE = "Stable"
    FENCED = "Fenced"
    PREPARE_LEAVING = "PrepareLeaving"
    LEAVING = "Leaving"
    STALE = "Stale"
    FATAL = "Fatal"

    @property
    def in_group(self) -> bool:
        """Whether the member is in the group or joins it."""
        return self in _IN_GROUP

    @property
    def heartbeats(self) -> bool:
        """Whether the member sends heartbeats, other than the one that leaves."""
        return self in _IN_GROUP or self is ConsumerState.PREPARE_LEAVING


_IN_GROUP = frozenset(
    {ConsumerState.JOINING, ConsumerState.RECONCILING, ConsumerState.ACKNOWLEDGING, ConsumerState.STABLE}
)


class TopicIdPartition(NamedTuple):
    """A partition as the coordinator identifies it."""

    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class LocalAssignment:
    """Partitions with the client's number for them (N-TR-02). Equal sets with different numbers differ."""

    epoch: int
    partitions: frozenset[TopicIdPartition]


# --- tasks that the background queues for the application's thread ---


class Reason(Enum):
    """Reason for a listener call; it decides what happens afterwards."""

    REVOCATION = "reconciliation, revoked"
    ASSIGNMENT = "reconciliation, assigned"
    FENCED = "fenced"
    STALE = "left by the poll interval"
    FATAL = "fatal error"
    LEAVE = "leave"
    CLOSE = "close"

    @property
    def reconciles(self) -> bool:
        """Whether a reconciliation waits for this call."""
        return self in (Reason.REVOCATION, Reason.ASSIGNMENT)


@dataclass(frozen=True, slots=True)
class ListenerCall:
    """A listener call that the application's thread must run, and its reason."""

    call: Call
    partitions: frozenset[TopicPartition]
    reason: Reason


BackgroundEvent: TypeAlias = ListenerCall | Failure


class ApiCall(Enum):
    """An application's call that may take more than one step."""

    POLL = "poll"
    BACKGROUND_EVENTS = "one turn of a poll's loop"
    UNSUBSCRIBE = "unsubscribe"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class WaitingConsumerCall:
    """An application's call that has not returned.

    ``running``: the listener call that it waits for. ``background_events``: events taken from the queue and not
    processed yet. ``drained``: it has taken events before; ``again``: more are queued, for another pass of the loop.
    ``failure``: the first failure, which the call finally throws. ``resting``: an unsubscribe has ignored an error, and
    reads the queue again at the next event (N-TR-07). ``commit_id``: the commit that a close waits for.
    """

    api: ApiCall
    running: ListenerCall | None = None
    background_events: tuple[BackgroundEvent, ...] = ()
    drained: bool = False
    again: bool = False
    failure: Failure | None = None
    resting: bool = False
    commit_id: int | None = None


# --- reconciliation ---


class ReconciliationStage(Enum):
    """Stage of a reconciliation (N-REC-04…07)."""

    COMMIT = "committing"
    COMMIT_BACKOFF = "before the next commit"
    REVOKE = "revoking"
    ASSIGN = "assigning"


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """``assignment``: the resolvable part of the target; ``partitions``: the same by name. ``deadline_ms``: when the
    member gives up the commit. ``outdated``: the member has joined again meanwhile (N-REC-05)."""

    assignment: LocalAssignment
    partitions: frozenset[TopicPartition]
    revoked: frozenset[TopicPartition]
    stage: ReconciliationStage
    deadline_ms: int
    commit_id: int | None = None
    outdated: bool = False


# --- heartbeats ---


@dataclass(frozen=True, slots=True)
class LastSent:
    """Fields of the last heartbeat; equal values are not sent again (N-HB-02). All None: the next heartbeat sends
    everything (N-HB-04). ``assignment`` is wrapped in a tuple because the assignment itself may be None."""

    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    regex: str | None = None
    server_assignor: str | None = None
    assignment: tuple[LocalAssignment | None] | None = None


class Beat(Enum):
    """How the member treats the response to a heartbeat."""

    CURRENT = "taken"
    LEAVE = "ends the leave"
    LATE = "sent before the member left"
    IGNORED = "the leave of an expired poll interval"


@dataclass(frozen=True, slots=True)
class SentHeartbeat:
    """A request that has no response yet."""

    request_id: int
    beat: Beat


@dataclass(frozen=True, slots=True)
class Remembered:
    """Data that the application's thread of Kafka's consumer uses at close (N-CLOSE-01). ``owned``: the partitions that
    it last knew; ``joined``: the member has had an epoch above 0 since it last unsubscribed."""

    owned: frozenset[TopicPartition] = frozenset()
    joined: bool = False


class ConsumerMember(NamedTuple):
    """A consumer of a KIP-848 group. Create it with ``ConsumerMember(settings, member_id)``, where the id is a fresh
    random UUID in Kafka's base64 form (N-HB-08). Change it only with ``step``. Its mappings are never changed in place.

    ``target`` and ``current``: the assignment received last, and the one reconciled last (N-HB-05). ``queue``: tasks of
    the background for the application's thread. ``expired``: the poll interval caused the leave in progress; ``back``:
    the application has polled since (N-TR-10). ``leaving``: an unsubscribe or close waits for the leave to end.
    """

    settings: ConsumerSettings
    member_id: str
    state: ConsumerState = ConsumerState.UNSUBSCRIBED
    epoch: int = 0
    joined_once: bool = False  #: the member has had an epoch above 0
    named: bool = False  #: the member has had an epoch other than 0, or has failed fatally
    coordinator: Coordinator = Coordinator()
    subscription: SubscriptionState = SubscriptionState()
    subscription_changed: bool = False  #: the next poll joins (N-TR-14)
    deadlines: Mapping[MemberTimer, int] = MappingProxyType({})  #: absolute, in ms
    next_request_id: int = 0
    closed: bool = False

    # heartbeats
    sent: tuple[SentHeartbeat, ...] = ()
    last_sent: LastSent = LastSent()
    interval_ms: int = 0
    failed_attempts: int = 0

    # assignments
    target: LocalAssignment | None = None
    current: LocalAssignment | None = None
    delivered: frozenset[TopicIdPartition] = frozenset()  #: given to the application, reconciled or not
    names: Mapping[bytes, str] = MappingProxyType({})  #: of topics in the last target (N-REC-02)
    reconciliation: Reconciliation | None = None

    # the application's thread
    queue: tuple[BackgroundEvent, ...] = ()
    waiting: WaitingConsumerCall | None = None
    remembered: Remembered = Remembered()

    # leaving
    option: CloseOption = CloseOption.DEFAULT
    expired: bool = False
    back: bool = False
    leaving: bool = False

    # metadata
    cluster: Mapping[str, Topic] = MappingProxyType({})
    metadata_requested: bool = False
    metadata_arrived: bool = False  #: since the request

    @property
    def in_flight(self) -> SentHeartbeat | None:
        """The unanswered heartbeat that delays the next one (N-HB-06)."""
        return next((each for each in self.sent if each.beat in (Beat.CURRENT, Beat.LEAVE)), None)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the application may use."""
        return self.subscription.owned

    @property
    def commits_as(self) -> tuple[str, int]:
        """The member id and epoch that an OffsetCommit carries (N-CMT-01)."""
        in_time = self.epoch > 0 and self.state is not ConsumerState.FATAL
        return (self.member_id if self.named else "", self.epoch if in_time else -1)
