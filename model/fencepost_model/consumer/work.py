"""Consumer groups in the operation layer: requests, timers and tasks as writes that wait for the log (11.2).

``Side`` belongs to the ``Work`` of a step, holds what only consumer groups need, and is read when the step is done.
Unlike classic groups, consumer groups change only by their records; a failed append restores the whole group (F-RT-08).
"""

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
from ..classic.rebalance import prepare
from ..classic.slots import Shadow, Slot, Written
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Group, Operation, Timer
from ..classic.work import Work
from ..machines import EMPTY
from ..mixed.upgrade import may_upgrade, release, upgrade
from .derive import group_topics
from .group import answer, take
from .observe import Watched
from .refusal import Refused
from .state import JOIN, REBALANCE, SESSION, Beat, ConsumerGroup, Expire, Image, Resolution, Resolve
from .turn import Around, Turn, World


class Surroundings(NamedTuple):
    """State that a coordinator keeps for its consumer groups.

    - ``image``: the existing topics; ``new_topics``: see ``World``; ``configs``: dynamic configuration by group.
    - ``tasks``: running regex resolutions.
    - ``alarms``: (group, member, epoch) of rebalance timers (M-TMR-02). One that was cancelled or expired may be set
      again (F-RT-17).
    - ``joins``: (group, member) of running join timers (X-TMR-02).
    - ``sessions``: the same for session timers, kept if M-HB-13 is fixed.
    - ``leftover``: (group, topic) that a downgrade has left in the index of subscriptions (X-DOWN-30).
    """

    image: Image = Image()
    new_topics: int = 0
    configs: tuple[tuple[str, GroupConfig], ...] = ()
    tasks: tuple[Resolution, ...] = ()
    alarms: tuple[tuple[str, str, int], ...] = ()
    joins: frozenset[tuple[str, str]] = frozenset()
    sessions: frozenset[tuple[str, str]] = frozenset()
    leftover: frozenset[tuple[str, str]] = frozenset()

    def config(self, group_id: str) -> GroupConfig | None:
        for name, config in self.configs:
            if name == group_id:
                return config
        return None


