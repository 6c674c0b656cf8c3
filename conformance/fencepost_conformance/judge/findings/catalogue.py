"""The findings: the trace of each, the probes sent after its end, and its judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.protocol.errors import ErrorCode

from ...common.errors import CannotRun
from ...traces.files import EventTrace, read_traces
from . import classic, consumer, offsets, owners, probes, runtime
from .judge import Judge, at_any_step, at_the_end
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


_LOAD = runtime.what_is_written_can_be_loaded
_LOG = runtime.memory_has_what_the_log_has
_TIMED = at_the_end(classic.join_phase_is_timed)
_WAITS = at_any_step(classic.who_is_waited_for_waits, classic.nobody_waits)
_OWES = at_any_step(classic.only_members_owe_a_sync, classic.no_generation)
_EMPTY = at_any_step(runtime.an_empty_group_is_what_the_log_says, runtime.no_empty_group_after_a_failure)
_WATCHED = at_the_end(consumer.everybody_is_watched)
_OWNED = at_the_end(consumer.a_settled_group_owns_everything)
_EPOCHS = at_any_step(runtime.epochs_do_not_go_back, runtime.no_join_of_an_empty_group)
_THERE = at_any_step(runtime.only_groups_that_are_there_are_timed, runtime.no_conversion_before_a_timeout)
_NOTIFIED = at_the_end(consumer.somebody_is_told_of_a_bump)
_GIVEN = owners.nothing_is_given_before_it_is_given_up
_REFUSED = runtime.a_refusal_answers_nobody_else
_FAULT = runtime.nobody_is_told_of_a_fault

FINDINGS: tuple[Finding, ...] = (
    *_all(_LOAD, "poisoned-partition shortest/unloadable-log"),
    *_all(_LOAD, "consumer/compacted-while-read consumer/converted-while-read"),
    *_all(_TIMED, "wedged-group shortest/join-phase-throws"),
    *_all(_TIMED, "protocol-listed-twice shortest/join-phase-never-ends"),
    *_all(classic.groups_are_listed_once, "listed-twice shortest/group-listed-twice"),
    *_all(classic.a_deletion_looks_once, "deletion-waits-twice shortest/deletion-decided-too-late"),
    *_all(classic.who_comes_back_is_as_it_was, "replacements-undone"),
    *_all(classic.who_offers_what_all_offer_is_let_in, "shortest/supported-protocol-rejected"),
    *_all(_LOG, "memory-differs-from-log shortest/failed-but-written"),
    *_all(_LOG, "leader-sends-two-assignments shortest/two-assignments"),
    *_all(_WAITS, "unanswered-member shortest/answered-too-early shortest/first-member-answered-too-early"),
    *_all(classic.every_sync_is_answered, "forgotten-sync shortest/sync-of-removed-member", [probes.lose]),
    *_all(_OWES, "static-rejoin-blocks-sync shortest/sync-waits-for-removed-member"),
    *_all(classic.who_is_a_member_has_room, "static-rejoin-rejected shortest/full-group-rejects-its-member"),
    *_all(classic.nobody_waits_for_nobody, "rejected-member-delays-rebalance shortest/all-joined-still-waiting"),
    *_all(classic.a_delay_without_newcomers_is_the_last, "initial-delay-extended shortest/delay-without-newcomers"),
    *_all(_EMPTY, "timer-outlives-group shortest/stale-timer-bumps-generation"),
    *_all(runtime.the_loss_of_the_partition_fences_nobody, "shortest/fenced-on-partition-loss"),
    *_all(
        _FAULT,
        "consumer/assignor-removed-from-config consumer/nonexistent-partition consumer/upgrade-too-early",
        [probes.replicate],
    ),
    *_all(_FAULT, "consumer/downgrade-by-former-instance-id", [probes.replicate]),
    *_all(_WATCHED, "consumer/timer-key-collision consumer/leave-not-stored consumer/member-without-join-timer"),
    *_all(at_the_end(consumer.a_revocation_is_timed), "consumer/confirmation-not-stored"),
    *_all(owners.nobody_is_given_what_another_has(unheard={3}), "consumer/late-join consumer/unreported-partitions"),
    *_all(_GIVEN, "consumer/fenced-member-readmitted consumer/downgrade-then-upgrade"),
    *_all(_GIVEN, "consumer/upgrade-between-cooperative-rounds"),
    *_all(consumer.only_who_holds_it_blocks_an_instance, "consumer/own-instance-rejected"),
    *_all(consumer.only_who_holds_it_blocks_an_instance, "consumer/former-instance-id-stays-taken"),
    *_all(_OWNED, "consumer/changed-instance-id consumer/merged-members-lose-partitions", probes.SETTLE),
    *_all(_OWNED, "consumer/stale-subscription-type consumer/unresolved-regex-without-owner", probes.SETTLE),
    *_all(_OWNED, "consumer/upgrade-leaves-partitions-unowned", probes.SETTLE),
    *_all(consumer.members_are_described_once, "consumer/described-twice"),
    *_all(_EPOCHS, "consumer/dropped-group"),
    *_all(runtime.a_group_never_counts_anew, "consumer/generations-restart"),
    *_all(_REFUSED, "consumer/upgrade-rejected consumer/upgrade-with-unreadable-subscription"),
    *_all(classic.every_sync_is_answered, "consumer/sync-without-answer", [probes.replicate]),
    *_all(_NOTIFIED, "consumer/target-never-computed", probes.classic_heartbeats("g", 2)),
    *_all(consumer.whoever_leaves_is_gone, "consumer/leave-rejected", [probes.replicate]),
    *_all(consumer.a_generation_is_good, "consumer/generation-without-members", [probes.use_the_generation]),
    *_all(at_the_end(runtime.timers_are_of_the_protocol), "consumer/timers-after-downgrade"),
    *_all(at_the_end(consumer.whoever_synced_has_its_share), "consumer/downgrade-leaves-member-waiting"),
    *_all(
        _THERE,
        "consumer/join-timer-after-upgrade",
    ),
    *_all(consumer.only_who_subscribes_hears_of_a_topic, "consumer/unsubscribed-topic-still-watched"),
    *_all(consumer.who_asks_for_nothing_bumps_nothing, "kafka-4.4/tied-votes"),
    *_all(offsets.a_commit_of_nothing_leaves_nothing, "offsets/rejected-commit-creates-group"),
    *_all(offsets.no_fetch_is_a_fault, "offsets/fetch-without-member-id"),
    *_all(offsets.offsets_are_loaded_as_they_were, "offsets/topic-id-lost-on-load"),
    *_all(offsets.a_load_makes_no_group_of_nothing, "offsets/aborted-transaction-creates-group"),
)
