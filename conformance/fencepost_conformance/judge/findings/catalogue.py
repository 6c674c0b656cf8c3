"""The findings: the trace of each, the probes sent after its end, and its judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.protocol.errors import ErrorCode

from ...common.errors import CannotRun
from ...traces.files import EventTrace, read_traces
from . import classic, consumer, offsets, owners, probes, runtime
from .judge import Judge, at_any_step, at_the_end, classic_groups_keep
from .play import Probe


@dataclass(frozen=True, slots=True)
class Finding:
    """A Kafka bug with a trace. ``path``: of the trace in ``docs/findings``, without its extension. ``needless``:
    positions of events that only the bug makes possible, such as a timer that a fixed coordinator does not set.
    ``errors_if_fixed``: errors that a fixed coordinator may return where Kafka returned something else."""

    path: str
    judge: Judge
    probes: tuple[Probe, ...] = ()
    needless: frozenset[int] = frozenset()
    errors_if_fixed: frozenset[ErrorCode] = frozenset()

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def trace(self, folder: Path) -> EventTrace:
        """Read the trace; raises ``CannotRun`` if there is none."""
        path = folder / f"{self.path}.jsonl"
        try:
            found = [each for each in read_traces(path) if isinstance(each, EventTrace)]
        except OSError as reason:
            raise CannotRun(f"{path}: {reason.strerror}") from None
        if len(found) != 1:
            raise CannotRun(f"{path} does not contain exactly one trace of events")
        return found[0]


def _all(judge: Judge, paths: str, asked: Sequence[Probe] = ()) -> Iterable[Finding]:
    return (
        Finding(path, judge, tuple(asked), _NEEDLESS.get(path, frozenset()), _ERRORS_IF_FIXED.get(path, frozenset()))
        for path in paths.split()
    )


_NEEDLESS = {
    "protocol-listed-twice": frozenset({4}),
    "shortest/join-phase-never-ends": frozenset({4}),
    "static-rejoin-blocks-sync": frozenset({21}),
    "initial-delay-extended": frozenset({12}),
    "timer-outlives-group": frozenset({5}),
    "shortest/stale-timer-bumps-generation": frozenset({6}),
}
_ERRORS_IF_FIXED = {
    "shortest/fenced-on-partition-loss": frozenset({ErrorCode.NOT_COORDINATOR}),
    "consumer/upgrade-too-early": frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}),  # retry
    "consumer/leave-rejected": frozenset({ErrorCode.UNKNOWN_SERVER_ERROR}),  # the metadata cannot be read
}


_LOAD = runtime.written_log_can_be_loaded
_LOG = runtime.memory_matches_the_log
_TIMED = at_the_end(classic.join_phase_has_a_timer)
_WAITS = at_any_step(classic.awaiting_member_has_an_open_request, classic.no_member_awaits_a_join)
_OWES = at_any_step(classic_groups_keep("INV-MEM-07"), classic.no_member_owes_a_sync)
_EMPTY = at_any_step(runtime.empty_group_matches_the_log, runtime.no_empty_group_after_a_failure)
_WATCHED = at_the_end(consumer.every_member_has_a_session_timer)
_OWNED = at_the_end(consumer.reconciled_group_owns_all_partitions)
_EPOCHS = at_any_step(runtime.group_epoch_never_decreases, runtime.no_join_of_an_empty_group)
_THERE = at_any_step(runtime.only_existing_groups_have_timers, runtime.no_conversion_before_a_timeout)
_NOTIFIED = at_the_end(consumer.a_member_is_asked_to_rejoin)
_GIVEN = owners.partition_is_given_up_before_it_is_assigned
_REFUSED = runtime.rejection_answers_no_other_request
_FAULT = runtime.no_answer_is_unknown_server_error

FINDINGS: tuple[Finding, ...] = (
    *_all(_LOAD, "poisoned-partition shortest/unloadable-log"),
    *_all(_LOAD, "consumer/compacted-while-read consumer/converted-while-read"),
    *_all(_TIMED, "wedged-group shortest/join-phase-throws"),
    *_all(_TIMED, "protocol-listed-twice shortest/join-phase-never-ends"),
    *_all(classic.groups_are_listed_once, "listed-twice shortest/group-listed-twice"),
    *_all(classic.empty_group_can_be_deleted, "deletion-waits-twice shortest/deletion-decided-too-late"),
    *_all(classic.undone_replacement_restores_the_member, "replacements-undone"),
    *_all(classic.join_with_a_common_protocol_is_accepted, "shortest/supported-protocol-rejected"),
    *_all(_LOG, "memory-differs-from-log shortest/failed-but-written"),
    *_all(_LOG, "leader-sends-two-assignments shortest/two-assignments"),
    *_all(_WAITS, "unanswered-member shortest/answered-too-early shortest/first-member-answered-too-early"),
    *_all(classic.every_sync_is_answered, "forgotten-sync shortest/sync-of-removed-member", [probes.lose]),
    *_all(_OWES, "static-rejoin-blocks-sync shortest/sync-waits-for-removed-member"),
    *_all(
        classic.static_member_is_not_rejected_for_capacity,
        "static-rejoin-rejected shortest/full-group-rejects-its-member",
    ),
    *_all(
        classic.join_phase_ends_once_all_have_joined,
        "rejected-member-delays-rebalance shortest/all-joined-still-waiting",
    ),
    *_all(classic.initial_delay_ends_without_new_members, "initial-delay-extended shortest/delay-without-newcomers"),
    *_all(_EMPTY, "timer-outlives-group shortest/stale-timer-bumps-generation"),
    *_all(runtime.partition_loss_fences_no_member, "shortest/fenced-on-partition-loss"),
    *_all(
        _FAULT,
        "consumer/assignor-removed-from-config consumer/nonexistent-partition consumer/upgrade-too-early",
        [probes.replicate],
    ),
    *_all(_FAULT, "consumer/downgrade-by-former-instance-id", [probes.replicate]),
    *_all(_WATCHED, "consumer/timer-key-collision consumer/leave-not-stored consumer/member-without-join-timer"),
    *_all(at_the_end(consumer.revoking_member_has_a_rebalance_timer), "consumer/confirmation-not-stored"),
    *_all(
        owners.no_member_is_assigned_an_owned_partition(unheard={3}),
        "consumer/late-join consumer/unreported-partitions",
    ),
    *_all(_GIVEN, "consumer/fenced-member-readmitted consumer/downgrade-then-upgrade"),
    *_all(_GIVEN, "consumer/upgrade-between-cooperative-rounds"),
    *_all(consumer.instance_id_is_rejected_only_if_in_use, "consumer/own-instance-rejected"),
    *_all(consumer.instance_id_is_rejected_only_if_in_use, "consumer/former-instance-id-stays-taken"),
    *_all(_OWNED, "consumer/changed-instance-id consumer/merged-members-lose-partitions", probes.SETTLE),
    *_all(_OWNED, "consumer/stale-subscription-type consumer/unresolved-regex-without-owner", probes.SETTLE),
    *_all(_OWNED, "consumer/upgrade-leaves-partitions-unowned", probes.SETTLE),
    *_all(consumer.members_are_described_once, "consumer/described-twice"),
    *_all(_EPOCHS, "consumer/dropped-group"),
    *_all(runtime.generations_and_epochs_never_restart, "consumer/generations-restart"),
    *_all(_REFUSED, "consumer/upgrade-rejected consumer/upgrade-with-unreadable-subscription"),
    *_all(classic.every_sync_is_answered, "consumer/sync-without-answer", [probes.replicate]),
    *_all(_NOTIFIED, "consumer/target-never-computed", probes.classic_heartbeats("g", 2)),
    *_all(consumer.leaving_member_is_removed, "consumer/leave-rejected", [probes.replicate]),
    *_all(
        consumer.member_with_a_generation_is_in_it, "consumer/generation-without-members", [probes.use_the_generation]
    ),
    *_all(at_the_end(runtime.classic_group_has_no_consumer_timers), "consumer/timers-after-downgrade"),
    *_all(
        at_the_end(consumer.no_member_is_assigned_more_than_its_sync_returned),
        "consumer/downgrade-leaves-member-waiting",
    ),
    *_all(
        at_the_end(consumer.unassigned_partition_of_a_downgraded_group_causes_a_rebalance),
        "consumer/downgrade-rebalance-lost-by-fail-over",
    ),
    *_all(
        _THERE,
        "consumer/join-timer-after-upgrade",
    ),
    *_all(consumer.topic_change_refreshes_subscribed_groups_only, "consumer/unsubscribed-topic-still-watched"),
    *_all(consumer.heartbeat_without_changes_keeps_the_epoch, "kafka-4.4/tied-votes"),
    *_all(offsets.rejected_commit_creates_no_group, "offsets/rejected-commit-creates-group"),
    *_all(offsets.no_fetch_is_answered_unknown_server_error, "offsets/fetch-without-member-id"),
    *_all(offsets.load_restores_offsets, "offsets/topic-id-lost-on-load"),
    *_all(offsets.load_creates_no_group_without_records, "offsets/aborted-transaction-creates-group"),
)
