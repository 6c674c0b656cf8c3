"""The promises of the closed log: the properties of ``spec/GroupLogProperties.tla``, under the same names, and the
witnesses of ``MCGroupLog``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ...explore.interface import Invariant, Label, StepInvariant
from ..durable import Durable, follows
from ..gather import Part
from . import rules
from .closed import Acknowledged, LogSystem
from .state import GONE, Broker, Cluster, Contents, Copy, Election, below, place, replay


def every_variable_has_its_type(system: LogSystem) -> Iterable[Part]:
    """The range of each value; the type checker covers the shapes."""
    ends, known = system.config.ends, {*system.config.values, GONE}

    def of_broker(broker: Broker) -> bool:
        copy, memory = broker.copy, broker.memory
        offsets = [row.offset for row in copy.rows]
        return (
            0 <= copy.high_watermark <= copy.end <= ends
            and 0 <= memory.upto <= copy.end
            and offsets == sorted({*offsets})
            and all(0 <= offset < ends for offset in (*offsets, *memory.unanswered))
            and {*memory.contents} <= known
        )

    def of_cluster(cluster: Cluster) -> bool:
        return bool(cluster.in_sync) and all(0 <= each.start <= ends for each in cluster.elections)

    name = "EveryVariableHasItsType"
    return (*(Invariant(name, (b,), of_broker) for b in system.numbers), Invariant(name, (system.cluster,), of_cluster))


def no_acknowledged_write_is_lost(system: LogSystem) -> Iterable[Part]:
    """Any elected leader has every acknowledged write, or a later one of its key (INV-COMMIT-03)."""

    def holds(head: tuple[int, Election], acknowledged: Acknowledged, *copies: Copy) -> bool:
        copy = copies[head[1].leader]
        for row in acknowledged:
            if row is None:
                continue
            of_key = [each for each in copy.rows if each.key == row.key]
            later = any(each == row or each.offset > row.offset for each in of_key)
            if copy.end <= row.offset or not (later or (row.value == GONE and not of_key)):
                return False
        return True

    yield Invariant("NoAcknowledgedWriteIsLost", (system.head, system.acknowledged, *system.copies), holds)


def every_replicated_record_stays(system: LogSystem) -> Iterable[Part]:
    """No broker takes for replicated what later leaders have differently (F-RT-11, F-CONS-07)."""

    def holds(broker_copy: Copy, cluster: Cluster) -> bool:
        starts = [each.start for each in cluster.elections]
        return all(
            row.offset < start
            for row in below(broker_copy.rows, broker_copy.high_watermark)
            for start in starts[row.epoch :]
        )

    return (Invariant("EveryReplicatedRecordStays", (copy, system.cluster), holds) for copy in system.copies)


def the_memory_equals_the_log(system: LogSystem) -> Iterable[Part]:
    """Another coordinator would load the state of this one from the log (INV-REPLAY-01)."""

    def holding(number: int) -> Callable[[Broker, Cluster], bool]:
        def holds(broker: Broker, cluster: Cluster) -> bool:
            if not cluster.led_by(number, broker) or not rules.has_loaded(broker):
                return True
            return broker.memory.contents == replay(broker.copy.rows, system.empty)

        return holds

    return (Invariant("TheMemoryEqualsTheLog", (b, system.cluster), holding(b)) for b in system.numbers)


def durable(system: LogSystem, leader: int, copies: Sequence[Copy]) -> Durable[Contents]:
    """Return the log in terms of ``Durable``: the state that the leader's records before the highest watermark give,
    then the state after each further record."""
    copy = copies[leader]
    high_watermark = max(each.high_watermark for each in copies)
    at = replay(below(copy.rows, high_watermark), system.empty)
    opened = []
    now = at
    for offset in range(high_watermark, copy.end):
        here = place(copy.rows, offset)
        now = replay((row for row in copy.rows[here : here + 1] if row.offset == offset), now)
        opened.append(now)
    return Durable(at, tuple(opened))


def the_log_refines_durable(system: LogSystem) -> Iterable[Part]:
    """The refinement of ``Durable``: cleaning, fetching, loading and everything that an old coordinator does are
    stuttering steps."""
    reads = (system.head, *system.copies)

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        then, now = (durable(system, each[0][1].leader, each[1:]) for each in (before, after))
        return follows(then, now)

    yield StepInvariant("TheLogRefinesDurable", reads, holds, changed=reads)


# ---- witnesses: each says "never" of something that must be reachable ----------------------------------------------


def no_write_survives_its_time_out(system: LogSystem) -> Iterable[Part]:
    """A write whose client got no answer is replicated eventually (F-RT-09)."""

    def holds(head: tuple[int, Election], acknowledged: Acknowledged, *copies: Copy) -> bool:
        copy = copies[head[1].leader]
        last = {row.key: row for row in copy.rows}
        return all(row in acknowledged or last[row.key] != row for row in below(copy.rows, copy.high_watermark))

    yield Invariant("NoWriteSurvivesItsTimeOut", (system.head, system.acknowledged, *system.copies), holds)


def no_two_coordinators_ever_answer(system: LogSystem) -> Iterable[Part]:
    """Two coordinators have loaded (F-CONS-07)."""

    def holds(cluster: Cluster, *brokers: Broker) -> bool:
        return sum(cluster.led_by(b, each) and rules.has_loaded(each) for b, each in enumerate(brokers)) < 2

    yield Invariant("NoTwoCoordinatorsEverAnswer", (system.cluster, *system.numbers), holds)


def the_leader_never_reads_old_state(system: LogSystem) -> Iterable[Part]:
    """Even the newest coordinator reads from the past while its high watermark is behind."""

    def holds(cluster: Cluster, *brokers: Broker) -> bool:
        leader = brokers[cluster.leader]
        high_watermark = max(each.copy.high_watermark for each in brokers)
        seen, stable = (
            replay(below(leader.copy.rows, upto), system.empty) for upto in (leader.copy.high_watermark, high_watermark)
        )
        return not rules.has_loaded(leader) or seen == stable

    yield Invariant("TheLeaderNeverReadsOldState", (system.cluster, *system.numbers), holds)


CATALOGUE: Final[Mapping[str, Callable[[LogSystem], Iterable[Part]]]] = {
    "EveryVariableHasItsType": every_variable_has_its_type,
    "NoAcknowledgedWriteIsLost": no_acknowledged_write_is_lost,
    "EveryReplicatedRecordStays": every_replicated_record_stays,
    "TheMemoryEqualsTheLog": the_memory_equals_the_log,
    "TheLogRefinesDurable": the_log_refines_durable,
    "NoWriteSurvivesItsTimeOut": no_write_survives_its_time_out,
    "NoTwoCoordinatorsEverAnswer": no_two_coordinators_ever_answer,
    "TheLeaderNeverReadsOldState": the_leader_never_reads_old_state,
}
