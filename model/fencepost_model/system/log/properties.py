"""The promises of the closed log: the properties of ``spec/GroupLogProperties.tla``, under the same names, and the
witnesses of ``MCGroupLog``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...explore.interface import Invariant, Label, Properties, StepInvariant
from ..durable import Durable, follows
from ..gather import gather
from . import rules
from .closed import LogSystem, Told
from .state import GONE, Broker, Cluster, Contents, Copy, Election, below, place, replay

Part: TypeAlias = Invariant | StepInvariant


def has_types(system: LogSystem) -> Iterable[Part]:
    """The range of each value; the type checker covers the shapes."""
    ends, known = system.config.ends, {*system.config.values, GONE}

    def of_broker(broker: Broker) -> bool:
        copy, mind = broker.copy, broker.mind
        offsets = [row.offset for row in copy.rows]
        return (
            0 <= copy.mark <= copy.end <= ends
            and 0 <= mind.upto <= copy.end
            and offsets == sorted({*offsets})
            and all(0 <= offset < ends for offset in (*offsets, *mind.owes))
            and {*mind.contents} <= known
        )

    def of_cluster(cluster: Cluster) -> bool:
        return bool(cluster.insync) and all(0 <= each.start <= ends for each in cluster.elections)

    name = "EveryVariableHasItsType"
    return (*(Invariant(name, (b,), of_broker) for b in system.numbers), Invariant(name, (system.cluster,), of_cluster))


def keeps_what_is_acknowledged(system: LogSystem) -> Iterable[Part]:
    """Any elected leader has every acknowledged write, or a later one of its key (INV-COMMIT-03)."""

    def holds(head: tuple[int, Election], told: Told, *copies: Copy) -> bool:
        copy = copies[head[1].leader]
        for row in told:
            if row is None:
                continue
            of_key = [each for each in copy.rows if each.key == row.key]
            later = any(each == row or each.offset > row.offset for each in of_key)
            if copy.end <= row.offset or not (later or (row.value == GONE and not of_key)):
                return False
        return True

    yield Invariant("NoAcknowledgedWriteIsLost", (system.head, system.told, *system.copies), holds)


def agrees_on_what_is_replicated(system: LogSystem) -> Iterable[Part]:
    """No broker takes for replicated what later leaders have differently (F-RT-11, F-CONS-07)."""

    def holds(broker_copy: Copy, cluster: Cluster) -> bool:
        starts = [each.start for each in cluster.elections]
        return all(
            row.offset < start for row in below(broker_copy.rows, broker_copy.mark) for start in starts[row.epoch :]
        )

    return (Invariant("EveryReplicatedRecordStays", (copy, system.cluster), holds) for copy in system.copies)


def has_in_memory_what_is_in_the_log(system: LogSystem) -> Iterable[Part]:
    """Another coordinator would load the state of this one from the log (INV-REPLAY-01)."""

    def holding(number: int) -> Callable[[Broker, Cluster], bool]:
        def holds(broker: Broker, cluster: Cluster) -> bool:
            if not cluster.led_by(number, broker) or not rules.has_loaded(broker):
                return True
            return broker.mind.contents == replay(broker.copy.rows, system.empty)

        return holds

    return (Invariant("TheMemoryEqualsTheLog", (b, system.cluster), holding(b)) for b in system.numbers)


def durable(system: LogSystem, leader: int, copies: Sequence[Copy]) -> Durable[Contents]:
    """Return the log in terms of ``Durable``: the state that the leader's records before the highest watermark give,
    then the state after each further record."""
    copy = copies[leader]
    mark = max(each.mark for each in copies)
    at = replay(below(copy.rows, mark), system.empty)
    opened = []
    now = at
    for offset in range(mark, copy.end):
        here = place(copy.rows, offset)
        now = replay((row for row in copy.rows[here : here + 1] if row.offset == offset), now)
        opened.append(now)
    return Durable(at, tuple(opened))


def is_durable(system: LogSystem) -> Iterable[Part]:
    """The refinement of ``Durable``: cleaning, fetching, loading and everything that an old coordinator does are
    stuttering steps."""
    reads = (system.head, *system.copies)

    def holds(_: Label, before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
        then, now = (durable(system, each[0][1].leader, each[1:]) for each in (before, after))
        return follows(then, now)

    yield StepInvariant("TheLogRefinesDurable", reads, holds, changed=reads)


# ---- witnesses: each says "never" of something that must be reachable ----------------------------------------------


def no_write_survives(system: LogSystem) -> Iterable[Part]:
    """A write whose client got no answer is replicated eventually (F-RT-09)."""

    def holds(head: tuple[int, Election], told: Told, *copies: Copy) -> bool:
        copy = copies[head[1].leader]
        last = {row.key: row for row in copy.rows}
        return all(row in told or last[row.key] != row for row in below(copy.rows, copy.mark))

    yield Invariant("NoWriteSurvivesItsTimeOut", (system.head, system.told, *system.copies), holds)


def one_answers(system: LogSystem) -> Iterable[Part]:
    """Two coordinators have loaded (F-CONS-07)."""

    def holds(cluster: Cluster, *brokers: Broker) -> bool:
        return sum(cluster.led_by(b, each) and rules.has_loaded(each) for b, each in enumerate(brokers)) < 2

    yield Invariant("NoTwoCoordinatorsEverAnswer", (system.cluster, *system.numbers), holds)


def reads_what_is_stable(system: LogSystem) -> Iterable[Part]:
    """Even the newest coordinator reads from the past while its high watermark is behind."""

    def holds(cluster: Cluster, *brokers: Broker) -> bool:
        leader = brokers[cluster.leader]
        mark = max(each.copy.mark for each in brokers)
        seen, stable = (replay(below(leader.copy.rows, upto), system.empty) for upto in (leader.copy.mark, mark))
        return not rules.has_loaded(leader) or seen == stable

    yield Invariant("TheLeaderNeverReadsOldState", (system.cluster, *system.numbers), holds)


CATALOGUE: Final[Mapping[str, Callable[[LogSystem], Iterable[Part]]]] = {
    "EveryVariableHasItsType": has_types,
    "NoAcknowledgedWriteIsLost": keeps_what_is_acknowledged,
    "EveryReplicatedRecordStays": agrees_on_what_is_replicated,
    "TheMemoryEqualsTheLog": has_in_memory_what_is_in_the_log,
    "TheLogRefinesDurable": is_durable,
    "NoWriteSurvivesItsTimeOut": no_write_survives,
    "NoTwoCoordinatorsEverAnswer": one_answers,
    "TheLeaderNeverReadsOldState": reads_what_is_stable,
}


def properties_of(system: LogSystem, wanted: Sequence[str], *, fair: bool = False) -> Properties:
    """Return the named properties for the system. Raises ValueError for an unknown name. A log has no liveness
    properties."""
    return gather(system, wanted, CATALOGUE, ())