class Side:
    """The consumer groups of a coordinator in one step."""

    def __init__(self, work: Work, around: Surroundings, oracle: Watched) -> None:
        self.work = work
        work.image = around.image
        self.around = around
        self.oracle = oracle
        self.started: list[TaskKey] = []

    # ---- steps --------------------------------------------------------------------------------------------------

    def takes(self, request: Request, new_id: str) -> bool:
        """Handle the request if it is about a consumer group, or creates one. Returns whether it did."""
        body = request.body
        if isinstance(body, ConsumerGroupHeartbeatRequest):
            self.beat(request, body, new_id)
            return True
        return False

    def beat(self, request: Request, body: ConsumerGroupHeartbeatRequest, new_id: str) -> None:
        """Handle a valid ConsumerGroupHeartbeat."""
        work = self.work
        slot = work.slots.get(body.group_id)
        group = None if slot is None else slot.group
        beat = Beat(body, request.version, request.client_id, request.client_host, new_id, request.denied_topics)
        prefix: list[Record] = []
        begin = 0
        if isinstance(group, Group):
            if body.member_epoch == 0 and group.state == EMPTY:
                begin = 0 if work.profile.fault_empty_group_counts_anew else group.generation
                work.rules.append("M-VAL-22")  # F-ORD-16
                prefix = [Record(GroupMetadataKey(body.group_id), None)]
            else:
                draft = work.draft(body.group_id)
                turn = self.turn(body.group_id, None)
                if body.member_epoch == 0 and draft is not None and may_upgrade(turn, draft):
                    self.upgrade(turn, draft, request, beat)
                    return
                work.rules.append("M-VAL-24")
                work.replies.append((request.id, ConsumerGroupHeartbeatResponse(ErrorCode.GROUP_ID_NOT_FOUND)))
                return
        turn = self.turn(body.group_id, group if isinstance(group, ConsumerGroup) else None)
        turn.counts_on(begin)
        response = answer(turn, beat)
        if response.error_code is not ErrorCode.NONE:
            self.keep_soft(turn)
            work.replies.append((request.id, response))  # an error is thrown and does not wait for the log
            return
        self.close(turn, Operation(request.id, body.group_id, body, 0, response), prefix)

    def upgrade(self, turn: Turn, draft: Draft, request: Request, beat: Beat) -> None:
        """Convert the classic group, then let the member join (X-UP-01…11)."""
        try:
            upgrade(turn, draft)
            armed = dict(turn.armed)
            response = answer(turn, beat)
        except Refused as refused:
            turn.rule(refused.rule)
            armed, response = dict(turn.armed), ConsumerGroupHeartbeatResponse(refused.error)
        faulty = self.work.profile.fault_upgrade_answers_before_checks
        if response.error_code is not ErrorCode.NONE:
            turn.armed = armed if faulty else {}  # X-UP-09
            self.keep_soft(turn)
            self.timers(turn)
            self.work.replies.append((request.id, response))
            return
        if not faulty:
            release(draft)
        self.work.release(draft)
        operation = Operation(request.id, turn.group_id, request.body, 0, response)
        self.close(turn, operation, turn.base)

    def fire(self, group_id: str, timer: Timer, operation: int) -> None:
        """Expire a timer of a member. Without a consumer group nothing happens."""
        if timer.kind == JOIN:
            self.around = self.around._replace(joins=self.around.joins - {(group_id, timer.member_id)})
        elif timer.kind == SESSION:
            self.around = self.around._replace(sessions=self.around.sessions - {(group_id, timer.member_id)})
        slot = self.work.slots.get(group_id)
        group = None if slot is None else slot.group
        turn = self.turn(group_id, group if isinstance(group, ConsumerGroup) else None)
        found = (e for g, m, e in self.around.alarms if (g, m) == (group_id, timer.member_id))
        epoch = next(found, 0)
        alarm = epoch if timer.kind == REBALANCE else None
        take(turn, Expire(timer.kind, timer.member_id, epoch))
        if turn.failed:
            self.work.failed = True
            self.timers(turn)
            return
        self.close(turn, Operation(operation, group_id, None, 0, timer=timer, alarm=alarm), [])

    def task_done(self, key: TaskKey, failed: bool, operation: int) -> None:
        """Finish a regex resolution (M-RX-04)."""
        found = next((task for task in self.around.tasks if task.group_id == key.group_id), None)
        if found is None:
            return
        self.around = self.around._replace(tasks=tuple(task for task in self.around.tasks if task is not found))
        slot = self.work.slots.get(key.group_id)
        group = None if slot is None else slot.group
        turn = self.turn(key.group_id, group if isinstance(group, ConsumerGroup) else None)
        take(turn, Resolve(found, failed))
        self.close(turn, Operation(operation, key.group_id, None, 0), [])

    def loaded(self, group_id: str, group: ConsumerGroup) -> None:
        """Set session timers for all members, rebalance timers for those that must revoke (F-LOAD-05)."""
        turn = self.turn(group_id, group)
        turn.load_timers()
        self.timers(turn)

    def bring_back(self, written: Written) -> None:
        """Restore the timers of the members that the records changed, before the records are undone (M-HB-13 fixed)."""
        if self.work.profile.fault_failed_append_loses_timers:
            return
        for group_id, before in written.before:
            if not isinstance(before, ConsumerGroup):
                continue
            now = self.work.consumer_group(group_id)
            turn = self.turn(group_id, before)
            epochs = {member_id: epoch for group, member_id, epoch in self.around.alarms if group == group_id}
            for member in before.members:
                if now is None or now.member(member.member_id) != member:
                    if (group_id, member.member_id) not in self.around.sessions:
                        turn.arm_own_session(member)
                    turn.bring_back(member, written.cancelled, epochs.get(member.member_id))
            self.timers(turn)

    # ---- results of a step --------------------------------------------------------------------------------------

    def turn(self, group_id: str, group: ConsumerGroup | None) -> Turn:
        work, around = self.work, self.around
        world = World(
            work.sinks.now,
            around.image,
            around.config(group_id),
            self.oracle,
            any(task.group_id == group_id for task in around.tasks),
            around.new_topics,
        )
        return Turn(Around(work.sinks.settings, work.profile, work.sinks.chooser, world, work.rules), group_id, group)

    def close(self, turn: Turn, operation: Operation, prefix: list[Record]) -> None:
        """Apply the records of a turn and submit the operation."""
        work, group_id = self.work, turn.group_id
        slot = work.slots.get(group_id, Slot(group_id))
        old = slot.group
        records = [*prefix, *turn.records]
        if records:
            entry = turn.fresh or bool(turn.base) or turn.classic is not None
            if entry and old is not None:
                work.relist(group_id)
            by = operation.id if isinstance(old, Group) else None
            if isinstance(old, Group):
                work.formers.leaves(group_id, old, operation.id, work.operations)
            work.shadows = (*work.shadows, Shadow(work.undurable + len(records), group_id, old, entry, by))
            cancelled = frozenset(timer for timer, length in turn.armed.items() if length is None)
            if isinstance(old, ConsumerGroup):
                old = old._replace(refresh=turn.refresh)  # the deadline stays (M-HB-13)
            work.written = Written(len(records), operation.id, ((group_id, old),), cancelled)
            after = turn.classic or turn.after()
            if isinstance(old, ConsumerGroup) and isinstance(after, ConsumerGroup):
                *others, last = work.shadows
                work.shadows = (*others, last._replace(members=work.exchange(group_id, old, records)))
            work.slots[group_id] = Slot(group_id, after, slot.delay)
            before = turn.group if turn.base else slot.group  # an upgrade includes members that its request may remove
            if isinstance(before, ConsumerGroup):
                self.index(group_id, before, after)
        self.keep_soft(turn)
        self.timers(turn)
        draft = None if turn.classic is None else work.draft(group_id)
        if draft is not None:
            draft.read = tuple(map(draft.offered, draft.members.values()))
            if not work.profile.fault_downgrade_leaves_timers:  # timers of an earlier classic group with this name
                draft.cancel(JOIN_TIMER)
                draft.cancel(SYNC_TIMER)
            for member in draft.members.values():
                draft.arm_session(member)  # X-DOWN-05
            if turn.parked:  # X-DOWN-23 fixed
                draft.put(draft.members[turn.parked]._replace(join=operation.id))
                operation = operation._replace(body=None)
            if turn.rebalances:
                prepare(draft, "member_left")
            if turn.parked and any(request == operation.id for request, _ in work.replies):
                operation = operation._replace(answered=True)
        work.submit(operation, records)

    def index(self, group_id: str, old: ConsumerGroup, new: Group | ConsumerGroup | None) -> None:
        """Update the index of subscriptions: a downgrade leaves the group's topics in it, and a group that gives a
        topic up removes it (X-DOWN-30)."""
        left = self.around.leftover
        topics = group_topics(old.members, old.regexes)
        if isinstance(new, Group) and self.work.profile.fault_downgrade_leaves_topics:
            left |= {(group_id, topic) for topic in topics}
        elif isinstance(new, ConsumerGroup) and left:
            left -= {(group_id, topic) for topic in topics - group_topics(new.members, new.regexes)}
        if left != self.around.leftover:
            self.around = self.around._replace(leftover=left)

    def keep_soft(self, turn: Turn) -> None:
        """Keep the deadline and the task, whatever happens to the records (M-HB-13)."""
        slot = self.work.slots.get(turn.group_id)
        group = None if slot is None else slot.group
        if (
            slot is not None
            and isinstance(group, ConsumerGroup)
            and not (turn.fresh or turn.base)
            and group.refresh != turn.refresh
        ):
            self.work.slots[turn.group_id] = Slot(turn.group_id, group._replace(refresh=turn.refresh), slot.delay)
        if turn.task is not None:
            self.started.append(TaskKey(TaskKind.REGEX, turn.group_id))
            self.around = self.around._replace(tasks=(*self.around.tasks, turn.task))

    def settle(self, commands: Iterable[tuple[str, Timer, int | None]]) -> None:
        """Note which timers run after a step with these commands, if a rule needs that (X-TMR-02, M-HB-13), and the
        epochs of those that were set again (F-RT-17, M-TMR-02)."""
        for group_id, member_id, epoch in self.work.again:
            self.alarm(group_id, member_id, epoch)
        asks = (JOIN,) if self.work.profile.fault_failed_append_loses_timers else (JOIN, SESSION)
        asked = [row for row in commands if row[1].kind in asks]
        if not asked:
            return
        joins, sessions = set(self.around.joins), set(self.around.sessions)
        for group_id, timer, length in asked:
            running = joins if timer.kind == JOIN else sessions
            (running.discard if length is None else running.add)((group_id, timer.member_id))
        if joins != self.around.joins or sessions != self.around.sessions:
            self.around = self.around._replace(joins=frozenset(joins), sessions=frozenset(sessions))

    def timers(self, turn: Turn) -> None:
        if not turn.armed:
            return
        self.work.loose.append((turn.group_id, turn.armed))
        for member_id, epoch in turn.alarms.items():
            self.alarm(turn.group_id, member_id, epoch)

    def alarm(self, group_id: str, member_id: str, epoch: int) -> None:
        """Note that the rebalance timer of the member is armed at this epoch (M-TMR-02)."""
        kept = [row for row in self.around.alarms if row[:2] != (group_id, member_id)]
        self.around = self.around._replace(alarms=tuple(sorted([*kept, (group_id, member_id, epoch)])))


