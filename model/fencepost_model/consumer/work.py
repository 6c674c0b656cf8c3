"""Consumer groups in the operation layer: requests, timers and tasks as writes that wait for the log (11.2).

``ConsumerGroups`` belongs to the ``Work`` of a step, holds what only consumer groups need, and is read when the step is
done. Unlike classic groups, consumer groups change only by their records; a failed append restores the whole group
(F-RT-08)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    GroupConfig,
    GroupConfigChanged,
    Request,
    TaskKey,
    TaskKind,
    Topic,
    TopicsChanged,
)
from fencepost.protocol.records import GroupMetadataKey, Record

from ..classic.draft import Draft
from ..classic.rebalance import prepare_rebalance
from ..classic.slots import CommittedView, GroupSlot, Written
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Group, Operation, Timer
from ..classic.work import Work
from ..machines import EMPTY
from ..mixed.upgrade import answer_parked_requests, may_upgrade, upgrade
from .derive import group_topics
from .group_step import Environment, GroupStep, StepContext
from .handle import answer_heartbeat, run_step
from .observe import ObservedOracle
from .refusal import Refused
from .state import JOIN, REBALANCE, SESSION, ConsumerGroup, ConsumerHeartbeat, Expire, Image, Resolution, Resolve


class ConsumerState(NamedTuple):
    """State that a coordinator keeps for its consumer groups.

    - ``image``: the existing topics; ``new_topics``: see ``Environment``; ``configs``: dynamic configuration by group.
    - ``tasks``: running regex resolutions.
    - ``rebalance_epochs``: (group, member, epoch) of rebalance timers (M-TMR-02). One that was cancelled or expired may
      be set again (F-RT-17).
    - ``join_timers``: (group, member) of running join timers (X-TMR-02).
    - ``session_timers``: the same for session timers, kept if M-HB-13 is fixed.
    - ``leftover_topics``: (group, topic) that a downgrade has left in the index of subscriptions (X-DOWN-30).
    """

    image: Image = Image()
    new_topics: int = 0
    configs: tuple[tuple[str, GroupConfig], ...] = ()
    tasks: tuple[Resolution, ...] = ()
    rebalance_epochs: tuple[tuple[str, str, int], ...] = ()
    join_timers: frozenset[tuple[str, str]] = frozenset()
    session_timers: frozenset[tuple[str, str]] = frozenset()
    leftover_topics: frozenset[tuple[str, str]] = frozenset()

    def config(self, group_id: str) -> GroupConfig | None:
        for name, config in self.configs:
            if name == group_id:
                return config
        return None


class ConsumerGroups:
    """The consumer groups of a coordinator in one step."""

    def __init__(self, work: Work, state: ConsumerState, oracle: ObservedOracle) -> None:
        self.work = work
        work.image = state.image
        self.state = state
        self.oracle = oracle
        self.started: list[TaskKey] = []

    # ---- steps --------------------------------------------------------------------------------------------------

    def handle(self, request: Request, new_id: str) -> bool:
        """Handle the request if it is about a consumer group, or creates one. Returns whether it did."""
        body = request.body
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            self.handle_heartbeat(request, body, new_id)
            return True
        return False

    def handle_heartbeat(self, request: Request, body: ConsumerGroupHeartbeatRequest, new_id: str) -> None:
        """Handle a valid ConsumerGroupHeartbeat."""
        work = self.work
        slot = work.slots.get(body.group_id)
        group = None if slot is None else slot.group
        heartbeat = ConsumerHeartbeat(
            body, request.version, request.client_id, request.client_host, new_id, request.denied_topics
        )
        prefix: list[Record] = []
        begin = 0
        if isinstance(group, Group):
            if body.member_epoch == 0 and group.state == EMPTY:
                begin = group.generation if work.variant.mixed.empty_group_keeps_epoch else 0
                work.rules.append("M-VAL-22")  # F-ORD-16
                prefix = [Record(GroupMetadataKey(body.group_id), None)]
            else:
                draft = work.draft(body.group_id)
                step = self.begin_step(body.group_id, None)
                if body.member_epoch == 0 and draft is not None and may_upgrade(step, draft):
                    self.upgrade_and_join(step, draft, request, heartbeat)
                    return
                work.rules.append("M-VAL-24")
                work.replies.append((request.id, ConsumerGroupHeartbeatResponse(ErrorCode.GROUP_ID_NOT_FOUND)))
                return
        step = self.begin_step(body.group_id, group if isinstance(group, ConsumerGroup) else None)
        step.continue_epoch(begin)
        response = answer_heartbeat(step, heartbeat)
        if response.error_code is not ErrorCode.NONE:
            self.keep_soft_state(step)
            work.replies.append((request.id, response))  # an error is thrown and does not wait for the log
            return
        self.submit_step(step, Operation(request.id, body.group_id, body, 0, response), prefix)

    def upgrade_and_join(self, step: GroupStep, draft: Draft, request: Request, heartbeat: ConsumerHeartbeat) -> None:
        """Convert the classic group, then let the member join (X-UP-01…11)."""
        checks_first = self.work.variant.mixed.upgrade_checks_first
        try:
            if not checks_first:
                answer_parked_requests(draft)
            upgrade(step, draft)
            armed = dict(step.armed)
            response = answer_heartbeat(step, heartbeat)
        except Refused as refused:
            step.rule(refused.rule)
            armed, response = dict(step.armed), ConsumerGroupHeartbeatResponse(refused.error)
        if response.error_code is not ErrorCode.NONE:
            step.armed = {} if checks_first else armed  # X-UP-09
            self.keep_soft_state(step)
            self.set_timers(step)
            self.work.replies.append((request.id, response))
            return
        if checks_first:
            answer_parked_requests(draft)
        self.work.close_for_conversion(draft)
        operation = Operation(request.id, step.group_id, request.body, 0, response)
        self.submit_step(step, operation, step.upgrade_records)

    def expire_timer(self, group_id: str, timer: Timer, operation: int) -> None:
        """Expire a timer of a member. Without a consumer group nothing happens."""
        if timer.kind == JOIN:
            self.state = self.state._replace(join_timers=self.state.join_timers - {(group_id, timer.member_id)})
        elif timer.kind == SESSION:
            self.state = self.state._replace(session_timers=self.state.session_timers - {(group_id, timer.member_id)})
        slot = self.work.slots.get(group_id)
        group = None if slot is None else slot.group
        step = self.begin_step(group_id, group if isinstance(group, ConsumerGroup) else None)
        found = (e for g, m, e in self.state.rebalance_epochs if (g, m) == (group_id, timer.member_id))
        epoch = next(found, 0)
        rebalance_epoch = epoch if timer.kind == REBALANCE else None
        run_step(step, Expire(timer.kind, timer.member_id, epoch))
        if step.failed:
            self.work.failed = True
            self.set_timers(step)
            return
        self.submit_step(
            step, Operation(operation, group_id, None, 0, timer=timer, rebalance_epoch=rebalance_epoch), []
        )

    def finish_task(self, key: TaskKey, failed: bool, operation: int) -> None:
        """Finish a regex resolution (M-RX-04)."""
        found = next((task for task in self.state.tasks if task.group_id == key.group_id), None)
        if found is None:
            return
        self.state = self.state._replace(tasks=tuple(task for task in self.state.tasks if task is not found))
        slot = self.work.slots.get(key.group_id)
        group = None if slot is None else slot.group
        step = self.begin_step(key.group_id, group if isinstance(group, ConsumerGroup) else None)
        run_step(step, Resolve(found, failed))
        self.submit_step(step, Operation(operation, key.group_id, None, 0), [])

    def on_loaded(self, group_id: str, group: ConsumerGroup) -> None:
        """Set session timers for all members, rebalance timers for those that must revoke (F-LOAD-05)."""
        step = self.begin_step(group_id, group)
        step.load_timers()
        self.set_timers(step)

    def restore_timers(self, written: Written) -> None:
        """Restore the timers of the members that the records changed, before the records are undone (M-HB-13)."""
        if not self.work.variant.classic.restores_timers:
            return
        for group_id, before in written.before:
            if not isinstance(before, ConsumerGroup):
                continue
            now = self.work.consumer_group(group_id)
            step = self.begin_step(group_id, before)
            epochs = {member_id: epoch for group, member_id, epoch in self.state.rebalance_epochs if group == group_id}
            for member in before.members:
                if now is None or now.member(member.member_id) != member:
                    self.work.rules.append("M-HB-13")
                    if (group_id, member.member_id) not in self.state.session_timers:
                        step.arm_member_session(member)
                    step.restore_rebalance_timer(member, written.cancelled, epochs.get(member.member_id))
            self.set_timers(step)

    # ---- results of a step --------------------------------------------------------------------------------------

    def begin_step(self, group_id: str, group: ConsumerGroup | None) -> GroupStep:
        work, state = self.work, self.state
        environment = Environment(
            work.context.now,
            state.image,
            state.config(group_id),
            self.oracle,
            any(task.group_id == group_id for task in state.tasks),
            state.new_topics,
        )
        return GroupStep(
            StepContext(work.context.settings, work.variant, work.context.chooser, environment, work.rules),
            group_id,
            group,
        )

    def submit_step(self, step: GroupStep, operation: Operation, prefix: list[Record]) -> None:
        """Apply the records of a turn and submit the operation."""
        work, group_id = self.work, step.group_id
        slot = work.slots.get(group_id, GroupSlot(group_id))
        old = slot.group
        records = [*prefix, *step.records]
        if records:
            entry = step.fresh or bool(step.upgrade_records) or step.classic is not None
            if entry and old is not None:
                work.variant.classic.note_removal(work, group_id)
            by = operation.id if isinstance(old, Group) else None
            if isinstance(old, Group):
                work.superseded_groups.supersede(group_id, old, operation.id, work.operations)
            work.committed_views = (
                *work.committed_views,
                CommittedView(work.undurable + len(records), group_id, old, entry, by),
            )
            cancelled = frozenset(timer for timer, length in step.armed.items() if length is None)
            if isinstance(old, ConsumerGroup):
                old = old._replace(refresh=step.refresh)  # the deadline stays (M-HB-13)
            work.written = Written(len(records), operation.id, ((group_id, old),), cancelled)
            after = step.classic or step.updated_group()
            if isinstance(old, ConsumerGroup) and isinstance(after, ConsumerGroup):
                *others, last = work.committed_views
                members = work.variant.classic.note_exchanged(work, group_id, old, records)
                work.committed_views = (*others, last._replace(members=members))
            work.slots[group_id] = GroupSlot(group_id, after, slot.delay)
            before = (
                step.group if step.upgrade_records else slot.group
            )  # an upgrade includes members that its request may remove
            if isinstance(before, ConsumerGroup):
                work.variant.mixed.note_topics(self, group_id, before, after)
        self.keep_soft_state(step)
        self.set_timers(step)
        draft = None if step.classic is None else work.draft(group_id)
        if draft is not None:
            draft.read = tuple(map(draft.offered, draft.members.values()))
            if work.variant.mixed.downgrade_cancels_timers:  # timers of an earlier classic group with this name
                draft.cancel(JOIN_TIMER)
                draft.cancel(SYNC_TIMER)
            for member in draft.members.values():
                draft.arm_session(member)  # X-DOWN-05
            if step.parked_member:  # X-DOWN-23
                draft.put(draft.members[step.parked_member]._replace(join=operation.id))
                operation = operation._replace(body=None)
            if step.rebalances:
                prepare_rebalance(draft, "member_left")
            if step.parked_member and any(request == operation.id for request, _ in work.replies):
                operation = operation._replace(answered=True)
        work.submit(operation, records)

    def keep_soft_state(self, step: GroupStep) -> None:
        """Keep the deadline and the task, whatever happens to the records (M-HB-13)."""
        slot = self.work.slots.get(step.group_id)
        group = None if slot is None else slot.group
        if (
            slot is not None
            and isinstance(group, ConsumerGroup)
            and not (step.fresh or step.upgrade_records)
            and group.refresh != step.refresh
        ):
            self.work.slots[step.group_id] = GroupSlot(step.group_id, group._replace(refresh=step.refresh), slot.delay)
        if step.task is not None:
            self.started.append(TaskKey(TaskKind.REGEX, step.group_id))
            self.state = self.state._replace(tasks=(*self.state.tasks, step.task))

    def note_running_timers(self, commands: Iterable[tuple[str, Timer, int | None]]) -> None:
        """Note which timers run after a step with these commands, if a rule needs that (X-TMR-02, M-HB-13), and the
        epochs of those that were set again (F-RT-17, M-TMR-02)."""
        for group_id, member_id, epoch in self.work.rearmed:
            self.set_rebalance_epoch(group_id, member_id, epoch)
        asks = (JOIN, SESSION) if self.work.variant.classic.restores_timers else (JOIN,)
        asked = [row for row in commands if row[1].kind in asks]
        if not asked:
            return
        join_timers, session_timers = set(self.state.join_timers), set(self.state.session_timers)
        for group_id, timer, length in asked:
            running = join_timers if timer.kind == JOIN else session_timers
            (running.discard if length is None else running.add)((group_id, timer.member_id))
        if join_timers != self.state.join_timers or session_timers != self.state.session_timers:
            self.state = self.state._replace(
                join_timers=frozenset(join_timers), session_timers=frozenset(session_timers)
            )

    def set_timers(self, step: GroupStep) -> None:
        if not step.armed:
            return
        self.work.detached_timers.append((step.group_id, step.armed))
        for member_id, epoch in step.rebalance_epochs.items():
            self.set_rebalance_epoch(step.group_id, member_id, epoch)

    def set_rebalance_epoch(self, group_id: str, member_id: str, epoch: int) -> None:
        """Note that the rebalance timer of the member is armed at this epoch (M-TMR-02)."""
        kept = [row for row in self.state.rebalance_epochs if row[:2] != (group_id, member_id)]
        self.state = self.state._replace(rebalance_epochs=tuple(sorted([*kept, (group_id, member_id, epoch)])))


def unload(state: ConsumerState) -> ConsumerState:
    """Drop what a coordinator keeps for its groups (F-UNLOAD-01). Topics and configurations belong to the broker and
    stay."""
    return ConsumerState(state.image, state.new_topics, state.configs)


def apply_group_config(state: ConsumerState, event: GroupConfigChanged) -> ConsumerState:
    """Apply a group's dynamic configuration (M-CFG-01)."""
    configs = dict(state.configs)
    configs.pop(event.group_id, None)
    if event.config is not None:
        configs[event.group_id] = event.config
    return state._replace(configs=tuple(sorted(configs.items(), key=lambda row: row[0])))


