"""The coordinator of one group of either kind, as a function of flat values. It drives the closed mixed group.

It is ``fencepost_model.classic.coordinator.CoordinatorModel``: every change of the group, including conversions, is one
of its steps. It gets one group, one topic, a clock that stands still, and a log that accepts everything at once: after
each step that writes comes the event that its records are replicated. Between steps a ``Memory`` is kept, which holds
only what the future depends on (``has_converged``). The coordinator only requests timers; they are kept there as a set.

Request ids: client number i waits under id i + 1. A request for whose answer no client waits has id ``LATE`` in the
step in which it arrives and 0 from then on; its answers are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Final, NamedTuple

from fencepost.protocol.consumer_records import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.events import Appended, Event, Load, SetTimer, TimerFired, TimerKey, TimerKind, Topic, Unload
from fencepost.protocol.messages import ResponseBody
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record
from fencepost.protocol.settings import Settings

from ...classic.coordinator import ACTIVE, LOADING, CoordinatorModel
from ...classic.coordinator_state import CoordinatorState
from ...classic.slots import GroupSlot
from ...classic.state import Group
from ...consumer.observe import NOTHING_OBSERVED, ObservedValues
from ...consumer.rows import target_rows
from ...consumer.state import ConsumerGroup, Image
from ...consumer.work import ConsumerState
from ...machines import DEAD, EMPTY, PREPARING
from ..config import DELAY_MS
from ..consumer.coordinator import INTERVAL_MS
from ..consumer.translate import NOW, TOPIC_ID
from ..coordinator import GROUP_ID, LATE, renumbered
from ..values import NO_PARTITIONS, TOPIC, decode_partitions
from .config import MixedConfig

Timers = frozenset[tuple[TimerKind, str]]

CLASSIC_TIMERS: Final = frozenset({TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION})
#: Timers of classic members of a consumer group (X-TMR-02, 03).
MEMBER_TIMERS: Final = frozenset({TimerKind.CONSUMER_JOIN, TimerKind.CONSUMER_SYNC})


class Memory(NamedTuple):
    """The coordinator's state of the group between two steps.

    ``delay``: the purpose of a classic group's join timer (C-JOIN-43). ``timers``: (kind, member id, or "" for a timer
    of the group). ``rebalance_epochs``: (member id, its epoch when its rebalance timer was armed) (M-TMR-02).
    """

    group: Group | ConsumerGroup
    delay: tuple[int, int] | None = None
    timers: Timers = frozenset()
    rebalance_epochs: tuple[tuple[str, int], ...] = ()


#: The replicated log: the last record of each key, in the order of ``_rank``.
Log = tuple[Record, ...]

#: The record of the group as it was created before the system starts.
FIRST_LOG: Final[Log] = (
    Record(
        GroupMetadataKey(GROUP_ID),
        GroupMetadataValue("", generation=0, protocol=None, leader=None, current_state_timestamp=NOW),
    ),
)


class Result(NamedTuple):
    """The result of a step: the memory, what was replicated, the answers by request id, and the coordinator's input."""

    memory: Memory
    records: tuple[Record, ...]
    replies: tuple[tuple[int, ResponseBody], ...]
    events: tuple[Event, ...]