def forgotten(around: Surroundings) -> Surroundings:
    """Drop what a coordinator keeps for its groups (F-UNLOAD-01). Topics and configurations belong to the broker and
    stay."""
    return Surroundings(around.image, around.new_topics, around.configs)


def configured(around: Surroundings, event: GroupConfigChanged) -> Surroundings:
    """Apply a group's dynamic configuration (M-CFG-01)."""
    configs = dict(around.configs)
    configs.pop(event.group_id, None)
    if event.config is not None:
        configs[event.group_id] = event.config
    return around._replace(configs=tuple(sorted(configs.items(), key=lambda row: row[0])))


def topics_changed(
    around: Surroundings, slots: tuple[Slot, ...], event: TopicsChanged, *, active: bool
) -> tuple[Surroundings, tuple[Slot, ...]]:
    """Apply a new image. Groups that subscribe to a changed topic must check the metadata again (M-META-03)."""
    old = {topic.name: shape(topic) for topic in around.image.topics}
    new = {topic.name: shape(topic) for topic in event.topics}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    ids = {topic.topic_id for topic in around.image.topics}
    image = Image(tuple(sorted([plain(topic) for topic in event.topics], key=lambda topic: topic.name)), event.version)
    around = around._replace(image=image)
    if not active:
        return around, slots
    if around.new_topics == -1 or any(topic.topic_id not in ids for topic in event.topics):  # M-RX-03
        around = around._replace(new_topics=event.version)
    if not changed:
        return around, slots
    return around, tuple([_expired(around, slot, changed) for slot in slots])


def _expired(around: Surroundings, slot: Slot, changed: set[str]) -> Slot:
    group = slot.group
    if not isinstance(group, ConsumerGroup) or group.refresh is None:
        return slot
    indexed = group_topics(group.members, group.regexes) | {t for g, t in around.leftover if g == slot.group_id}
    if changed.isdisjoint(indexed):
        return slot
    return slot._replace(group=group._replace(refresh=None))


def shape(topic: Topic) -> tuple[bytes, tuple[frozenset[str], ...]]:
    return topic.topic_id, plain(topic).racks


def plain(topic: Topic) -> Topic:
    """Return the topic with a set of racks for each partition."""
    racks = (*topic.racks[: topic.partitions], *(frozenset(),) * (topic.partitions - len(topic.racks)))
    return replace(topic, racks=racks)
