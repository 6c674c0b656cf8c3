"""The findings: the trace of each, the probes sent after its end, and its judge."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fencepost.protocol.errors import ErrorCode

from ..console import CannotRun
from ..trace import EventTrace, read_traces
from . import classic, consumer, offsets, owners, probes, runtime
from .judge import Judge, at_any_step, at_the_end
from .play import Probe


@dataclass(frozen=True, slots=True)
class Finding:
    """A Kafka bug with a trace. ``path``: of the trace in ``docs/findings``, without its extension. ``needless``:
    positions of events that only the bug makes possible, such as a timer that a fixed coordinator does not set.
    ``mended``: errors that a fixed coordinator may return where Kafka returned something else."""

    path: str
    judge: Judge
    probes: tuple[Probe, ...] = ()
    needless: frozenset[int] = frozenset()
    mended: frozenset[ErrorCode] = frozenset()

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
            raise CannotRun(f"{path} does not hold one trace of events")
        return found[0]


def _all(judge: Judge, paths: str, asked: Sequence[Probe] = ()) -> Iterable[Finding]:
    return (
        Finding(path, judge, tuple(asked), _NEEDLESS.get(path, frozenset()), _MENDED.get(path, frozenset()))
        for path in paths.split()
    )


_NEEDLESS = {
    "protocol-listed-twice": frozenset({4}),
    "shortest/join-phase-without-end": frozenset({4}),
    "sync-that-cannot-end": frozenset({21}),
    "flag-of-an-earlier-round": frozenset({12}),
    "timer-of-a-dead-group": frozenset({5}),
    "shortest/generation-of-a-dead-timer": frozenset({6}),
}
_MENDED = {
    "shortest/fenced-by-the-loss": frozenset({ErrorCode.NOT_COORDINATOR}),
    "consumer/upgrade-too-early": frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}),  # retry
    "consumer/leave-refused": frozenset({ErrorCode.UNKNOWN_SERVER_ERROR}),  # the metadata cannot be read
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
_GIVEN = owners.nothing_is_given_before_it_is_given_up
_REFUSED = runtime.a_refusal_answers_nobody_else
_FAULT = runtime.nobody_is_told_of_a_fault

FINDINGS: tuple[Finding, ...] = (
    *_all(_LOAD, "poisoned-partition shortest/log-that-nobody-can-load"),
    *_all(_LOAD, "consumer/compacted-while-read consumer/converted-while-read"),
    *_all(_TIMED, "wedged-group shortest/join-phase-that-throws"),
    *_all(_TIMED, "protocol-listed-twice shortest/join-phase-without-end"),
    *_all(classic.groups_are_listed_once, "listed-twice shortest/group-listed-twice"),
    *_all(classic.a_deletion_looks_once, "deletion-waits-twice shortest/deletion-of-later"),
    *_all(classic.who_comes_back_is_as_it_was, "replacements-undone"),
    *_all(classic.who_offers_what_all_offer_is_let_in, "shortest/support-of-nobody"),
    *_all(_LOG, "memory-against-log shortest/failed-but-written"),
    *_all(_LOG, "first-answer-last-record shortest/two-assignments"),
    *_all(_WAITS, "unanswered-member shortest/told-too-early shortest/first-member-told-too-early"),
    *_all(classic.every_sync_is_answered, "forgotten-sync shortest/sync-of-who-left", [probes.lose]),
    *_all(_OWES, "sync-that-cannot-end shortest/sync-of-nobody"),
    *_all(classic.who_is_a_member_has_room, "static-return-refused shortest/no-room-for-itself"),
    *_all(classic.nobody_waits_for_nobody, "refused-and-waited-for shortest/nobody-to-wait-for"),
    *_all(classic.a_delay_without_newcomers_is_the_last, "flag-of-an-earlier-round shortest/delay-of-nobody"),
    *_all(_EMPTY, "timer-of-a-dead-group shortest/generation-of-a-dead-timer"),
    *_all(runtime.the_loss_of_the_partition_fences_nobody, "shortest/fenced-by-the-loss"),
    *_all(
        _FAULT,
        "consumer/assignor-taken-away consumer/partition-of-nowhere consumer/upgrade-too-early",
        [probes.replicate],
    ),
    *_all(_FAULT, "consumer/downgrade-by-a-former-name", [probes.replicate]),
    *_all(_WATCHED, "consumer/timers-of-two-groups consumer/leave-not-stored consumer/join-too-late"),
    *_all(at_the_end(consumer.a_revocation_is_timed), "consumer/confirmation-not-stored"),
    *_all(owners.nobody_is_given_what_another_has(unheard={3}), "consumer/late-join consumer/untold-partitions"),
    *_all(_GIVEN, "consumer/fenced-and-let-in consumer/there-and-back consumer/between-two-rounds"),
    *_all(consumer.only_who_holds_it_blocks_an_instance, "consumer/own-instance-refused consumer/instance-of-nobody"),
    *_all(_OWNED, "consumer/new-instance consumer/kept-from-everybody consumer/stale-type", probes.SETTLE),
    *_all(_OWNED, "consumer/pruned-and-unowned consumer/upgrade-without-owner", probes.SETTLE),
    *_all(consumer.members_are_described_once, "consumer/described-twice"),
    *_all(_EPOCHS, "consumer/dropped-group"),
    *_all(runtime.a_group_never_counts_anew, "consumer/counted-anew"),
    *_all(_REFUSED, "consumer/upgrade-refused consumer/upgrade-of-the-unreadable"),
    *_all(classic.every_sync_is_answered, "consumer/sync-without-answer", [probes.replicate]),
    *_all(at_the_end(consumer.somebody_is_told_of_a_bump), "consumer/starving", probes.classic_heartbeats("g", 2)),
    *_all(consumer.whoever_leaves_is_gone, "consumer/leave-refused", [probes.replicate]),
    *_all(consumer.a_generation_is_good, "consumer/generation-of-nobody", [probes.use_the_generation]),
    *_all(at_the_end(runtime.timers_are_of_the_protocol), "consumer/timers-after-downgrade"),
    *_all(at_the_end(consumer.whoever_synced_has_its_share), "consumer/downgrade-owes"),
    *_all(
        _THERE,
        "consumer/timer-of-who-was-converted",
    ),
    *_all(consumer.only_who_subscribes_hears_of_a_topic, "consumer/topics-of-before"),
    *_all(consumer.who_asks_for_nothing_bumps_nothing, "kafka-4.4/tied-votes"),
    *_all(offsets.a_commit_of_nothing_leaves_nothing, "offsets/refused-commit-leaves-group"),
    *_all(offsets.no_fetch_is_a_fault, "offsets/fetch-of-nobody"),
    *_all(offsets.offsets_are_loaded_as_they_were, "offsets/id-without-a-place"),
    *_all(offsets.a_load_makes_no_group_of_nothing, "offsets/group-of-an-aborted-transaction"),
)