class Machine:
    """The coordinator for a configuration."""

    def __init__(self, config: MixedConfig) -> None:
        # The initial delay is as long as the rebalance timeout, so it is never extended (C-JOIN-43).
        self.settings = Settings(
            group_initial_rebalance_delay_ms=DELAY_MS,
            group_max_size=len(config.member_ids),
            group_consumer_assignors=(config.assignor,),
            group_consumer_assignment_interval_ms=INTERVAL_MS if config.interval else 0,
            group_consumer_migration_policy=config.policy,
        )
        self._config = config
        self._model = CoordinatorModel(self.settings, config.profile)
        topics = (Topic(TOPIC, TOPIC_ID, len(config.partitions)),)
        self._consumer = ConsumerState(image=Image(topics, 1), new_topics=1)
        self._hashes = ((topics, len(config.partitions)),)
        self._known: dict[tuple[Memory, Event, str], tuple[Result, ...]] = {}

    # ---- steps --------------------------------------------------------------------------------------------------

    def step(self, memory: Memory, event: Event, new_id: str = "") -> tuple[Result, ...]:
        """Return the results of a request or of a timer: one for each target that the assignor may choose. Of other
        choices the first is taken (contract, section 1)."""
        key = (memory, event, new_id)
        found = self._known.get(key)
        if found is None:
            each = (self._run(memory, event, new_id, seen) for seen in self._targets())
            found = self._known[key] = tuple(dict.fromkeys(each))
        return found

    def fire(self, memory: Memory, kind: TimerKind, member_id: str = "") -> tuple[Result, ...]:
        """Expire a timer."""
        fired = memory._replace(timers=memory.timers - {(kind, member_id)})
        return self.step(fired, TimerFired(NOW, TimerKey(kind, GROUP_ID, member_id)))

    def fail_over(self, memory: Memory, log: Log) -> Result:
        """Fail over: the old coordinator unloads the group, a new one loads it (F-UNLOAD-01, F-LOAD-01)."""
        unload, load = Unload(NOW, leader_epoch=None), Load(NOW, leader_epoch=1, records=log)
        old = self._model.successors(self._state(memory), unload)[0]
        replies = tuple((reply.request_id, reply.body) for reply in old.outcome.replies)
        return Result(self.load(log, blocked=blocked(memory)), (), replies, (unload, load))

    def load(self, log: Log, *, blocked: bool = False) -> Memory:
        """Return the memory of a new coordinator that loads the log. The clock decides whether the interval runs."""
        start = CoordinatorState(phase=LOADING, consumer=self._consumer)
        step = self._model.successors(start, Load(NOW, leader_epoch=1, records=log))[0]
        timers = frozenset((c.key.kind, c.key.member_id) for c in step.outcome.timers if isinstance(c, SetTimer))
        memory = self._settled(step.state, timers)
        if isinstance(memory.group, ConsumerGroup):
            memory = memory._replace(group=memory.group._replace(timestamp=NOW if blocked else 0))
        return memory

    def _targets(self) -> Iterator[ObservedValues]:
        """Yield the observations of targets that the assignor may choose. They are ignored where it is not asked."""
        if self._config.assignor == "range":
            yield NOTHING_OBSERVED
            return
        names = self._config.member_ids
        for owners in product(names, repeat=len(self._config.partitions)):
            yield ObservedValues(records=tuple(_target_records(names, owners)))

    def _run(self, memory: Memory, event: Event, new_id: str, seen: ObservedValues) -> Result:
        step = self._model.successors(self._state(memory), event, new_id, seen)[0]
        state, commands = step.state, step.outcome.timers
        events: tuple[Event, ...] = (event,)
        replies = step.outcome.replies
        if step.outcome.records:
            appended = Appended(NOW, offset=state.durable + state.undurable)
            after = self._model.successors(state, appended)[0]
            if after.outcome.records:
                raise ValueError("the coordinator wrote more after its records were replicated")
            state, commands, events = after.state, (*commands, *after.outcome.timers), (*events, appended)
            replies += after.outcome.replies
        timers = set(memory.timers)
        for command in commands:
            key = (command.key.kind, command.key.member_id)
            (timers.add if isinstance(command, SetTimer) else timers.discard)(key)
        return Result(
            self._settled(state, frozenset(timers)),
            step.outcome.records,
            tuple((reply.request_id, reply.body) for reply in replies),
            events,
        )

    # ---- between memory and state ---------------------------------------------------------------------------------

    def _state(self, memory: Memory) -> CoordinatorState:
        consumer = self._consumer._replace(
            rebalance_epochs=tuple((GROUP_ID, name, epoch) for name, epoch in memory.rebalance_epochs),
            join_timers=frozenset((GROUP_ID, name) for kind, name in memory.timers if kind is TimerKind.CONSUMER_JOIN),
        )
        slots = (GroupSlot(GROUP_ID, memory.group, memory.delay),)
        return CoordinatorState(phase=ACTIVE, leader_epoch=1, slots=slots, consumer=consumer, hashes=self._hashes)

    def _settled(self, state: CoordinatorState, timers: Timers) -> Memory:
        """Return the state without values that no later step reads.

        A converted group leaves timers behind that find no member. Those of a classic group act on an object that is
        gone; those of a member's session are set again, or have no member. Only join and sync timers of classic members
        may find one again (X-DOWN-33).
        """
        group = state.any_group(GROUP_ID)
        if group is None or state.operations or state.undurable:
            raise ValueError("the closed system lost its group, or an operation waits for the log")
        if isinstance(group, ConsumerGroup):
            members = {member.member_id: member.classic is not None for member in group.members}
            kept = frozenset(timer for timer in timers if _may_act(timer, members))
            rows = ((name, epoch) for _, name, epoch in state.consumer.rebalance_epochs)
            rebalance_epochs = tuple(row for row in rows if (TimerKind.CONSUMER_REBALANCE, row[0]) in kept)
            running = self._config.interval and group.timestamp == NOW
            return Memory(group._replace(refresh=None, timestamp=NOW if running else 0), None, kept, rebalance_epochs)
        if group.previous != DEAD and not (group.state == PREPARING and group.previous == EMPTY):
            group = group._replace(previous=DEAD)  # it only marks an initial rebalance (C-ST-20)
        if group.state == EMPTY:
            group = group._replace(protocol_type=None)  # the first member sets it (C-JOIN-40, C-JOIN-60)
        bare = tuple(member._replace(assignment=_bare(member.assignment)) for member in group.members)
        group = renumbered(group._replace(members=bare), LATE)
        kept = frozenset(timer for timer in timers if timer[0] in CLASSIC_TIMERS | MEMBER_TIMERS)
        delay = next(slot.delay for slot in state.slots if slot.group_id == GROUP_ID)
        return Memory(group, delay if (TimerKind.JOIN, "") in kept else None, kept)


