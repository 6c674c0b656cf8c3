"""A coordinator while one step changes it.

A step works on private, mutable copies and freezes them at its end; if a handler raises, nothing of it is seen. It
shares its mappings with the state it came from and copies one when it first changes it.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from fencepost.protocol.choices import Choices
from fencepost.protocol.events import (
    CancelTimer,
    Outcome,
    Reply,
    SetTimer,
    TaskKey,
    TimerCommand,
    TimerKey,
)
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.records import Record

from .persistent import changed, frozen, owned
from .replay import Appliers, Replay
from .state import (
    ANSWERED,
    NO_REMAINS,
    NOBODY,
    Callback,
    CoordinatorState,
    Group,
    GroupChange,
    Operation,
)
from .timer_table import NO_TIMERS, Armed, InitialDelay, Slot, slot_of


class Step:
    """One step under way: the state it started from, what it changed, what it asks for."""

    __slots__ = (
        "_changed",
        "_parked",
        "_parking",
        "_timer_changes",
        "_timers_before",
        "appliers",
        "at_ms",
        "callback",
        "changes",
        "choices",
        "committed",
        "configs",
        "ends",
        "functions",
        "groups",
        "incarnations",
        "leader_epoch",
        "operations",
        "quirks",
        "records",
        "remains",
        "replies",
        "settings",
        "start",
        "state",
        "status",
        "tasks",
        "timers",
        "topics",
        "wanted",
    )

    def __init__(self, state: CoordinatorState, at_ms: int, choices: Choices, appliers: Appliers) -> None:
        self.state = state
        self.settings = state.settings
        self.quirks = state.quirks
        self.at_ms = at_ms
        self.choices = choices
        self.appliers = appliers
        self.start = state.end  #: offset of the first record of this step
        self.committed = state.committed
        self.callback: Callback | None = None  #: what waits for the record of this step
        self.incarnations = state.incarnations
        self.status = state.status
        self.leader_epoch = state.leader_epoch
        self.records: list[Record] = []
        self.replies: list[Reply] = []
        self.timers: list[TimerCommand] = []
        self.groups = state.groups
        self.changes = state.changes
        self.remains = state.remains  #: exchanged as a whole
        self._changed: list[tuple[str, Group | None, int]] = []  #: and how far behind the records it counts
        self.operations = state.operations
        self._timers_before = state.timers
        self._timer_changes: dict[Slot, Armed | None] = {}
        self.ends = state.ends
        self._parked = state.parked
        self._parking: dict[int, str | None] = {}
        self.functions = state.functions
        self.topics = state.topics
        self.configs = state.configs
        self.tasks = state.tasks  #: under way, by group; exchanged as a whole
        self.wanted: list[TaskKey] = []  #: what this step starts

    # Groups

    def write(self, records: Sequence[Record]) -> None:
        """Append records and apply them (F-RT-04). Raises ``InternalError``, and nothing is changed."""
        if not records:
            return
        names = dict.fromkeys(record.key.group for record in records)
        groups = self.groups
        before = {name: groups[name] for name in names if name in groups}
        work = Replay(before, self.quirks, self.incarnations, self.appliers)
        for record in records:
            work.apply(record)
        after = work.groups()
        self.incarnations = work.incarnations
        for name in names:
            self.change_map(name, after.get(name))
        self.records += records

    def exchange(self, group: Group) -> None:
        """Exchange a group in memory alone: no record says so, and no failed append takes it back (F-RT-08)."""
        self._own_groups()[group.group_id] = group

    def park(self, parking: Mapping[int, str | None]) -> None:
        """These requests wait in the groups of these names; None: they wait no more."""
        self._parking.update(parking)

    def mark_answered(self, number: int) -> None:
        """A group may hold the request; it counts as parked there and is answered no more (C-JOIN-70, C-ST-23)."""
        name = self._parking.get(number, self._parked.get(number))
        group = None if name is None else self.groups.get(name)
        if group is not None:
            self.exchange(group.with_answered(number))
            self._parking[number] = None

    def change_map(self, group_id: str, group: Group | None) -> None:
        """A group comes, is exchanged, changes or goes, by a record of this step (F-RT-08, C-ADM-08)."""
        groups = self._own_groups()
        old = groups.get(group_id)
        self._changed.append((group_id, old, 0))
        self.repark(old, group)
        if group is None:
            groups.pop(group_id, None)
        else:
            groups[group_id] = group

    def repark(self, old: Group | None, new: Group | None) -> None:
        """The requests that wait in one group wait no more, those that wait in another do: it takes its place."""
        if old is not None:
            self._parking.update(dict.fromkeys(old.parked()))
        if new is not None:
            self._parking.update(dict.fromkeys(new.parked(), new.group_id))

    def forget_in_memory(self, group_id: str) -> None:
        """A group goes and no record says so; the change counts as the next record's (C-JOIN-15)."""
        groups = self._own_groups()
        self._changed.append((group_id, groups.pop(group_id), 1))

    def _own_groups(self) -> MutableMapping[str, Group]:
        groups = self.groups = owned(self.groups, self.state.groups)
        return groups

    def replace_groups(self, groups: Mapping[str, Group], changes: tuple[GroupChange, ...]) -> None:
        """Exchange the whole map, for one that nobody else has (load, unload, revert)."""
        self.groups = groups
        self.changes = changes

    @property
    def end(self) -> int:
        """The offset after the records of this step."""
        return self.start + len(self.records)

    # Timers

    def armed(self, key: TimerKey) -> Armed | None:
        """The timer of this key, None if it is not set."""
        found = self._in_slot(slot_of(self, key))
        return found if found is not None and found.key == key else None

    def set_timer(self, key: TimerKey, delay_ms: int, *, initial: InitialDelay | None = None, epoch: int = 0) -> None:
        """Sets the timer of this key, or sets it anew (C-TMR-11). ``initial`` and ``epoch`` as in ``Armed``."""
        slot = slot_of(self, key)
        if type(slot) is str:
            other = self._in_slot(slot)
            if other is not None and other.key != key:
                self.timers.append(CancelTimer(other.key))
        self._timer_changes[slot] = Armed(key, self.at_ms + delay_ms, initial, epoch)
        self.timers.append(SetTimer(key, delay_ms))

    def cancel_timer(self, key: TimerKey) -> None:
        """The timer that has the slot of this key goes; nothing happens if there is none."""
        slot = slot_of(self, key)
        found = self._in_slot(slot)
        if found is not None:
            self._timer_changes[slot] = None
            self.timers.append(CancelTimer(found.key))

    def fires(self, key: TimerKey) -> Armed:
        """The timer of this key, which is set no more from now on."""
        slot = slot_of(self, key)
        self._timer_changes[slot] = None
        return self._timers_before[slot]

    def _in_slot(self, slot: Slot) -> Armed | None:
        if slot in self._timer_changes:
            return self._timer_changes[slot]
        found: Armed | None = self._timers_before.get(slot)
        return found

    # Operations and replies

    def _own_operations(self) -> MutableMapping[int, Operation]:
        operations = self.operations = owned(self.operations, self.state.operations)
        return operations

    def open(self, number: int, operation: Operation) -> None:
        """The operation of this number waits for its records."""
        self._own_operations()[number] = operation

    def close(self, number: int) -> None:
        """The operation of this number is over."""
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

    def reset(self, groups: Mapping[str, Group], end: int) -> None:
        """Forget everything; go on with these groups and a log that ends at ``end``, replicated."""
        self.replace_groups(groups, ())
        self._changed.clear()
        self.operations = {}
        self._timers_before, self._parked, self.ends = NO_TIMERS, NOBODY, ()
        self._parking.clear()
        self._timer_changes.clear()
        self.tasks = {}
        self.remains = NO_REMAINS
        self.start = self.committed = end

    def finish(self) -> tuple[CoordinatorState, Outcome]:
        """The state that the step has come to, and what it asks for."""
        old = self.state
        end = self.end
        changes = self.changes
        if self._changed:
            changes += tuple(GroupChange(self.start, end + more, name, before) for name, before, more in self._changed)
        state = CoordinatorState(
            old.settings,
            old.profile,
            old.quirks,
            old.running,
            self.status,
            self.leader_epoch,
            old.handled + 1,
            self.at_ms,
            frozen(self.groups),
            end,
            self.committed,
            self.start,
            changes,
            frozen(self.operations),
            changed(self._timers_before, self._timer_changes) if self._timer_changes else self._timers_before,
            changed(self._parked, self._parking) if self._parking else self._parked,
            (*self.ends, end) if self.records else self.ends,
            self.incarnations,
            self.functions,
            self.topics,
            self.configs,
            self.tasks,
            self.remains,
            old.remains,
        )
        return state, Outcome(tuple(self.records), tuple(self.replies), tuple(self.timers), tuple(self.wanted))
