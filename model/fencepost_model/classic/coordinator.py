"""The whole coordinator as a transition system, event by event. Traces are compared with it.

``CoordinatorModel.successors(state, event)`` takes the events of ``fencepost.protocol.events`` and returns outcomes in
the same vocabulary. Groups of both kinds are in one map and share one log: an operation on one waits for the records of
another (F-RT-16). The state holds no deadline. A caller that needs the armed timers adds up the commands of the
outcomes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    CancelTimer,
    Event,
    GroupConfigChanged,
    Load,
    LoadFailed,
    LoadStarted,
    Outcome,
    Reply,
    Request,
    SetTimer,
    TaskDone,
    TimerCommand,
    TimerFired,
    TimerKey,
    TimerKind,
    TopicsChanged,
)
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.offset_messages import OffsetFetchRequest, OffsetFetchResponse
from fencepost.protocol.offset_view import OffsetsView
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

from ..consumer.observe import NOTHING_OBSERVED, ObservedOracle, ObservedValues
from ..consumer.state import KINDS, ConsumerGroup, Image
from ..consumer.view import view as consumer_view
from ..consumer.work import ConsumerGroups, ConsumerState, apply_group_config, apply_topics, unload
from ..mixed.requests import handle as handle_classic
from ..offsets import work as offsets
from ..offsets.state import Offsets
from ..offsets.view import view as offsets_view
from .choice import Chooser, every
from .coordinator_state import CoordinatorState, Step
from .gate import refused
from .load import deciding_rules, load_groups, load_offsets
from .reads import READ_RULES, committed, is_read, read
from .requests import handle_request, run_due_deletions
from .slots import GroupSlot
from .state import EXPIRY_KIND, Arrive, Group, Timer
from .view import view
from .work import Work

NOT_OWNED: Final = "not owned"
LOADING: Final = "loading"
ACTIVE: Final = "active"

_OF_CLASSIC_GROUPS: Final = (TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION)
_KINDS: Final = {
    "join": TimerKind.JOIN,
    "sync": TimerKind.SYNC,
    "session": TimerKind.SESSION,
    **{kind: TimerKind(kind) for kind in KINDS},
    EXPIRY_KIND: TimerKind.EXPIRY,
}
_NAMES: Final = {kind: name for name, kind in _KINDS.items()}


class CoordinatorModel:
    """The coordinator under given settings and a profile."""

    def __init__(self, settings: Settings, profile: Profile) -> None:
        self.settings = settings
        self.profile = profile
        from ..switches import variant_of  # noqa: PLC0415  its rules are in packages that import this module

        self.variant = variant_of(profile)

    def initial(self) -> CoordinatorState:
        """Return a coordinator that does not own its partition yet (F-RT-02)."""
        image = Image(version=self.variant.consumer.first_image_version)
        return CoordinatorState(consumer=ConsumerState(image, image.version))

    def views(self, state: CoordinatorState) -> dict[str, GroupView]:
        """Return the view of each classic group, by group id."""
        return {slot.group_id: view(slot.group_id, slot.group) for slot in state.slots if isinstance(slot.group, Group)}

    def consumer_views(self, state: CoordinatorState) -> dict[str, ConsumerGroupView]:
        """Return the view of each consumer group, by group id."""
        return {
            slot.group_id: consumer_view(self.variant, slot.group_id, slot.group)
            for slot in state.slots
            if isinstance(slot.group, ConsumerGroup)
        }

    def offsets_view(self, state: CoordinatorState) -> OffsetsView:
        """Return the view of the offsets."""
        return offsets_view(state.offsets)

    def successors(
        self, state: CoordinatorState, event: Event, new_id: str = "", seen: ObservedValues = NOTHING_OBSERVED
    ) -> tuple[Step, ...]:
        """Return all results of an event.

        ``new_id`` is the member id to hand out if one is needed. ``seen`` holds what a target showed where the model
        leaves the value to others.
        """
        if isinstance(event, Request):
            body = refused(self.settings, self.variant, state.phase, event, state.consumer.image)
            if body is not None:
                return (self._only(state, (body[0],), body[1]),)
            if isinstance(event.body, OffsetFetchRequest) and not event.body.require_stable:
                return (self._fetched(state, event, event.body),)
            if is_read(event.body):
                bodies = read(self.settings, self.variant, state, event)
                decided = ("C-ADM-08", READ_RULES[type(event.body)])
                return tuple([self._only(state, ((event.id, body),), decided) for body in bodies])
        elif isinstance(event, TimerFired | Appended | AppendFailed | TaskDone):
            pass
        elif isinstance(event, TopicsChanged | GroupConfigChanged):
            changed = self._changed(state, event)
            if isinstance(event, GroupConfigChanged):
                return (self._only(changed, (), ("M-CFG-01",)),)
            if state.phase != ACTIVE:
                return (self._only(changed, (), ("M-META-03",)),)
            runs = every(lambda chooser: self._topics_deleted(state, changed, event, chooser))
            return tuple([self._close(changed, event, label, consumer_groups) for label, consumer_groups in runs])
        elif isinstance(event, LoadStarted | LoadFailed) or (isinstance(event, Load) and not self._loads(state, event)):
            return (self._phase(state, event),)
        elif isinstance(event, Load) and load_groups(self.variant, event.records) is None:
            failed = state._replace(
                phase=NOT_OWNED, leader_epoch=_elected(state, event), handled=state.handled + 1, written=None
            )
            rules = ("F-LOAD-02", *deciding_rules(event.records))
            return (Step("", failed, Outcome(), rules, failed=True),)
        elif not isinstance(event, Load) and not self._unloads(state, event):
            return (self._only(state, (), ("F-LOAD-03" if state.phase == ACTIVE else "F-RT-02",)),)
        runs = every(lambda chooser: self._run(state, event, new_id, seen, chooser))
        return tuple([self._close(state, event, label, consumer_groups) for label, consumer_groups in runs])

    # ---- events without choices ---------------------------------------------------------------------------------

    def _only(
        self, state: CoordinatorState, bodies: tuple[tuple[int, ResponseBody], ...], rules: tuple[str, ...]
    ) -> Step:
        after = state._replace(handled=state.handled + 1, written=None)
        replies = tuple(Reply(request, body) for request, body in bodies)
        return Step("", after, Outcome(replies=replies), rules)

    def _fetched(self, state: CoordinatorState, event: Request, body: OffsetFetchRequest) -> Step:
        """Read the replicated offsets; such a read waits for nothing (O-FETCH-07)."""
        image, groups = state.consumer.image, committed(state)
        found = offsets.read(self.variant, image, event, body, groups=groups, offsets=state.replicated(), stable=False)
        answer = OffsetFetchResponse(tuple([entry.body for entry in found.entries]))
        return self._only(state, ((event.id, answer),), found.rules)

    def _topics_deleted(
        self, before: CoordinatorState, state: CoordinatorState, event: TopicsChanged, chooser: Chooser
    ) -> ConsumerGroups:
        consumer_groups = self._begin(state, event, NOTHING_OBSERVED, chooser)
        consumer_groups.work.rules.append("M-META-03")
        offsets.topics_deleted(consumer_groups.work, before.consumer.image, state.consumer.image, -(state.handled + 1))
        return consumer_groups

    def _changed(self, state: CoordinatorState, event: TopicsChanged | GroupConfigChanged) -> CoordinatorState:
        """Change the topics or a group's configuration (M-META-03, M-CFG-01). Both belong to the broker, so they stay
        when the partition goes."""
        if isinstance(event, GroupConfigChanged):
            return state._replace(consumer=apply_group_config(state.consumer, event))
        consumer, slots = apply_topics(state.consumer, state.slots, event, active=state.phase == ACTIVE)
        return state._replace(consumer=consumer, slots=slots)

    def _phase(self, state: CoordinatorState, event: LoadStarted | Load | LoadFailed) -> Step:
        """Begin or fail a load, or ignore a load that does not begin (F-LOAD-03, F-LOAD-08)."""
        after = state._replace(handled=state.handled + 1, written=None)
        if isinstance(event, LoadFailed):
            if state.phase == LOADING:
                after = after._replace(phase=NOT_OWNED)
        elif state.leader_epoch is None or event.leader_epoch > state.leader_epoch:
            after = after._replace(leader_epoch=event.leader_epoch, phase=ACTIVE if state.phase == ACTIVE else LOADING)
        return Step("", after, Outcome(), ("F-LOAD-03",))

    def _loads(self, state: CoordinatorState, event: Load) -> bool:
        """Whether this load ends with a new coordinator (F-LOAD-03)."""
        if state.phase == LOADING:
            return True
        return state.phase == NOT_OWNED and (state.leader_epoch is None or event.leader_epoch > state.leader_epoch)

    def _unloads(self, state: CoordinatorState, event: Event) -> bool:
        """Return whether this event unloads the partition; one without an epoch always does (F-LOAD-03)."""
        epoch = getattr(event, "leader_epoch", None)
        return epoch is None or state.leader_epoch is None or epoch > state.leader_epoch

    # ---- steps --------------------------------------------------------------------------------------------------

    def _begin(self, state: CoordinatorState, event: Event, seen: ObservedValues, chooser: Chooser) -> ConsumerGroups:
        fresh = isinstance(event, Load)
        work = Work(
            self.settings,
            self.variant,
            chooser,
            {} if fresh else {slot.group_id: slot for slot in state.slots},
            operations=() if fresh else state.operations,
            undurable=0 if fresh else state.undurable,
            now=event.at_ms,
            committed_views=() if fresh else state.committed_views,
            relisted=frozenset() if fresh else state.relisted,
            dropped=() if fresh else state.dropped,
            doubled=frozenset() if fresh else state.doubled,
            superseded_groups=() if fresh else state.superseded_groups,
            offsets=load_offsets(self.variant, event.records) if isinstance(event, Load) else state.offsets,
            past=() if fresh else state.past,
            end=state.durable + state.undurable,
            topics=() if fresh else state.topics,
        )
        return ConsumerGroups(work, state.consumer, ObservedOracle(seen, state.hashes, _failing(state.slots)))

    def _run(
        self, state: CoordinatorState, event: Event, new_id: str, seen: ObservedValues, chooser: Chooser
    ) -> ConsumerGroups:
        consumer_groups = self._begin(state, event, seen, chooser)
        work = consumer_groups.work
        if isinstance(event, Request):
            if offsets.handle(work, event):
                pass
            elif not consumer_groups.handle(event, new_id) and not handle_classic(consumer_groups, event, new_id):
                handle_request(
                    work,
                    Arrive(
                        event.id, event.version, event.client_id, event.client_host, event.body, new_id, event.denied
                    ),
                )
        elif isinstance(event, TimerFired):
            key = event.key
            if key.kind is TimerKind.OPERATION:
                work.time_out(key.operation)
            elif key.kind is TimerKind.EXPIRY:
                offsets.run_expiry(work, -(state.handled + 1))
            else:
                timer, operation = Timer(_NAMES[key.kind], key.member_id), -(state.handled + 1)
                if key.kind in _OF_CLASSIC_GROUPS:
                    work.expire_timer(key.group_id, timer, operation)
                else:
                    consumer_groups.expire_timer(key.group_id, timer, operation)
        elif isinstance(event, TaskDone):
            consumer_groups.finish_task(event.key, event.failed, -(state.handled + 1))
        elif isinstance(event, Appended):
            work.durable(max(event.offset - state.durable, 0))
        elif isinstance(event, AppendFailed):
            if state.written is not None:
                consumer_groups.restore_timers(state.written)
                work.append_error(state.written, event.error)
        elif isinstance(event, Load):
            consumer_groups.state = unload(consumer_groups.state)._replace(
                new_topics=consumer_groups.state.image.version
            )
            work.rules.extend(deciding_rules(event.records))
            groups = load_groups(self.variant, event.records, event.at_ms) or {}
            work.detached_timers.append(
                ("", {offsets.EXPIRY: self.settings.offsets_retention_check_interval_ms})
            )  # F-LOAD-07
            for group_id in self.variant.classic.load_order(groups, chooser):
                group = groups[group_id]
                work.slots[group_id] = GroupSlot(group_id, group)
                if isinstance(group, ConsumerGroup):
                    consumer_groups.on_loaded(group_id, group)
                else:
                    work.on_loaded(group_id)
        else:
            work.lose()
            consumer_groups.state = unload(consumer_groups.state)
        run_due_deletions(work)
        work.choose_leaders()
        return consumer_groups

    def _close(self, state: CoordinatorState, event: Event, label: str, consumer_groups: ConsumerGroups) -> Step:
        work = consumer_groups.work
        work.finish()
        asked = work.commands()
        consumer_groups.note_running_timers(asked)
        durable = state.durable
        phase, epoch = state.phase, state.leader_epoch
        if isinstance(event, Load):
            phase, epoch, durable = ACTIVE, _elected(state, event), len(event.records)
        elif isinstance(event, Appended):
            durable = max(durable, event.offset)
        elif work.lost:
            phase, epoch, durable = NOT_OWNED, None, 0
        after = CoordinatorState(
            phase=phase,
            leader_epoch=epoch,
            slots=() if work.lost else _sorted(state.slots, work.slots),
            operations=tuple(work.operations),
            undurable=0 if work.lost else work.undurable,
            durable=durable,
            committed_views=() if work.lost else work.committed_views,
            written=work.written,
            handled=state.handled + 1,
            relisted=frozenset() if work.lost else work.relisted,
            dropped=() if work.lost else work.dropped,
            doubled=frozenset() if work.lost else work.doubled,
            consumer=consumer_groups.state,
            hashes=consumer_groups.oracle.hashes,
            superseded_groups=() if work.lost else work.superseded_groups.kept,
            offsets=Offsets() if work.lost else work.offsets,
            past=() if work.lost else work.past,
            topics=() if work.lost else tuple(sorted(work.topics.items(), key=lambda row: row[0])),
        )
        outcome = Outcome(
            records=tuple(work.records),
            replies=tuple([Reply(request, body) for request, body in work.replies]),
            timers=() if work.lost else self._timers(work, asked),
            tasks=tuple(consumer_groups.started),
        )
        return Step(label, after, outcome, tuple(work.rules), work.lost, work.failed)

    def _timers(self, work: Work, asked: Iterable[tuple[str, Timer, int | None]]) -> tuple[TimerCommand, ...]:
        commands = [_command(group_id, timer, delay) for group_id, timer, delay in asked]
        for operation in work.closed:
            commands.append(CancelTimer(TimerKey(TimerKind.OPERATION, operation=operation)))
        for operation in work.opened:
            if any(operation == each.id for each in work.operations):
                key = TimerKey(TimerKind.OPERATION, operation=operation)
                commands.append(SetTimer(key, self.settings.offsets_commit_timeout_ms))
        return tuple(commands)


def _elected(state: CoordinatorState, event: Load) -> int | None:
    """Return the leader epoch of a loaded coordinator: that of the election. Without an earlier election the load
    itself stands for it (F-LOAD-03)."""
    return state.leader_epoch if state.phase == LOADING else event.leader_epoch


def _failing(slots: tuple[GroupSlot, ...]) -> frozenset[str]:
    """Return the groups whose metadata deadline was set with an epoch that was never written (M-HB-13)."""
    return frozenset(
        [
            slot.group_id
            for slot in slots
            if isinstance(slot.group, ConsumerGroup)
            and slot.group.refresh is not None
            and slot.group.refresh[1] > slot.group.epoch
        ]
    )


@lru_cache(maxsize=1 << 12)
def _command(group_id: str, timer: Timer, delay: int | None) -> TimerCommand:
    """Return the command that sets the timer, or cancels it if ``delay`` is None."""
    key = TimerKey(_KINDS[timer.kind], group_id, timer.member_id)
    return CancelTimer(key) if delay is None else SetTimer(key, delay)


def _sorted(before: tuple[GroupSlot, ...], slots: dict[str, GroupSlot]) -> tuple[GroupSlot, ...]:
    """Return the slots that hold something, sorted by group; the same tuple if the step changed none."""
    after = tuple(slots.values())
    if after == before:
        return before
    return tuple(sorted([slot for slot in after if slot.group is not None or slot.delay is not None]))