def _may_act(timer: tuple[TimerKind, str], members: dict[str, bool]) -> bool:
    """Return whether the timer of a consumer group can find a member. ``members``: by id whether they are classic."""
    kind, name = timer
    if kind is TimerKind.CONSUMER_REBALANCE:
        return True
    if kind is TimerKind.CONSUMER_SESSION:
        return name in members
    return kind in MEMBER_TIMERS and members.get(name, False)


def _bare(assignment: bytes) -> bytes:
    """Return the assignment, or no bytes if it has no partitions."""
    return b"" if decode_partitions(assignment) == NO_PARTITIONS else assignment


def _target_records(names: Iterable[str], owners: tuple[str, ...]) -> Iterator[Record]:
    for name in names:
        target = tuple((TOPIC_ID, number) for number, owner in enumerate(owners) if owner == name)
        key = ConsumerGroupTargetAssignmentMemberKey(GROUP_ID, name)
        yield Record(key, ConsumerGroupTargetAssignmentMemberValue(target_rows(target)))


def blocked(memory: Memory) -> bool:
    """Return whether the assignment interval runs (M-TGT-08)."""
    return isinstance(memory.group, ConsumerGroup) and memory.group.timestamp == NOW


def interval_passes(memory: Memory) -> Memory | None:
    if isinstance(memory.group, ConsumerGroup) and blocked(memory):
        return memory._replace(group=memory.group._replace(timestamp=0))
    return None


def parked(memory: Memory, client: int) -> bool:
    """Return whether the coordinator has a stored future of this client."""
    return isinstance(memory.group, Group) and any(client + 1 in (m.join, m.sync) for m in memory.group.members)


def forget(memory: Memory, client: int) -> Memory:
    """Note that the client has given up on its parked future; the coordinator does not know and keeps it."""
    if not isinstance(memory.group, Group) or not parked(memory, client):
        return memory
    return memory._replace(group=renumbered(memory.group, client + 1))


def compacted(log: Log, records: Iterable[Record]) -> Log:
    """Return the log after these records, with only the last of each key, and without tombstones."""
    kept = {record.key: record for record in (*log, *records)}
    return tuple(sorted((_plain(record) for record in kept.values() if record.value is not None), key=_rank))


def _plain(record: Record) -> Record:
    """Return the record without values that make no difference: the clock decides whether the interval runs, and the
    first member of an empty group sets its protocol type."""
    value = record.value
    if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
        return replace(record, value=replace(value, assignment_timestamp=0))
    if isinstance(value, GroupMetadataValue):
        members = tuple(replace(member, assignment=_bare(member.assignment)) for member in value.members)
        return replace(record, value=replace(value, members=members, protocol_type="consumer" if members else ""))
    return record


def _rank(record: Record) -> tuple[str, str]:
    return type(record.key).__name__, getattr(record.key, "member_id", "")
