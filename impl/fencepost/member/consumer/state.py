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
    """Where a member stands, from joining to having left (N-ST-01…10). As intended, LEAVING is passed within one
    step."""

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
        """Does the member belong to the group, or is it about to?"""
        return self in _IN_GROUP

    @property
    def heartbeats(self) -> bool:
        """By interval or at once; the leave heartbeat is another matter."""
        return self in _IN_GROUP or self is ConsumerState.PREPARE_LEAVING


_IN_GROUP = frozenset(
    {ConsumerState.JOINING, ConsumerState.RECONCILING, ConsumerState.ACKNOWLEDGING, ConsumerState.STABLE}
)


class TopicIdPartition(NamedTuple):
    """One partition as the coordinator names it."""

    topic_id: bytes
    partition: int


@dataclass(frozen=True, slots=True)
class LocalAssignment:
    """Partitions under the number that the client gave them (N-TR-02). Equal sets under two numbers differ."""

    epoch: int
    partitions: frozenset[TopicIdPartition]


# --- what the background asks of the application's thread ---


class Reason(Enum):
    """Why a listener is called, and so what happens when it has returned."""

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
    """A callback that the application's thread is to run, and what for."""

    call: Call
    partitions: frozenset[TopicPartition]
    reason: Reason


Errand: TypeAlias = ListenerCall | Failure


class ApiCall(Enum):
    """A call of the application that may take more than one step."""

    POLL = "poll"
    ERRANDS = "one turn of a poll's loop"
    UNSUBSCRIBE = "unsubscribe"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call of the application that is not over.

    ``running``: the listener call that it waits for. ``errands``: what it has taken from the queue and not done yet.
    ``drained``: it has taken some before; ``again``: there are more, for another turn of the loop. ``failure``: the
    first one; what the call throws in the end. ``resting``: an unsubscribe has ignored an error and reads the queue at
    the next event again (N-TR-07). ``commit_id``: the commit that a close waits for.
    """

    api: ApiCall
    running: ListenerCall | None = None
    errands: tuple[Errand, ...] = ()
    drained: bool = False
    again: bool = False
    failure: Failure | None = None
    resting: bool = False
    commit_id: int | None = None


# --- reconciliation ---


class Stage(Enum):
    """How far a reconciliation has come (N-REC-04…07)."""

    COMMIT = "committing"
    COMMIT_BACKOFF = "before the next commit"
    REVOKE = "revoking"
    ASSIGN = "assigning"


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """``assignment``: what could be resolved of the target; ``partitions``: the same by name. ``deadline_ms``: when the
    commit is given up. ``outdated``: the member has joined anew meanwhile (N-REC-05)."""

    assignment: LocalAssignment
    partitions: frozenset[TopicPartition]
    revoked: frozenset[TopicPartition]
    stage: Stage
    deadline_ms: int
    commit_id: int | None = None
    outdated: bool = False


# --- heartbeats ---


@dataclass(frozen=True, slots=True)
class LastSent:
    """The fields of the last heartbeat; what equals them is not sent again (N-HB-02). All None: nothing counts as sent
    (N-HB-04). ``assignment`` is inside a tuple, for the assignment itself may be none."""

    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    regex: str | None = None
    server_assignor: str | None = None
    assignment: tuple[LocalAssignment | None] | None = None


class Beat(Enum):
    """What becomes of the answer to a heartbeat."""

    CURRENT = "taken"
    LEAVE = "ends the leave"
    LATE = "sent before the member left"
    IGNORED = "the leave of an expired poll interval"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that has no answer yet."""

    request_id: int
    beat: Beat


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the application's thread of Kafka's consumer goes by when it closes (N-CLOSE-01): ``owned`` as it heard of
    it last, and whether the member has ``joined``, by an epoch above 0, since it last unsubscribed."""

    owned: frozenset[TopicPartition] = frozenset()
    joined: bool = False


class ConsumerMember(NamedTuple):
    """A consumer of a KIP-848 group. Make one with ``ConsumerMember(settings, member_id)``, where the id is a fresh
    random UUID in Kafka's base64 form (N-HB-08); change it with ``step`` only. Mappings in it are never changed.

    ``target`` and ``current``: the assignment received last, and the one reconciled last (N-HB-05).
    ``queue``: what the background wants done by the application's thread. ``expired``: the leave under way is caused
    by the poll interval; ``back``: the application has polled since (N-TR-10). ``leaving``: an unsubscribe or close
    waits for the end of the leave.
    """

    settings: ConsumerSettings
    member_id: str
    state: ConsumerState = ConsumerState.UNSUBSCRIBED
    epoch: int = 0
    joined_once: bool = False  #: there was an epoch above 0
    named: bool = False  #: there was another epoch than 0, or the failure for good
    coordinator: Coordinator = Coordinator()
    subscription: SubscriptionState = SubscriptionState()
    subscription_changed: bool = False  #: the next poll joins (N-TR-14)
    deadlines: Mapping[MemberTimer, int] = MappingProxyType({})  #: absolute, in ms
    next_request_id: int = 0
    closed: bool = False

    # heartbeats
    sent: tuple[Sent, ...] = ()
    last_sent: LastSent = LastSent()
    interval_ms: int = 0
    failed_attempts: int = 0

    # assignments
    target: LocalAssignment | None = None
    current: LocalAssignment | None = None
    taken: frozenset[TopicIdPartition] = frozenset()  #: what the application has, reconciled or not
    names: Mapping[bytes, str] = MappingProxyType({})  #: of the topics in the last target (N-REC-02)
    reconciliation: Reconciliation | None = None

    # the application's thread
    queue: tuple[Errand, ...] = ()
    waiting: Waiting | None = None
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
    def in_flight(self) -> Sent | None:
        """The heartbeat that holds back the next one (N-HB-06)."""
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
