"""A group and a coordinator while one step changes them.

A step works on a private, mutable draft and freezes it at its end; if a handler raises, nothing of it is seen. Drafts
share their mappings with the state they came from and copy one when they first change it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.choices import Choices
from fencepost.protocol.events import CancelTimer, Outcome, Reply, SetTimer, TimerCommand, TimerKey, TimerKind
from fencepost.protocol.messages import Protocol, ResponseBody
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState

from .errors import InternalError
from .state import (
    ANSWERED,
    AppendCallback,
    ClassicGroup,
    CoordinatorState,
    Group,
    InitialDelay,
    MapChange,
    Member,
    Operation,
)

#: From where each state may be entered (C-ST-10…17, C-ST-25).
_FROM: Mapping[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.STABLE, GroupState.COMPLETING_REBALANCE},
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
}


class GroupDraft:
    """A classic group under change. Fields as in ``ClassicGroup``; members change through the methods only."""

    __slots__ = (
        "_copied",
        "_static_copied",
        "assignment_open",
        "awaiting",
        "delay",
        "generation",
        "group_id",
        "incarnation",
        "leader",
        "members",
        "new_member_added",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "state",
        "static_members",
        "support",
        "timestamp",
    )

    def __init__(self, group: ClassicGroup) -> None:
        self.group_id = group.group_id
        self.incarnation = group.incarnation
        self.state = group.state
        self.previous_state = group.previous_state
        self.timestamp = group.timestamp
        self.generation = group.generation
        self.protocol_type = group.protocol_type
        self.protocol_name = group.protocol_name
        self.leader = group.leader
        self.members: dict[str, Member] = group.members  # type: ignore[assignment]  # copied before the first change
        self.static_members: dict[str, str] = group.static_members  # type: ignore[assignment]  # likewise
        self.pending_join = group.pending_join
        self.pending_sync = group.pending_sync
        self.support: dict[str, int] = group.support  # type: ignore[assignment]  # likewise
        self.awaiting = group.awaiting
        self.new_member_added = group.new_member_added
        self.delay = group.delay
        self.assignment_open = group.assignment_open
        self._copied = False
        self._static_copied = False

    def freeze(self) -> ClassicGroup:
        return ClassicGroup(
            self.group_id,
            self.incarnation,
            self.state,
            self.previous_state,
            self.timestamp,
            self.generation,
            self.protocol_type,
            self.protocol_name,
            self.leader,
            self.members,
            self.static_members,
            self.pending_join,
            self.pending_sync,
            self.support,
            self.awaiting,
            self.new_member_added,
            self.delay,
            self.assignment_open,
        )

    def _own(self) -> dict[str, Member]:
        if not self._copied:
            self.members = dict(self.members)
            self.support = dict(self.support)
            self._copied = True
        return self.members

    def put(self, member: Member) -> None:
        """Add a member, or exchange the one with its id."""
        members = self._own()
        old = members.get(member.member_id)
        if old is not None:
            self.awaiting -= old.join is not None
        self.awaiting += member.join is not None
        if old is None or old.protocols is not member.protocols:
            if old is not None:
                self.count(old.protocols, -1)
            self.count(member.protocols, 1)
        members[member.member_id] = member

    def discard(self, member_id: str) -> Member | None:
        """Take a member out of the map and the counts, and nothing else."""
        members = self._own()
        member = members.pop(member_id, None)
        if member is not None:
            self.awaiting -= member.join is not None
            self.count(member.protocols, -1)
        return member

    def count(self, protocols: tuple[Protocol, ...], change: int) -> None:
        """G-DATA-08; a name listed twice counts twice (C-JOIN-72)."""
        self._own()
        support = self.support
        for protocol in protocols:
            support[protocol.name] = support.get(protocol.name, 0) + change

    def map_instance(self, instance_id: str, member_id: str | None) -> None:
        """G-DATA-05; None removes the mapping."""
        if not self._static_copied:
            self.static_members = dict(self.static_members)
            self._static_copied = True
        if member_id is None:
            self.static_members.pop(instance_id, None)
        else:
            self.static_members[instance_id] = member_id

    @property
    def all_joined(self) -> bool:
        """C-ST-23."""
        return self.awaiting == len(self.members) and not self.pending_join

    @property
    def rebalance_timeout(self) -> int:
        """C-ST-22, in ms."""
        return max([0, *(member.rebalance_timeout for member in self.members.values())])

    def enter(self, state: GroupState, at_ms: int) -> None:
        """C-ST-10…17; an illegal transition is an internal error (2.2)."""
        if self.state not in _FROM[state]:
            raise InternalError
        self.previous_state = self.state
        self.state = state
        self.timestamp = at_ms


class Step:
    """One step under way: the state it started from, what it changed, what it asks for."""

    __slots__ = (
        "_changed",
        "_groups",
        "_operations",
        "_strays",
        "at_ms",
        "callback",
        "changes",
        "choices",
        "committed",
        "incarnations",
        "leader_epoch",
        "profile",
        "records",
        "relisted",
        "replies",
        "settings",
        "start",
        "state",
        "status",
        "timers",
    )

    def __init__(self, state: CoordinatorState, at_ms: int, choices: Choices) -> None:
        self.state = state
        self.settings = state.settings
        self.profile = state.profile
        self.at_ms = at_ms
        self.choices = choices
        self.start = state.end  #: offset of the first record of this step
        self.committed = state.committed
        self.callback: AppendCallback | None = None  #: what waits for the record of this step
        self.incarnations = state.incarnations
        self.status = state.status
        self.leader_epoch = state.leader_epoch
        self.records: list[Record] = []
        self.replies: list[Reply] = []
        self.timers: list[TimerCommand] = []
        self._groups: dict[str, Group] | None = None
        self.changes = state.changes
        self.relisted = state.relisted
        self._changed: list[tuple[str, Group | None]] = []
        self._operations: dict[int, Operation] | None = None
        self._strays: dict[TimerKey, InitialDelay | None] | None = None

    # Groups

    @property
    def groups(self) -> Mapping[str, Group]:
        return self.state.groups if self._groups is None else self._groups

    def draft(self, group_id: str) -> GroupDraft | None:
        group = self.groups.get(group_id)
        return None if group is None else GroupDraft(group)

    def keep(self, draft: GroupDraft) -> None:
        """Make the draft the group of its name."""
        self._own_groups()[draft.group_id] = draft.freeze()

    def change_map(self, group_id: str, group: Group | None) -> None:
        """A group comes, is exchanged or goes, by a record of this step (F-RT-08, C-ADM-08)."""
        groups = self._own_groups()
        self._changed.append((group_id, groups.get(group_id)))
        if group is None:
            groups.pop(group_id, None)
        else:
            groups[group_id] = group

    def _own_groups(self) -> dict[str, Group]:
        if self._groups is None:
            self._groups = dict(self.state.groups)
        return self._groups

    def replace_groups(self, groups: dict[str, Group], changes: tuple[MapChange, ...]) -> None:
        """Exchange the whole map (load, unload, revert)."""
        self._groups = groups
        self.changes = changes

    @property
    def end(self) -> int:
        """The offset after the records of this step."""
        return self.start + len(self.records)

    # Timers

    def set_timer(self, key: TimerKey, delay_ms: int) -> None:
        if self.strays:
            self.unstray(key)
        self.timers.append(SetTimer(key, delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        if self.strays:
            self.unstray(key)
        self.timers.append(CancelTimer(key))

    def arm_session(self, group: GroupDraft | ClassicGroup, member: Member) -> None:
        """C-TMR-04."""
        key = TimerKey(TimerKind.SESSION, group.group_id, member.member_id)
        if self.strays:
            self.unstray(key)
        self.timers.append(SetTimer(key, member.session_timeout))

    @property
    def strays(self) -> Mapping[TimerKey, InitialDelay | None]:
        return self.state.strays if self._strays is None else self._strays

    def stray(self, key: TimerKey, delay: InitialDelay | None = None) -> None:
        """A timer that stays armed although no group knows it any more (C-TMR-12)."""
        if self._strays is None:
            self._strays = dict(self.state.strays)
        self._strays[key] = delay

    def unstray(self, key: TimerKey) -> None:
        if key in self.strays:
            if self._strays is None:
                self._strays = dict(self.state.strays)
            del self._strays[key]

    # Operations and replies

    @property
    def operations(self) -> Mapping[int, Operation]:
        return self.state.operations if self._operations is None else self._operations

    def _own_operations(self) -> dict[int, Operation]:
        if self._operations is None:
            self._operations = dict(self.state.operations)
        return self._operations

    def open(self, number: int, operation: Operation) -> None:
        self._own_operations()[number] = operation

    def close(self, number: int) -> None:
        del self._own_operations()[number]

    def reply(self, request_id: int, body: ResponseBody) -> None:
        """Answer a request, unless the operation layer did so before (C-JOIN-70)."""
        if request_id == ANSWERED:
            return
        operation = self.operations.get(request_id)
        if operation is not None:
            if operation.answered:
                return
            self._own_operations()[request_id] = Operation(
                operation.request, operation.offset, operation.reply, operation.callback, True
            )
        self.replies.append(Reply(request_id, body))

    def answered(self, request_id: int) -> bool:
        """Whether this step has answered the request."""
        return any(reply.request_id == request_id for reply in self.replies)

    def reset(self, groups: dict[str, Group], end: int) -> None:
        """Forget everything; go on with these groups and a log that ends at ``end``, replicated."""
        self.replace_groups(groups, ())
        self._changed.clear()
        self._operations = {}
        self._strays = {}
        self.relisted = ()
        self.start = self.committed = end

    def finish(self) -> tuple[CoordinatorState, Outcome]:
        old = self.state
        end = self.end
        changes = self.changes
        if self._changed:
            changes += tuple(MapChange(self.start, end, group_id, before) for group_id, before in self._changed)
        state = CoordinatorState(
            old.settings,
            old.profile,
            old.running,
            self.status,
            self.leader_epoch,
            old.handled + 1,
            self.groups,
            end,
            self.committed,
            self.start,
            changes,
            self.operations,
            self.strays,
            self.incarnations,
            self.relisted,
        )
        return state, Outcome(tuple(self.records), tuple(self.replies), tuple(self.timers))
