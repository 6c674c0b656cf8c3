"""One classic group as a transition system; the explorer composes it with members and a network.

``GroupModel.successors(state, input)`` is a pure function of hashable values. There is no clock: an armed timer is a
member of ``state.timers``, and any of them may fire. There is no log either: an operation that waits for the log is in
``state.operations``, and ``Durable``, ``AppendError`` and ``TimeOut`` decide its outcome. With ``instant_appends=True``
every append succeeds at once, and those three inputs do not occur.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from .choice import Chooser, every
from .load import load_group
from .requests import handle_request, run_due_deletions
from .slots import GroupSlot, Written
from .state import (
    AppendError,
    Arrive,
    Durable,
    Fire,
    Group,
    Input,
    Operation,
    Output,
    TimeOut,
    Timer,
)
from .work import Work

#: The operation id of a timer's write.
TIMER_WRITE: Final = -1


class GroupState(NamedTuple):
    """One group, its armed timers and its open operations.

    ``group`` is None if it does not exist. ``delay`` belongs to the armed join timer: (length of the running window,
    remaining time) of an initial delay in ms, else None. ``undurable`` counts the records that are not replicated.
    ``written`` is None unless the last step appended records that may still fail.
    """

    group: Group | None = None
    delay: tuple[int, int] | None = None
    timers: frozenset[Timer] = frozenset()
    operations: tuple[Operation, ...] = ()
    undurable: int = 0
    written: Written | None = None


class Successor(NamedTuple):
    """One result of a step: the choices, the next state, the output, and the rules that decided.

    ``armed``: the timers that the step set, with their lengths in ms, for a caller that keeps a clock.
    """

    choice: str
    state: GroupState
    output: Output
    rules: tuple[str, ...]
    armed: tuple[tuple[Timer, int], ...] = ()


class GroupModel:
    """The coordinator's side of one classic group named ``group_id``, under a profile."""

    def __init__(
        self,
        settings: Settings | None = None,
        profile: Profile = INTENDED,
        *,
        group_id: str = "g",
        instant_appends: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        self.profile = profile
        from ..switches import variant_of  # noqa: PLC0415  its rules are in packages that import this module

        self.variant = variant_of(profile)
        self.group_id = group_id
        self.instant_appends = instant_appends

    def initial(self) -> GroupState:
        """Return the state before the group exists."""
        return GroupState()

    def loaded(self, records: Sequence[Record]) -> tuple[Successor, ...]:
        """Return the states of a coordinator that has read these records in log order (F-LOAD-01, 06)."""
        group = None
        for record in records:
            group = load_group(record)

        start = GroupState(group=group)

        def run(chooser: Chooser) -> Work:
            work = self._work(start, chooser)
            work.on_loaded(self.group_id)
            return work

        return tuple(self._close(start, label, work) for label, work in every(run))

    def successors(self, state: GroupState, step: Input) -> tuple[Successor, ...]:
        """Return all results of one step, one for each combination of choices that the protocol leaves open.

        Raises ValueError if ``Fire`` does not name an armed timer, if ``TimeOut`` does not name an open operation, or
        if ``AppendError`` does not follow a step with records.
        """

        def run(chooser: Chooser) -> Work:
            work = self._work(state, chooser)
            self._take(work, state, step)
            work.choose_leaders()
            return work

        return tuple(self._close(state, label, work) for label, work in every(run))

    def _work(self, state: GroupState, chooser: Chooser) -> Work:
        slots = {self.group_id: GroupSlot(self.group_id, state.group, state.delay)}
        return Work(self.settings, self.variant, chooser, slots, operations=state.operations, undurable=state.undurable)

    def _take(self, work: Work, state: GroupState, step: Input) -> None:
        if isinstance(step, Arrive):
            handle_request(work, step)
        elif isinstance(step, Fire):
            if step.timer not in state.timers:
                raise ValueError(f"not armed: {step.timer}")
            work.expire_timer(self.group_id, step.timer, TIMER_WRITE)
        elif isinstance(step, Durable):
            work.durable(step.records)
        elif isinstance(step, AppendError):
            if state.written is None:
                raise ValueError("the last step appended nothing")
            work.append_error(state.written, step.error)
        elif isinstance(step, TimeOut):
            if all(operation.id != step.operation for operation in state.operations):
                raise ValueError(f"not open: {step.operation}")
            work.time_out(step.operation)
        else:
            work.lose()
        run_due_deletions(work)
        if self.instant_appends and work.undurable:
            work.durable(work.undurable)
            run_due_deletions(work)

    def _close(self, state: GroupState, label: str, work: Work) -> Successor:
        work.finish()
        slot = work.slots[self.group_id]
        timers = set(state.timers)
        lengths: dict[Timer, int] = {}
        for _, timer, delay in work.armed():
            if delay is None:
                timers.discard(timer)
            else:
                timers.add(timer)
                lengths[timer] = delay
        timers.difference_update(work.fired)
        if work.lost:
            timers.clear()
        after = GroupState(
            group=slot.group if isinstance(slot.group, Group) else None,
            delay=slot.delay,
            timers=frozenset(timers),
            # A timer's write has no answer, and its failure has no effect (C-JOIN-47), so it need not be kept as open.
            operations=tuple(operation for operation in work.operations if operation.id != TIMER_WRITE),
            undurable=work.undurable,
            written=None if self.instant_appends else work.written,
        )
        output = Output(tuple(work.records), tuple(work.replies))
        return Successor(label, after, output, tuple(work.rules), tuple(lengths.items()))
