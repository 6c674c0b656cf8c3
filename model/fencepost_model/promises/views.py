"""Views of a group and its members, made by each program that checks promises."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from ..machines import C_STABLE


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of a consumer group.

    A partition is any value that names it. ``revoking``: partitions that the member still has to revoke.
    ``assignment_epochs``: those of all these partitions (M-PE-06); none for a release without them. ``state``: one of
    ``STABLE``, ``UNREVOKED_PARTITIONS``, ``UNRELEASED_PARTITIONS``. ``is_classic``: it speaks the classic protocol.
    """

    member_id: str
    epoch: int
    assigned: Set[Hashable]
    revoking: Set[Hashable]
    assignment_epochs: Collection[int] = ()
    state: str = C_STABLE
    instance: str | None = None
    regex: str | None = None
    is_classic: bool = False


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group. ``target``: partitions by member id. ``instances``: pairs of an instance id and the member id
    that it maps to. ``regexes``: those that are resolved."""

    epoch: int
    assignment_epoch: int
    members: Sequence[MemberView]
    target: Mapping[str, Collection[Hashable]] = field(default_factory=dict)
    instances: Collection[tuple[str, str]] = ()
    regexes: Set[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupStep:
    """A consumer group before and after a step that undid nothing: no load, no failed append, no new group of the same
    name."""

    before: GroupView
    after: GroupView


@dataclass(frozen=True, slots=True)
class ClassicMemberView:
    """A member of a classic group. ``protocols``: the names that it supports. ``waits_to_join``, ``waits_to_sync``: a
    JoinGroup or a SyncGroup of it is parked."""

    member_id: str
    instance: str | None = None
    protocols: Collection[str] = ()
    waits_to_join: bool = False
    waits_to_sync: bool = False


@dataclass(frozen=True, slots=True)
class ClassicGroupView:
    """A classic group. ``state`` and ``previous`` (its state before) have Kafka's names. ``protocol``: the selected
    one. ``pending_join``: ids that were given to members that have not joined. ``pending_sync``: members whose
    SyncGroup is missing. ``instances``: pairs of an instance id and the member id that it maps to."""

    state: str
    previous: str
    generation: int
    protocol: str | None
    leader: str | None
    members: Sequence[ClassicMemberView] = ()
    pending_join: Set[str] = frozenset()
    pending_sync: Set[str] = frozenset()
    instances: Collection[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class ClassicGroupStep:
    """A classic group before and after a step other than a load."""

    before: ClassicGroupView
    after: ClassicGroupView


@dataclass(frozen=True, slots=True)
class HeartbeatView:
    """A heartbeat of KIP-848 and its answer. ``sent``: the epoch in the request. ``error``, ``epoch`` and
    ``has_assignment`` are those of the answer.

    ``stored``: the member's epoch after the step, None without the member. ``assigned``: the member's assignment before
    the step and after it, empty without the member; None if it does not matter. ``changed``: the step changed what the
    log says of the group."""

    sent: int
    error: str
    epoch: int
    has_assignment: bool
    stored: int | None = None
    assigned: tuple[object, ...] | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class JoinAnswerView:
    """A JoinGroup that was answered NONE. ``listed``: the members list, empty for all but the leader. ``group``: the
    classic group at the time of the answer, if there is one."""

    member_id: str
    listed: Set[str]
    group: ClassicGroupView | None


@dataclass(frozen=True, slots=True)
class SyncAnswerView:
    """A SyncGroup that was answered NONE. ``generation``: that of the request. ``group``: the classic group at the time
    of the answer, if there is one."""

    generation: int
    group: ClassicGroupView | None
