"""A coordinator while one step changes it.

A step works on private, mutable copies and freezes them at its end. If a handler raises, none of its changes is seen.
The step shares its mappings with the state that it started from, and copies a mapping when it first changes it.

A step has five parts: the log (``Log``), the groups (``Memory``), the requests without an answer (``Requests``), the
offsets (``stored_offsets``) and the timers (``timers``). ``Step`` has what concerns several of them, and the rest of
the state, whose values are replaced whole.

A change of a group by a record of the step is undone if the record is not appended; a change in memory alone is not
(F-RT-08).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence

from fencepost.protocol.choices import Choices
from fencepost.protocol.events import Outcome, Reply, TaskKey
from fencepost.protocol.logged import PlainCommit
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.plain_commit import CommitOutcome
from fencepost.protocol.rebalances import RebalanceReport
from fencepost.protocol.records import Record

from .persistent import changed, frozen, owned
from .replay_context import Appliers, Replay
from .state import ANSWERED, NO_REMAINS, NOBODY, CoordinatorState, Group, GroupChange, Operation
from .stored_offsets import NO_OFFSETS, OffsetStore, StepOffsets
from .timers import Timers


class Memory:
    """The groups while a step changes them, and what is needed to undo each change.

    ``groups``: by their names. ``changes``: of earlier steps, not yet replicated, in log order. ``incarnations``:
    how many groups there were so far. ``undone``: groups that a failed append removes in this step, by number."""

    __slots__ = ("_before", "_changed", "changes", "groups", "incarnations", "undone")

    def __init__(self, state: CoordinatorState) -> None:
        self._before = state.groups
        self.groups = state.groups
        self.changes = state.changes
        self.incarnations = state.incarnations
        self.undone: dict[int, Group] = {}
        self._changed: list[tuple[str, Group | None, int]] = []  #: with the number of records it counts as later

    def new_incarnation(self) -> int:
        """A number that no group had before (C-ST-24)."""
        self.incarnations += 1
        return self.incarnations

    def exchange(self, group: Group) -> None:
        """Replace a group in memory alone: no record says so, and a failed append does not undo it (F-RT-08)."""
        self._own()[group.group_id] = group

    def change(self, group_id: str, group: Group | None) -> Group | None:
        """A record of this step adds, replaces, changes or removes a group (F-RT-08, C-ADM-08). Returns the previous
        group."""
        groups = self._own()
        old = groups.get(group_id)
        self._changed.append((group_id, old, 0))
        if group is None:
            groups.pop(group_id, None)
        else:
            groups[group_id] = group
        return old

    def forget(self, group_id: str) -> None:
        """Remove a group without a record; the change counts as part of the next record (C-JOIN-15)."""
        groups = self._own()
        self._changed.append((group_id, groups.pop(group_id), 1))

    def appear(self, group: Group) -> None:
        """Add a group without a record; the change counts as part of the next record, of this or a later step
        (O-COMMIT-39)."""
        self._own()[group.group_id] = group
        self._changed.append((group.group_id, None, 1))

    def replace(self, groups: Mapping[str, Group], changes: tuple[GroupChange, ...]) -> None:
        """Replace the whole map with one that is not shared (load, unload, revert)."""
        self.groups = groups
        self.changes = changes

    def restart(self, groups: Mapping[str, Group]) -> None:
        """Start from these groups; nothing can be undone."""
        self.replace(groups, ())
        self._changed.clear()

    def after(self) -> Mapping[str, Group]:
        """The groups after the step."""
        return frozen(self.groups)

    def all_changes(self, base: int, end: int) -> tuple[GroupChange, ...]:
        """The changes that are not replicated after the step, which has written from ``base`` to below ``end``."""
        if not self._changed:
            return self.changes
        behind = int(base == end)  # the step wrote no record that the change could be part of
        return self.changes + tuple(
            GroupChange(base, end + more * behind, name, old) for name, old, more in self._changed
        )

    def _own(self) -> MutableMapping[str, Group]:
        groups = self.groups = owned(self.groups, self._before)
        return groups


class Requests:
    """The requests that have no answer yet, while a step answers them. Some wait for the log, some wait in a group.

    ``operations``: those that wait for the log, by number, in log order. ``replies``: the answers of this step."""

    __slots__ = ("_before", "_parked", "_parking", "operations", "replies")

    def __init__(self, state: CoordinatorState) -> None:
        self._before = state.operations
        self.operations = state.operations
        self._parked = state.parked
        self._parking: dict[int, str | None] = {}
        self.replies: list[Reply] = []

    def open(self, number: int, operation: Operation) -> None:
        """The operation of this number waits for its records."""
        self._own()[number] = operation

    def close(self, number: int) -> None:
        """The operation of this number is finished."""
        del self._own()[number]

    def reply(self, request_id: int, body: ResponseBody) -> None:
        """Answer a request, unless the operation layer has answered it already (C-JOIN-70)."""
        if request_id == ANSWERED:
            return
        operation = self.operations.get(request_id)
        if operation is not None:
            if operation.answered:
                return
            self._own()[request_id] = Operation(
                operation.request, operation.offset, operation.reply, operation.callback, True
            )
        self.replies.append(Reply(request_id, body))

    def answered(self, request_id: int) -> bool:
        """Whether this step has answered the request."""
        return any(reply.request_id == request_id for reply in self.replies)

    def park(self, parking: Mapping[int, str | None]) -> None:
        """Park these requests in the groups of these names; None means that the request no longer waits."""
        self._parking.update(parking)

    def repark(self, old: Group | None, new: Group | None) -> None:
        """Replace a group: the requests that wait in the old one stop waiting, those of the new one are parked."""
        if old is not None:
            self._parking.update(dict.fromkeys(old.parked()))
        if new is not None:
            self._parking.update(dict.fromkeys(new.parked(), new.group_id))

    def parked_in(self, number: int) -> str | None:
        """The name of the group in which the request waits, None if it waits in none."""
        return self._parking.get(number, self._parked.get(number))

    def forget(self) -> None:
        """Forget all waiting requests without answering them."""
        self._before = self.operations = {}
        self._parked = NOBODY
        self._parking.clear()

    def open_operations(self) -> Mapping[int, Operation]:
        """The operations that are open after the step."""
        return frozen(self.operations)

    def parked(self) -> Mapping[int, str]:
        """After the step: the waiting requests, each with the name of its group."""
        return changed(self._parked, self._parking) if self._parking else self._parked

    def _own(self) -> MutableMapping[int, Operation]:
        operations = self.operations = owned(self.operations, self._before)
        return operations


class Log:
    """The log while a step appends to it: its end, and how much of it is replicated.

    ``records``: those of this step, in order; or its plain ``commit``, which is all that it writes then. ``start``:
    the offset of the first of them. ``committed``: the high watermark, below which everything is replicated. ``ends``:
    end offsets of outcomes that are not replicated."""

    __slots__ = ("commit", "committed", "ends", "records", "start")

    def __init__(self, state: CoordinatorState) -> None:
        self.start = state.end
        self.committed = state.committed
        self.ends = state.ends
        self.records: list[Record] = []
        self.commit: PlainCommit | None = None

    @property
    def end(self) -> int:
        """The offset after the records of this step."""
        return self.start + len(self.records if self.commit is None else self.commit)

    @property
    def all_replicated(self) -> bool:
        """Whether there is nothing to wait for, from this step or earlier ones."""
        return not self.records and self.commit is None and self.committed >= self.start

    def restart(self, end: int) -> None:
        """Continue with another log, which is replicated up to its end."""
        self.ends = ()
        self.start = self.committed = end


class Step:
    """One step in progress: the state it started from, what it changed, and what it asks for."""

    __slots__ = (
        "appliers",
        "at_ms",
        "choices",
        "configs",
        "functions",
        "leader_epoch",
        "log",
        "memory",
        "offsets",
        "quirks",
        "rebalances",
        "remains",
        "requests",
        "rules",
        "settings",
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
        self.functions = state.functions
        self.rules = state.rules
        self.quirks = state.rules.quirks
        self.at_ms = at_ms
        self.choices = choices
        self.appliers = appliers
        self.log = Log(state)
        self.memory = Memory(state)
        self.offsets = StepOffsets(state.offsets, state.offset_changes)
        self.requests = Requests(state)
        self.timers = Timers(state.timers, at_ms, state.rules.quirks)
        self.status = state.status
        self.leader_epoch = state.leader_epoch
        self.topics = state.topics
        self.configs = state.configs
        self.tasks = state.tasks  #: running, by group
        self.wanted: list[TaskKey] = []  #: the tasks that this step starts
        self.remains = state.remains
        self.rebalances: list[RebalanceReport] = []  #: the reports of this step

    def write(self, records: Sequence[Record]) -> None:
        """Append records and apply them (F-RT-04). If this raises ``InternalError``, nothing is changed."""
        if not records:
            return
        names = dict.fromkeys(record.key.group for record in records)
        groups = self.memory.groups
        before = {name: groups[name] for name in names if name in groups}
        replayed = Replay(before, self.rules, self.memory.incarnations, self.appliers)
        for record in records:
            replayed.apply(record)
        after = replayed.groups()
        self.memory.incarnations = replayed.incarnations
        for name in names:
            self.change_map(name, after.get(name))
        self.log.records += records

    def change_map(self, group_id: str, group: Group | None) -> None:
        """A record of this step adds, replaces, changes or removes a group, and with it the requests parked there."""
        self.requests.repark(self.memory.change(group_id, group), group)

    def reply(self, request_id: int, body: ResponseBody) -> None:
        """Answer a request, unless the operation layer has answered it already (C-JOIN-70)."""
        self.requests.reply(request_id, body)

    def mark_answered(self, number: int) -> None:
        """Mark a request as answered if a group holds it: it still counts as parked there, but gets no second answer
        (C-JOIN-70, C-ST-23)."""
        name = self.requests.parked_in(number)
        group = None if name is None else self.memory.groups.get(name)
        if group is not None:
            self.memory.exchange(group.with_answered(number))
            self.requests.park({number: None})

    def reset(self, groups: Mapping[str, Group], end: int, offsets: OffsetStore = NO_OFFSETS) -> None:
        """Forget everything, then continue with these groups and offsets and a log that is replicated up to its end,
        ``end``."""
        self.memory.restart(groups)
        self.offsets.changes = ()
        self.offsets.restart(offsets)
        self.requests.forget()
        self.timers.forget()
        self.log.restart(end)
        self.tasks = {}
        self.remains = NO_REMAINS
        self.rebalances.clear()  # the reports are about groups that are forgotten

    def finish(self) -> tuple[CoordinatorState, Outcome]:
        """The state after the step, and what the step asks for."""
        old, log, memory, requests, timers = self.state, self.log, self.memory, self.requests, self.timers
        end = log.end
        ends = (*log.ends, end) if end > log.start else log.ends
        state = CoordinatorState(
            old.settings,
            old.profile,
            old.rules,
            old.running,
            self.status,
            self.leader_epoch,
            old.handled + 1,
            self.at_ms,
            memory.after(),
            end,
            log.committed,
            log.start,
            memory.all_changes(log.start, end),
            requests.open_operations(),
            timers.table(),
            requests.parked(),
            ends,
            memory.incarnations,
            self.functions,
            self.topics,
            self.configs,
            self.tasks,
            self.remains,
            old.remains,
            self.offsets.now,
            self.offsets.all_changes(log.start, end),
            old.assignors,
        )
        rest = tuple(requests.replies), tuple(timers.commands), tuple(self.wanted), tuple(self.rebalances)
        if log.commit is not None:
            return state, CommitOutcome(log.commit, *rest)
        return state, Outcome(tuple(log.records), *rest)
