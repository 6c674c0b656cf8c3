"""The last rebalances with their causes, as the coordinators report them. Each start and end is also a log line, and
is counted for its group."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Final

from fencepost.host.broker import HostEvent, OnPartition, Served
from fencepost.protocol.events import Unload
from fencepost.protocol.rebalances import (
    GenerationBegan,
    GroupType,
    RebalanceEnded,
    RebalanceReason,
    RebalanceReport,
    RebalanceStarted,
)
from fencepost_server.observe.groups import GroupCounts
from fencepost_server.observe.logs import iso, one_line

_log = logging.getLogger(__name__)

#: the number of rebalances to remember
KEPT: Final = 200

#: the states of a rebalance that has not reached Stable or Empty
UNDER_WAY: Final = "under way"
SUPERSEDED: Final = "superseded"
UNDONE: Final = "undone"
UNLOADED: Final = "unloaded"

#: the reasons for which the coordinator itself removes the members of the cause
_EVICTS: Final = frozenset(
    {
        RebalanceReason.SESSION_EXPIRED,
        RebalanceReason.REBALANCE_TIMEOUT,
        RebalanceReason.JOIN_TIMEOUT,
        RebalanceReason.SYNC_TIMEOUT,
    }
)


@dataclass(slots=True)
class Rebalance:
    """A rebalance, as far as it is known.

    ``generation``: the generation of a classic group, or the epoch of a consumer group, that it leads to. ``reason`` is
    the kind of cause, ``cause`` the complete one. ``converted``: the group had the other protocol before. ``leader``
    and ``members``: of a classic group, once all have joined. ``removed``: the members that did not rejoin in time.
    ``state``: Stable or Empty, the state of the group at the end; ``under way``; ``superseded`` by the next rebalance;
    ``undone``, because the log did not take its records; ``unloaded``, because the coordinator gave up the group."""

    at_ms: int
    group_id: str
    protocol: str
    generation: int
    reason: str
    cause: str
    converted: bool
    leader: str | None = None
    members: int | None = None
    removed: str = ""
    state: str = UNDER_WAY
    duration_ms: int | None = None

    def row(self) -> dict[str, object]:
        """Return all fields for JSON, and the start as a date (ISO 8601, UTC)."""
        return {"at": iso(self.at_ms), **asdict(self)}

    @property
    def _name(self) -> str:
        word = "epoch" if self.protocol == GroupType.CONSUMER.value else "generation"
        return f"group {self.group_id} ({self.protocol}): {word} {self.generation}"

    def __str__(self) -> str:
        """Return the log line for the current state."""
        if self.state == UNDER_WAY and self.leader is None:
            was = "the group changes its protocol; " if self.converted else ""
            return f"{self._name}: rebalance started: {was}{self.cause}"
        if self.state == UNDER_WAY:
            removed = f"; {self.removed}" if self.removed else ""
            return f"{self._name}: all have joined: {self.members} members, leader {self.leader}{removed}"
        leader = f", leader {self.leader}" if self.leader else ""
        return f"{self._name}: rebalance ended: {self.state} after {self.duration_ms} ms{leader}"


class Rebalances:
    """The last rebalances (``last``), and the number of all since the start (``count``); ``groups`` counts by group."""

    def __init__(self, groups: GroupCounts | None = None) -> None:
        self.groups = GroupCounts() if groups is None else groups
        self.last: deque[Rebalance] = deque(maxlen=KEPT)
        self.count = 0
        self._open: dict[str, tuple[int, Rebalance]] = {}  #: under way, by group, each with its partition

    def watch(self, event: HostEvent, served: Served) -> None:
        """Record the reports of one step (``GroupBroker.watch``)."""
        one = event.event if isinstance(event, OnPartition) else event
        for place, outcome in served.parts:
            if isinstance(one, Unload):
                for name in [name for name, (partition, _) in self._open.items() if partition == place]:
                    self._end(name, UNLOADED, one.at_ms)
            for report in outcome.rebalances:
                self._take_up(place, report, one.at_ms)

    def _take_up(self, place: int, report: RebalanceReport, at_ms: int) -> None:
        match report:
            case RebalanceStarted():
                self._start(place, report, at_ms)
            case GenerationBegan(group_id=name):
                self.groups.evict(name, len(report.removed))
                if name in self._open:
                    seen = self._open[name][1]
                    seen.leader, seen.members = report.leader, report.members
                    if report.removed:
                        names = ", ".join(map(str, report.removed))
                        seen.removed = f"removed {names}: rebalance timeout of {report.timeout_ms} ms expired"
                    _log.info("%s", one_line(str(seen)))
            case RebalanceEnded(group_id=name, state=state):
                self._end(name, UNDONE if state is None else state.value, at_ms)

    def _start(self, place: int, report: RebalanceStarted, at_ms: int) -> None:
        self._end(report.group_id, SUPERSEDED, at_ms)
        seen = Rebalance(
            at_ms,
            report.group_id,
            report.group_type.value,
            report.generation,
            report.cause.reason.value,
            str(report.cause),
            report.converted,
        )
        self.count += 1
        self.groups.rebalance(report.group_id, seen.reason)
        self.groups.evict(report.group_id, len(report.cause.members) if report.cause.reason in _EVICTS else 0)
        self.last.append(seen)
        self._open[report.group_id] = place, seen
        _log.info("%s", one_line(str(seen)))

    def _end(self, name: str, state: str, at_ms: int) -> None:
        """End the rebalance of a group. Does nothing if none is under way: a static member that is replaced later may
        report a second end."""
        _, seen = self._open.pop(name, (0, None))
        if seen is not None:
            seen.state, seen.duration_ms = state, at_ms - seen.at_ms
            self.groups.spend(name, seen.duration_ms)
            _log.info("%s", one_line(str(seen)))

    def under_way(self, now_ms: int) -> dict[str, int]:
        """Return how long each rebalance under way lasts, in ms, by group."""
        return {name: max(now_ms - seen.at_ms, 0) for name, (_, seen) in self._open.items()}

    def rows(self) -> Iterable[Rebalance]:
        """Return the remembered rebalances, newest first."""
        return reversed(self.last)
