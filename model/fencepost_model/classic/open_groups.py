"""The open groups of a step and everything that the step asks for. ``work`` runs the rules on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ..consumer.state import ConsumerGroup, Image
from ..offsets.rows import Early, Fetched
from ..offsets.state import Offsets, Past
from .choice import Chooser
from .draft import Draft, DraftContext
from .slots import CommittedView, GroupSlot, Removed, Written
from .state import JOIN_TIMER, SYNC_TIMER, ArmedTimer, Arrive, Created, Deleting, Group, Operation, Timed, Timer
from .subscription import CONSUMER, topics_of
from .superseded import SupersededGroup, SupersededGroups

if TYPE_CHECKING:
    from ..variant import Variant

_NONE: Final = Offsets()
#: Operations that stay due when the group is gone (F-RT-13), or that belong to requests and not to groups. A group may
#: be named "".
_OF_NO_GROUP: Final = (Created, Timed, Deleting, Early, Fetched)


class OpenGroups:
    """``slots`` and ``operations`` are the state to start from. Read the attributes when the step is done."""

    def __init__(
        self,
        settings: Settings,
        variant: Variant,
        chooser: Chooser,
        slots: dict[str, GroupSlot],
        *,
        operations: tuple[Operation, ...] = (),
        undurable: int = 0,
        now: int = 0,
        committed_views: tuple[CommittedView, ...] = (),
        relisted: frozenset[Removed] = frozenset(),
        dropped: tuple[tuple[str, ConsumerGroup | None], ...] = (),
        doubled: frozenset[tuple[int, str, str]] = frozenset(),
        superseded_groups: tuple[SupersededGroup, ...] = (),
        offsets: Offsets = _NONE,
        past: tuple[Past, ...] = (),
        end: int = 0,
        topics: tuple[tuple[str, frozenset[str] | None], ...] = (),
    ) -> None:
        self.slots = slots
        self.operations = list(operations)
        self.undurable = undurable
        self.committed_views = committed_views
        self.relisted = relisted  #: what ListGroups remembers
        #: groups removed from memory, or new in it, since the last record (C-JOIN-15, O-COMMIT-39)
        self.dropped = dropped
        self.doubled = doubled  #: where members were exchanged, see ``reads``
        self.superseded_groups = SupersededGroups(superseded_groups)
        self.offsets = offsets
        self.past = past  #: offsets as readers see them
        self.end = end  #: of the log
        self.topics = dict(topics)  #: what classic groups have read from their members (G-DATA-10)
        self.drafts: dict[str, Draft] = {}
        self.records: list[Record] = []
        self.replies: list[tuple[int, ResponseBody]] = []
        self.rules: list[str] = []
        self.opened: list[int] = []
        self.closed: list[int] = []
        self.written: Written | None = None
        self.detached_timers: list[tuple[str, dict[Timer, int | None]]] = []  #: timers of groups deleted in this step
        #: alarms set again (F-RT-17): group, member, its epoch when first armed
        self.rearmed: list[tuple[str, str, int]] = []
        self.due: list[Arrive] = []  #: deletions that are due
        self.fired: list[Timer] = []  #: timers that expired and were not set again
        self.lost = False  #: the partition was lost, and every timer with it
        self.failed = False  #: an internal error happened
        self.variant = variant
        self.image = Image()  #: the existing topics
        self.context = DraftContext(settings, variant, chooser, now, self.operations, self.replies, self.rules)

    def draft(self, group_id: str) -> Draft | None:
        """Return the classic group, open for changes, or None if there is none."""
        draft = self.drafts.get(group_id)
        if draft is None:
            slot = self.slots.get(group_id)
            if slot is None or type(slot.group) is not Group:
                return None
            draft = self.drafts[group_id] = Draft(self.context, group_id, slot.group, slot.delay)
        return draft

    def group_of_callback(self, operation: Operation) -> Draft | None:
        """Return the classic group that the operation's callback acts on (X-UP-16)."""
        if operation.superseded_by is None:
            return self.draft(operation.group_id)
        self.rules.append("X-UP-16")
        return self.superseded_groups.draft(self.context, operation.superseded_by)

    def move_timers_by_name(self, operation: Operation, draft: Draft) -> None:
        """Move the timers that the callback set on a converted group to the group that has its name now."""
        if operation.superseded_by is None:
            return
        if JOIN_TIMER in draft.armed:
            live = self.draft(draft.group_id)
            if live is not None:
                live.delay = None
            else:
                slot = self.slots.get(draft.group_id, GroupSlot(draft.group_id))
                self.slots[draft.group_id] = slot._replace(delay=None)
        self.detached_timers.append((draft.group_id, draft.armed))
        draft.armed = {}

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """Return the consumer group with that id, or None."""
        slot = self.slots.get(group_id)
        return slot.group if slot is not None and isinstance(slot.group, ConsumerGroup) else None

    def close_for_conversion(self, draft: Draft) -> None:
        """Release the classic group as it is now, for its conversion (X-UP-03)."""
        self.drafts.pop(draft.group_id)
        self.detached_timers.append((draft.group_id, draft.armed))
        self.slots[draft.group_id] = GroupSlot(draft.group_id, draft.close(), draft.delay)

    def remove_without_record(self, group_id: str, group: ConsumerGroup) -> None:
        """Remove a consumer group from memory without a record (C-JOIN-15). It returns if the next append fails, and
        reads at the committed offset see it until a later record is replicated."""
        self.slots[group_id] = GroupSlot(group_id, None, self.slots[group_id].delay)
        self.variant.classic.note_removal(self, group_id)
        self._note_unwritten(group_id, group)
        self.committed_views = (*self.committed_views, CommittedView(self.undurable + 1, group_id, group))

    def add_without_record(self, group_id: str) -> None:
        """Add a new group without a record (O-COMMIT-39). It is removed if the next append fails (O-COMMIT-40), and
        reads at the committed offset do not see it until a later record is replicated."""
        self.create(group_id)
        self._note_unwritten(group_id, None)
        self.committed_views = (*self.committed_views, CommittedView(self.undurable + 1, group_id, None))

    def _note_unwritten(self, group_id: str, group: ConsumerGroup | None) -> None:
        """Note what a failed append restores: the group as it was before the first change without a record."""
        if group_id not in dict(self.dropped):
            self.dropped = (*self.dropped, (group_id, group))

    def create(self, group_id: str, generation: int = 0) -> Draft:
        """Create a new group (C-ST-06). The timers of an earlier classic group of that name end (C-TMR-12)."""
        slot = self.slots.get(group_id)
        self.topics.pop(group_id, None)
        if self.variant.classic.timers_end_with_group:
            self.detached_timers.append((group_id, {JOIN_TIMER: None, SYNC_TIMER: None}))
            slot = None
        draft = Draft(
            self.context,
            group_id,
            Group(timestamp=self.context.now, generation=generation),
            slot.delay if slot else None,
        )
        self.drafts[group_id] = draft
        return draft

    def delete(self, group_id: str) -> None:
        """Remove the group object (C-ST-17). Its timers stay (C-ADM-09). Operations that wait for the log no longer
        belong to it, but still set their timers by name (X-JOIN-20)."""
        draft = self.drafts.pop(group_id, None)
        delay = draft.delay if draft is not None else self.slots[group_id].delay
        if draft is not None:
            self.detached_timers.append((group_id, draft.armed))
        self.slots[group_id] = GroupSlot(group_id, None, delay)
        self.operations[:] = [
            operation._replace(callback=None)
            if operation.group_id == group_id
            and operation.superseded_by is None
            and not isinstance(operation.callback, _OF_NO_GROUP)
            else operation
            for operation in self.operations
        ]

    def armed(self) -> Iterator[ArmedTimer]:
        """Yield every timer that the step set (length in ms) or cancelled (None), by group."""
        for group_id, timers in self.detached_timers:
            for timer, delay in timers.items():
                yield group_id, timer, delay
        for draft in self.drafts.values():
            for timer, delay in draft.armed.items():
                yield draft.group_id, timer, delay

    def commands(self) -> list[ArmedTimer]:
        """Return the timer commands of the step."""
        return self.variant.classic.timer_commands(self)

    def choose_leaders(self) -> None:
        """Choose the leaders that are still open at the end of the step, while choices can be made."""
        for draft in (*self.drafts.values(), *self.superseded_groups.drafts()):
            draft.choose_leader()

    def finish(self) -> None:
        """Close the drafts into ``slots``."""
        if self.dropped and self.written is not None and self.written.records:
            before = (*[row for row in self.written.before if row[0] not in dict(self.dropped)], *self.dropped)
            self.written = self.written._replace(before=before)
            self.dropped = ()
        for group_id, draft in self.drafts.items():
            group = draft.close()
            if draft.read is not None:
                self.topics[group_id] = topics_of(draft.read) if draft.protocol_type == CONSUMER else None
            slot = self.slots.get(group_id)
            if slot is None or slot.group is not group or slot.delay != draft.delay:
                self.slots[group_id] = GroupSlot(group_id, group, draft.delay)
        self.committed_views = self.superseded_groups.finish(self.committed_views, self.operations)


def list_once(work: OpenGroups, group_id: str) -> None:
    """Note nothing about the next record, which removes the group object (C-ADM-05)."""


def describe_once(work: OpenGroups, group_id: str, old: ConsumerGroup, records: Iterable[Record]) -> frozenset[str]:
    """Note nothing about the next record, which exchanges members (M-DESC-01). Returns the members whose exchange can
    show: none."""
    return frozenset()


def timer_commands(work: OpenGroups) -> list[ArmedTimer]:
    """Return every timer that the step set or cancelled, as it did (M-TMR-01)."""
    return [*work.armed()]