def apply_topics(
    state: ConsumerState, slots: tuple[GroupSlot, ...], event: TopicsChanged, *, active: bool
) -> tuple[ConsumerState, tuple[GroupSlot, ...]]:
    """Apply a new image. Groups that subscribe to a changed topic must check the metadata again (M-META-03)."""
    old = {topic.name: shape(topic) for topic in state.image.topics}
    new = {topic.name: shape(topic) for topic in event.topics}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    ids = {topic.topic_id for topic in state.image.topics}
    image = Image(tuple(sorted([plain(topic) for topic in event.topics], key=lambda topic: topic.name)), event.version)
    state = state._replace(image=image)
    if not active:
        return state, slots
    if state.new_topics == -1 or any(topic.topic_id not in ids for topic in event.topics):  # M-RX-03
        state = state._replace(new_topics=event.version)
    if not changed:
        return state, slots
    return state, tuple([_expired(state, slot, changed) for slot in slots])


def _expired(state: ConsumerState, slot: GroupSlot, changed: set[str]) -> GroupSlot:
    group = slot.group
    if not isinstance(group, ConsumerGroup) or group.refresh is None:
        return slot
    indexed = group_topics(group.members, group.regexes) | {t for g, t in state.leftover_topics if g == slot.group_id}
    if changed.isdisjoint(indexed):
        return slot
    return slot._replace(group=group._replace(refresh=None))


def shape(topic: Topic) -> tuple[bytes, tuple[frozenset[str], ...]]:
    return topic.topic_id, plain(topic).racks


def plain(topic: Topic) -> Topic:
    """Return the topic with a set of racks for each partition."""
    racks = (*topic.racks[: topic.partitions], *(frozenset(),) * (topic.partitions - len(topic.racks)))
    return replace(topic, racks=racks)


def forget_topics(groups: ConsumerGroups, group_id: str, old: ConsumerGroup, new: Group | ConsumerGroup | None) -> None:
    """Keep no topics of a group that is no longer a consumer group (M-META-03)."""
