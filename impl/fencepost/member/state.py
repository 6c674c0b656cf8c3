"""The state of a member: everything that the next step depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import JoinGroupResponse

from .assignors.base import Assignor
from .consumer_protocol import Assignment
from .events import CloseOption, Failure, MemberTimer
from .partitions import TopicPartition
from .settings import MemberSettings
from .subscription import Snapshot, SubscriptionState


class ClassicMemberState(Enum):
    """State of a classic member (K-ST-01…04)."""

    UNJOINED = "Unjoined"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"

    @property
    def in_generation(self) -> bool:
        """Whether the heartbeat thread works in this state (K-ST-03, K-ST-04)."""
        return self in (ClassicMemberState.COMPLETING_REBALANCE, ClassicMemberState.STABLE)


@dataclass(frozen=True, slots=True)
class Generation:
    """The generation and member id that the member last received (K-ST-14)."""

    generation_id: int = -1
    member_id: str = ""
    protocol_name: str | None = None

    @property
    def reset(self) -> bool:
        """Whether the generation was reset. The member id does not matter (K-ST-12)."""
        return self.generation_id == -1 and self.protocol_name is None


class SentKind(Enum):
    """Kind of a request that has no response yet."""

    JOIN = "join"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Sent:
    """A request that has no response yet, and the generation that it was sent with (K-ST-15)."""

    request_id: int
    kind: SentKind
    generation: Generation


# --- the join in progress: from JoinGroup to the end of join complete (K-ERR-15) ---


@dataclass(frozen=True, slots=True)
class JoinOpen:
    """JoinGroup or SyncGroup has no response yet, or the leader waits for metadata."""


@dataclass(frozen=True, slots=True)
class JoinDone:
    """SyncGroup returned an assignment; the next poll adopts it."""

    assignment: bytes


class Retry(Enum):
    """Reaction of the join loop to a failed join (K-ERR-14)."""

    AT_ONCE = "at once"
    BACK_OFF = "after the back-off"
    NEVER = "thrown"


@dataclass(frozen=True, slots=True)
class JoinFailed:
    """``cause``: name of Kafka's exception; the next JoinGroup contains it in its reason (K-ERR-17)."""

    cause: str
    retry: Retry
    failure: Failure | None = None
    error: ErrorCode | None = None


Join: TypeAlias = JoinOpen | JoinDone | JoinFailed


# --- what the application's call waits for ---


class CallStage(Enum):
    """Position of an application's call while its listener runs, or while ``close`` waits for a commit."""

    PREPARE = "join prepare"
    COMPLETE_REVOKED = "join complete, revoked"
    COMPLETE_ASSIGNED = "join complete, assigned"
    UNSUBSCRIBE = "unsubscribe"
    CLOSE_COMMIT = "close, commit"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """An application's call that has not returned.

    ``keep``: the partitions owned after join prepare. ``assignment``, ``generation``: those of the join complete in
    progress; the member's own may be reset meanwhile (K-ST-16). ``failure``: the first one of this join complete
    (K-CB-09). ``option``: of the close in progress. ``commit_id``: the commit that the close waits for.
    """

    stage: CallStage
    keep: frozenset[TopicPartition] = frozenset()
    assignment: Assignment | None = None
    generation: Generation = field(default_factory=Generation)
    failure: Failure | None = None
    option: CloseOption = CloseOption.DEFAULT
    commit_id: int | None = None


class PrepareCommit(Enum):
    """State of the commit before a rejoin (K-CB-01)."""

    NONE = "none"
    OPEN = "open"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class HeartbeatThread:
    """State of the heartbeat thread (K-HB-01). The next poll throws ``failure`` (K-HB-10)."""

    exists: bool = False
    enabled: bool = False
    failure: Failure | None = None
    failed_attempts: int = 0


@dataclass(frozen=True, slots=True)
class Coordinator:
    """``node`` None: unknown or forgotten. ``failure``: a fatal look-up failure, thrown by the next poll;
    ``failed_for_now``: the last look-up failed, but another one may succeed (K-FIND-01)."""

    node: int | None = None
    looking_up: bool = False
    failed_attempts: int = 0
    failure: Failure | None = None
    failed_for_now: bool = False


@dataclass(frozen=True, slots=True)
class Electing:
    """A leader that waits for metadata: before its assignor runs, or, with ``assignments``, after (K-JOIN-10, 17)."""

    response: JoinGroupResponse
    assignments: Mapping[str, Assignment] | None = None


class Member(NamedTuple):
    """A classic consumer. Create it with ``Member(settings)``; change it only with ``step``.

    It is a named tuple because steps mostly replace fields, and that is fast. Its mappings are never changed in place.
    """

    settings: MemberSettings
    state: ClassicMemberState = ClassicMemberState.UNJOINED
    generation: Generation = Generation()
    coordinator: Coordinator = Coordinator()
    thread: HeartbeatThread = HeartbeatThread()
    subscription: SubscriptionState = SubscriptionState()
    remembering: tuple[Assignor, ...] = ()  #: the assignors, once one of them has data to remember
    sent: tuple[Sent, ...] = ()
    next_request_id: int = 0
    deadlines: Mapping[MemberTimer, int] = MappingProxyType({})  #: absolute, in ms
    closed: bool = False

    # rejoining
    rejoin_needed: bool = True
    rejoin_reason: str = ""
    needs_prepare: bool = True
    prepare_deadline_ms: int | None = None  #: when join prepare stops waiting for its commit (K-CB-01)
    prepare_commit: PrepareCommit = PrepareCommit.NONE
    join: Join | None = None
    prepare_commit_id: int | None = None
    electing: Electing | None = None
    joined_topics: frozenset[str] | None = None  #: the subscription in the last JoinGroup (K-JOIN-03)
    waiting: WaitingCall | None = None

    # metadata
    cluster: Mapping[str, Topic] = MappingProxyType({})
    metadata_version: int = 0
    metadata_requested: bool = False
    snapshot: Snapshot = Snapshot()
    is_leader: bool = False
    assignment_snapshot: Snapshot | None = None  #: leader only (K-JOIN-02)

    @property
    def assignors(self) -> tuple[Assignor, ...]:
        """The assignors that a leader runs, with the data that they remember."""
        return self.remembering or self.settings.assignors

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that the application may use."""
        return self.subscription.owned
