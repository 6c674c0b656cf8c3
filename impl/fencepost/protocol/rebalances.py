"""The rebalances of groups as a coordinator reports them: each with its cause, its generation and its end.

``Outcome.rebalances`` holds these reports, in order. They are for logs and status pages: no client sees them, and no
later step depends on them. Kafka's coordinator writes the same causes to its log ("Preparing to rebalance group …
(reason: …)"). A load reports no rebalance, except of a classic group that has more members than it may have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Protocol as TypingProtocol
from typing import TypeAlias

from .consumer_view import ConsumerGroupState
from .errors import ErrorCode
from .view import GroupState


class GroupType(Enum):
    """The protocol of a group, by the names that ListGroups shows."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class RebalanceReason(Enum):
    """Why a rebalance started. ``members`` and the other facts are those of ``RebalanceCause``."""

    MEMBER_JOINED = "member joined"
    LEADER_REJOINED = "leader rejoined"  #: the leader of a Stable classic group, with the same protocols
    MEMBER_UPDATED = "member updated"  #: a classic member changed its protocols, a consumer its subscription
    ASSIGNOR_CHANGED = "assignor changed"  #: by the vote of ``members`` another server assignor is preferred
    STATIC_MEMBER_REPLACED = "static member replaced"  #: ``members`` took the place of ``replaced``
    MEMBER_LEFT = "member left"
    SESSION_EXPIRED = "session expired"
    REBALANCE_TIMEOUT = "rebalance timeout expired"  #: a consumer did not give up its partitions in time
    JOIN_TIMEOUT = "join timeout expired"  #: a classic member of a consumer group did not join again in time
    SYNC_TIMEOUT = "sync timeout expired"  #: classic members sent no SyncGroup in time
    TOPICS_CHANGED = "topics changed"
    REGEX_CHANGED = "regular expression matches other topics"
    ASSIGNMENT_FAILED = "assignment not stored"  #: the log did not take the assignment of the leader
    OVER_CAPACITY = "over capacity"  #: a loaded group has more members than ``capacity``


@dataclass(frozen=True, slots=True)
class MemberIdentity:
    """A member by all its names; of an id that has not joined only the id is known."""

    member_id: str
    _: KW_ONLY
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""

    def __str__(self) -> str:
        known = [f"instance {self.instance_id}"] if self.instance_id is not None else []
        if self.client_id or self.client_host:
            known.append(f"client {self.client_id or '(no id)'} at {self.client_host or '(no address)'}")
        return f"{self.member_id} ({', '.join(known)})" if known else self.member_id


@dataclass(frozen=True, slots=True)
class RebalanceCause:
    """Why a rebalance started: the reason, and the facts that belong to it.

    ``members``: those that caused it. ``timeout_ms``: the timeout that expired. ``topics``: those that changed; none if
    the coordinator did not see them change, as while the group was not loaded. ``replaced``: the earlier member id of a
    static member. ``client_reason``: the reason that a JoinGroup or LeaveGroup gives (KIP-800). ``error``: why the
    assignment is not in the log. ``capacity``: ``group.max.size``."""

    reason: RebalanceReason
    members: tuple[MemberIdentity, ...] = ()
    _: KW_ONLY
    timeout_ms: int | None = None
    topics: tuple[str, ...] = ()
    replaced: str = ""
    client_reason: str = ""
    error: ErrorCode = ErrorCode.NONE
    capacity: int | None = None

    def __str__(self) -> str:
        if self.reason is RebalanceReason.TOPICS_CHANGED and not self.topics:
            return "the topics differ from those that the group last saw"
        said = _TEXTS[self.reason].format(
            who=", ".join(map(str, self.members)),
            timeout=self.timeout_ms,
            topics=", ".join(self.topics),
            replaced=self.replaced,
            error=self.error.name,
            capacity=self.capacity,
        )
        return f"{said}; client reason: {self.client_reason}" if self.client_reason else said


_TEXTS = {
    RebalanceReason.MEMBER_JOINED: "join of member {who}",
    RebalanceReason.LEADER_REJOINED: "leader {who} rejoined",
    RebalanceReason.MEMBER_UPDATED: "member {who} changed its protocols or subscription",
    RebalanceReason.ASSIGNOR_CHANGED: "the vote of member {who} changed the preferred assignor",
    RebalanceReason.STATIC_MEMBER_REPLACED: "static member {who} replaced {replaced}",
    RebalanceReason.MEMBER_LEFT: "member {who} left",
    RebalanceReason.SESSION_EXPIRED: "session of member {who} expired after {timeout} ms",
    RebalanceReason.REBALANCE_TIMEOUT: "rebalance timeout of member {who} expired after {timeout} ms",
    RebalanceReason.JOIN_TIMEOUT: "member {who} did not rejoin within its rebalance timeout of {timeout} ms",
    RebalanceReason.SYNC_TIMEOUT: "no SyncGroup from member {who} within the rebalance timeout of {timeout} ms",
    RebalanceReason.TOPICS_CHANGED: "topics changed: {topics}",
    RebalanceReason.REGEX_CHANGED: "a subscribed regular expression matches other topics: {topics}",
    RebalanceReason.ASSIGNMENT_FAILED: "the assignment of leader {who} could not be stored ({error})",
    RebalanceReason.OVER_CAPACITY: "the loaded group has more members than group.max.size ({capacity})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceStarted:
    """A classic group prepares a rebalance, or a consumer group has a new epoch.

    ``generation``: the generation, or the group epoch, that it leads to. ``converted``: the group was of the other
    protocol until now."""

    group_id: str
    group_type: GroupType
    generation: int
    cause: RebalanceCause
    converted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationBegan:
    """The join phase of a classic group is over (C-JOIN-44). ``removed``: the members that did not join within the
    rebalance timeout, ``timeout_ms``."""

    group_id: str
    generation: int
    leader: str
    members: int
    removed: tuple[MemberIdentity, ...] = ()
    timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceEnded:
    """The group is Stable or Empty in this generation or epoch. ``state`` None: the log did not take the records of the
    rebalance, so that it is taken back (F-RT-08)."""

    group_id: str
    generation: int
    state: GroupState | ConsumerGroupState | None


RebalanceReport: TypeAlias = RebalanceStarted | GenerationBegan | RebalanceEnded


class HasMemberIdentity(TypingProtocol):
    """A member of a group of either protocol."""

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def client_id(self) -> str: ...

    @property
    def client_host(self) -> str: ...


def identities(members: Iterable[HasMemberIdentity]) -> tuple[MemberIdentity, ...]:
    """The identities of these members, in this order."""
    return tuple(
        [
            MemberIdentity(
                member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
            )
            for member in members
        ]
    )
