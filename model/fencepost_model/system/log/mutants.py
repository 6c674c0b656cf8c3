"""The closed log with one guard removed at a time, under the names of ``spec/MCGroupLogMutants.tla``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from . import rules
from .state import GONE, Broker, Cluster, Contents, Copy, Row, below, replay

Patches = list[tuple[Any, str, Any]]


def _instead_of(name: str, replacement: Callable[..., Any]) -> Callable[[], Patches]:
    return lambda: [(rules, name, replacement)]


def _replicated_by_itself(own: int, others: Iterable[int]) -> int:
    return own


def _any_leader_may_replicate(number: int, broker: Broker, cluster: Cluster) -> bool:
    return cluster.led_by(number, broker)


def _caught_up_to_high_watermark(end: int, leader_high_watermark: int, start: int) -> bool:
    return end >= leader_high_watermark


def _truncates_nothing(broker: Broker, cluster: Cluster) -> int:
    return broker.copy.end


def _superseded_by_any(copy: Copy, row: Row) -> bool:
    return any(each.key == row.key and each.offset > row.offset for each in copy.rows)


def _superseded_by_first(copy: Copy, row: Row) -> bool:
    return any(each.key == row.key and each.offset < row.offset for each in below(copy.rows, copy.high_watermark))


def _undone_by_time_out(broker: Broker, offset: int) -> Contents:
    nothing = (GONE,) * len(broker.memory.contents)
    return replay((row for row in broker.copy.rows if row.offset != offset), nothing)


#: "operator <- replacement" of the specification → the patches
LOG_MUTANTS: Final[dict[str, Callable[[], Patches]]] = {
    "ReplicatedToAll <- ReplicatedByItself": _instead_of("replicated_to_all", _replicated_by_itself),
    "MayReplicate <- AnyLeaderMayReplicate": _instead_of("may_replicate", _any_leader_may_replicate),
    "CaughtUp <- CaughtUpToHighWatermark": _instead_of("caught_up", _caught_up_to_high_watermark),
    "DivergenceOffset <- TruncatesNothing": _instead_of("divergence_offset", _truncates_nothing),
    "Superseded <- SupersededByAny": _instead_of("superseded", _superseded_by_any),
    "Superseded <- SupersededByFirst": _instead_of("superseded", _superseded_by_first),
    "HasNoOlderRecords <- NeverHasOlderRecords": _instead_of("has_no_older_records", lambda copy, row: True),
    "EveryBrokerHasSeen <- AlwaysSeen": _instead_of("every_broker_has_seen", lambda row, upto, epoch, loading: True),
    "AfterTimeOut <- UndoneByTimeOut": _instead_of("after_time_out", _undone_by_time_out),
    "Loaded <- LoadedToHighWatermark": _instead_of(
        "has_loaded", lambda broker: broker.memory.upto >= broker.copy.high_watermark
    ),
}
