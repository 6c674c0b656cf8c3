"""A coordinator while one step changes it.

A step works on private, mutable copies and freezes them at its end. If a handler raises, none of its changes is seen.
The step shares its mappings with the state that it started from, and copies a mapping when it first changes it.

A step has five parts: ``log``, ``memory`` (the groups), ``offsets``, ``requests`` (without an answer yet) and
``timers``. This module has what concerns several of them, and the rest of the state, whose values are replaced whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fencepost.protocol.choices import Choices
from fencepost.protocol.events import Outcome, TaskKey
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.plain_commit import CommitOutcome
from fencepost.protocol.rebalances import RebalanceReport
from fencepost.protocol.records import Record

from .log import Log
from .memory import Memory
from .replay_context import Appliers, Replay
from .requests import Requests
from .state import NO_REMAINS, CoordinatorState, Group
from .stored_offsets import NO_OFFSETS, OffsetStore, StepOffsets
from .timers import Timers


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
        self.timers = Timers(state, at_ms)
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
