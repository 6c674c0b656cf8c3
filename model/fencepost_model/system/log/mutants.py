"""The closed log with one guard removed at a time, under the names of ``spec/MCGroupLogMutants.tla``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from . import rules
from .state import GONE, Broker, Cluster, Contents, Copy, Row, below, replay

Patches = list[tuple[Any, str, Any]]


def _instead_of(name: str, replacement: Callable[..., Any]) -> Callable[[], Patches]:
    return lambda: [(rules, name, replacement)]


def _held_by_itself(own: int, others: Iterable[int]) -> int:
    return own


def _whoever_leads(number: int, broker: Broker, cluster: Cluster) -> bool:
    return cluster.led_by(number, broker)


def _caught_up_to_the_mark(end: int, leaders_mark: int, start: int) -> bool:
    return end >= leaders_mark


def _cuts_nothing_off(broker: Broker, cluster: Cluster) -> int:
    return broker.copy.end


def _superseded_by_any(copy: Copy, row: Row) -> bool:
    return any(each.key == row.key and each.offset > row.offset for each in copy.rows)


def _superseded_by_the_first(copy: Copy, row: Row) -> bool:
    return any(each.key == row.key and each.offset < row.offset for each in below(copy.rows, copy.mark))


def _undone(broker: Broker, offset: int) -> Contents:
    nothing = (GONE,) * len(broker.mind.contents)
    return replay((row for row in broker.copy.rows if row.offset != offset), nothing)


#: "operator <- replacement" of the specification → the patches
LOG_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "ReplicatedToAll <- ReplicatedByItself": _instead_of("replicated_to_all", _held_by_itself),
    "MayReplicate <- AnyLeaderMayReplicate": _instead_of("may_replicate", _whoever_leads),
    "CaughtUp <- CaughtUpToHighWatermark": _instead_of("caught_up", _caught_up_to_the_mark),
    "DivergenceOffset <- TruncatesNothing": _instead_of("parting", _cuts_nothing_off),
    "Superseded <- SupersededByAny": _instead_of("superseded", _superseded_by_any),
    "Superseded <- SupersededByFirst": _instead_of("superseded", _superseded_by_the_first),
    "HasNoOlderRecords <- NeverHasOlderRecords": _instead_of("has_no_older_records", lambda copy, row: True),
    "EveryBrokerHasSeen <- AlwaysSeen": _instead_of("seen_by_all", lambda row, upto, epoch, loading: True),
    "AfterTimeOut <- UndoneByTimeOut": _instead_of("after_time_out", _undone),
    "Loaded <- LoadedToHighWatermark": _instead_of("has_loaded", lambda broker: broker.mind.upto >= broker.copy.mark),
}
