"""Winning, loading and losing the partition (11.2, 11.6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    CancelTimer,
    Load,
    Unload,
)
from fencepost.protocol.logged import Commits, Logged
from fencepost.protocol.messages import JoinGroupResponse, SyncGroupResponse
from fencepost.protocol.rebalances import RebalanceCause, RebalanceReason
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from .classic import rebalance
from .classic.group import GroupDraft, find_classic_group, keep_group, schedule_classic_session_timeout
from .consumer import timers
from .consumer.group import ConsumerGroup
from .groups import known
from .kernel import operations
from .kernel.errors import InternalError
from .kernel.replay_context import Replay
from .kernel.state import NO_EPOCH, Group, GroupChange, Status
from .kernel.step import Step
from .kernel.stored_offsets import OffsetChange, OffsetStore
from .kernel.timers import in_order
from .offsets import expiry
from .offsets.offset_appliers import apply_commits, apply_run
from .replay import outcome, superseded


def load_started(step: Step, leader_epoch: int) -> bool:
    """The partition was won, and its log is being read (F-RT-01, F-LOAD-03). A coordinator that already leads it
    continues. Returns whether it is loading now."""
    if leader_epoch > step.leader_epoch:
        step.leader_epoch = leader_epoch
        if step.status in (Status.CLOSED, Status.FAILED):
            step.status = Status.LOADING
    return step.status is Status.LOADING


def load_failed(step: Step) -> None:
    """The log could not be read: the partition is refused until it is won again (F-REPLAY-13)."""
    if step.status is Status.LOADING:
        step.status = Status.FAILED


def loaded(step: Step, event: Load) -> None:
    """The log has been read: its groups exist, and are watched (F-LOAD-01, F-LOAD-04, F-LOAD-06), with everything that
    was acknowledged (F-SURV-01) and nothing that was only in memory (F-SURV-02). Without an earlier ``LoadStarted``,
    the event stands for both."""
    if step.status is not Status.LOADING and not load_started(step, event.leader_epoch):
        return
    log = event.records
    if event.committed is not None and event.committed < len(log):
        log = tuple(log)  # the records that are not replicated come last, perhaps within a run of commits
    kept = len(log) if event.committed is None else event.committed
    replayed = Replay({}, step.rules, step.memory.incarnations, step.appliers)
    try:
        _apply(step, replayed, log, 0, kept)
        groups, stored = outcome(replayed)
        before = groups, stored
        if kept < len(log):
            replayed = Replay(groups, step.rules, replayed.incarnations, step.appliers, stored)
            _apply(step, replayed, log, kept, len(log))
            groups, stored = outcome(replayed)
    except InternalError:
        step.status = Status.FAILED  # F-LOAD-02, F-REPLAY-13
        return
    step.memory.incarnations = replayed.incarnations
    step.reset(groups, len(log), stored)
    if kept < len(log):
        _await_replication(step, kept, *before)  # F-LOAD-01
    step.status = Status.ACTIVE
    step.topics = step.topics._replace(created=step.topics.version)
    for name in to_watch(step):
        loaded_group = known(step.memory.groups[name])
        if isinstance(loaded_group, ConsumerGroup):
            timers.schedule_after_load(step, loaded_group)  # F-LOAD-05
            continue
        group = GroupDraft(loaded_group)
        for member in group.members.values():
            schedule_classic_session_timeout(step, group, member)  # F-LOAD-04
        if len(group.members) > step.settings.group_max_size:
            cause = RebalanceCause(RebalanceReason.OVER_CAPACITY, capacity=step.settings.group_max_size)
            rebalance.prepare(step, group, cause)
            keep_group(step, group)
    expiry.schedule(step)  # F-LOAD-07


def _apply(step: Step, replayed: Replay, log: Sequence[Record], first: int, end: int) -> None:
    """Apply the records of a log from one place up to another."""
    if isinstance(log, Logged):
        _apply_parts(step, replayed, log.parts)
        return
    skipped = superseded(step.rules, log[first:end])
    place = apply_commits(replayed, log, first, end)
    while place < end:
        if place - first not in skipped:
            replayed.place = place
            take_up(step, replayed, log[place])
        place = apply_commits(replayed, log, place + 1, end)


def _apply_parts(step: Step, replayed: Replay, parts: Sequence[Record | Commits]) -> None:
    """Apply all records of a log that was read for a load."""
    others = [part for part in parts if isinstance(part, Record)]
    skipped, number, place = superseded(step.rules, others), 0, 0
    for part in parts:
        if isinstance(part, Commits):
            apply_run(replayed, part)
            place += len(part.rows)
            continue
        if number not in skipped:
            replayed.place = place
            take_up(step, replayed, part)
        number += 1
        place += 1


def _await_replication(step: Step, kept: int, groups: Mapping[str, Group], stored: OffsetStore) -> None:
    """Treat the records behind the first ``kept`` as if this coordinator had written them in one step: their changes
    count for every write, and for reads once all of them are replicated (F-LOAD-01, F-RT-11)."""
    end, now = step.log.end, step.memory.groups
    changed = [name for name in {**groups, **now} if groups.get(name) is not now.get(name)]
    step.log.committed, step.log.ends = kept, (end,)
    step.memory.changes = tuple(GroupChange(kept, end, name, groups.get(name)) for name in changed)
    step.offsets.changes = (OffsetChange(kept, end, stored),)


@varies
def take_up(step: Step, replayed: Replay, record: Record) -> None:
    """Apply one record of a log that is loaded, without reading the subscriptions of classic members (G-DATA-10). If
    this raises ``InternalError``, the load fails (F-REPLAY-13)."""
    replayed.apply(record)


@varies
def to_watch(step: Step) -> Iterable[str]:
    """The loaded groups, in the order in which their timers are set; clients cannot see this order."""
    return list(step.memory.groups)


def unload(step: Step, event: Unload) -> None:
    """The partition now belongs to another broker: waiting requests are answered, and everything is forgotten
    (F-UNLOAD-01, F-LOAD-03, F-LOAD-08)."""
    if event.leader_epoch is not None and event.leader_epoch <= step.leader_epoch:
        return
    operations.unload(step, ErrorCode.NOT_COORDINATOR)
    for name in list(step.memory.groups):
        group = find_classic_group(step, name)
        if group is not None:
            _part(step, group)
    # Timers set by the callbacks would only find dead groups. Kafka leaves them set, which has no visible effect.
    step.timers.commands[:] = [CancelTimer(armed.key) for armed in in_order(step.state.timers.values())]
    step.reset({}, 0)
    step.status = Status.CLOSED
    step.leader_epoch = NO_EPOCH


def _part(step: Step, group: GroupDraft) -> None:
    """C-ST-16: the group is dead, and its waiting requests are answered NOT_COORDINATOR.

    It is removed in the same step, so that no request ever finds it (C-JOIN-30, C-JOIN-38a, C-SYNC-07, C-HB-07,
    C-LEAVE-05).
    """
    for member in group.members.values():
        if group.state is GroupState.PREPARING_REBALANCE:
            if member.join is not None:
                answer = JoinGroupResponse(ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
                step.reply(member.join, answer)
        elif member.sync is not None:
            step.reply(member.sync, SyncGroupResponse(ErrorCode.NOT_COORDINATOR))
