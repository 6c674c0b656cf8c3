"""The board of a running cluster: what each group is now, from the last look, and what happened to it, from the log.

Memory is bounded: ``most`` groups, ``KEPT`` rebalances, ``EVENTS`` events, and of each group its members, partitions
and numbers. A group of which nothing is left is forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any, Final, cast

from fencepost_server.observe.groups import GroupCounts
from fencepost_server.observe.metrics import by_label, gauges
from fencepost_server.observe.rebalances import Rebalance
from fencepost_server.observe.rows import GroupRow, OffsetRow

from ...common.counting import counted
from ...common.nearest import unknown
from ...traces.live.look import Look
from ...traces.offsets_log.follow import Piece
from ...traces.offsets_log.rows import TOPIC, Notices
from ..history.events import Place, skipped
from ..history.life import CLASSIC, Life
from ..history.one_pass import PartitionPass
from .rebalances import Happened, Rebalances

#: states of a group in a rebalance
REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"})
#: problems of requests that are shown
_PROBLEMS: Final = 5


class WatchedOffset(OffsetRow):
    """A committed offset. ``back``: how often a commit was lower than the one before."""

    back: int


class WatchedGroup(GroupRow, total=False):
    """A group. ``for_s``: how long it is seen in its state. The rest is from the log: ``last`` is the last rebalance,
    ``rules_broken`` counts records that break a rule."""

    for_s: float
    watched: list[WatchedOffset]
    rebalances: int
    rebalance_ms: int
    longest_ms: int
    commits: int
    back: int
    rules_broken: int
    last: Rebalance


class Board:
    """A cluster. ``names``: the groups to show; none: all, up to ``most``. ``away``: why no broker responds."""

    def __init__(self, names: Collection[str], most: int, counts: GroupCounts) -> None:
        self.rebalances = Rebalances(counts)
        self._passes: dict[int, PartitionPass] = {}
        self.notices = Notices()
        self.problems: dict[int, str] = {}  #: of partitions of the offsets topic
        self.away: str | None = None
        self.records = 0
        self.caught_up = False  #: whether the log was read to the end that it had when the reading began
        self._names = sorted(set(names))
        self._most = most
        self._counts = counts
        self._look = Look()
        self._since: dict[str, tuple[str, float]] = {}

    def take(self, piece: Piece) -> None:
        """Take records of the log."""
        if piece.restarted:
            former = self._passes.pop(piece.partition, None)
            if former is not None:
                self.rebalances.forget(former.lives.keys())
        partition_pass = self._pass_of(piece.partition)
        old = len(piece.rows) - piece.live
        self.records += len(piece.rows)
        for rows, self.rebalances.live in ((piece.rows[:old], False), (piece.rows[old:], True)):
            for row in rows:
                partition_pass.take(row)

    def _pass_of(self, partition: int) -> PartitionPass:
        found = self._passes.get(partition)
        if found is None:
            admits = None if self._names else self._admits
            found = PartitionPass(partition, self._names or None, admits=admits, listener=self.rebalances)
            self._passes[partition] = found
        return found

    def _admits(self) -> bool:
        return sum(len(each.lives) for each in self._passes.values()) < self._most

    def looked(self, look: Look, now_s: float, *, caught_up: bool) -> None:
        """Take a look at the groups. ``now_s``: a clock that does not run back."""
        self._look = look
        self.caught_up = caught_up
        if caught_up:
            self.rebalances.live = True
            for partition_pass in self._passes.values():
                partition_pass.settle()
                partition_pass.prune()
        since = {}
        for name, row in look.groups.items():
            state, before = self._since.get(name, ("", now_s))
            since[name] = (row["state"], before if state == row["state"] else now_s)
        self._since = since

    @property
    def lives(self) -> dict[str, Life]:
        """The groups of the log so far."""
        return {name: life for each in self._passes.values() for name, life in each.lives.items()}

    @property
    def names(self) -> dict[str, str]:
        """The names of topics by their ids."""
        return {topic_id: name for each in self._passes.values() for topic_id, name in each.names.items()}

    @property
    def total(self) -> int:
        """The number of groups in the cluster."""
        return len(self._look.states)

    def groups(self, now_s: float) -> list[WatchedGroup]:
        """Return the groups: those in a rebalance first, then those with a doubtful offset, then by lag."""
        last, lives = self.rebalances.last_of(), self.lives
        rows = [self._row(row, now_s, last.get(name), lives.get(name)) for name, row in self._look.groups.items()]
        return sorted(rows, key=_rank)

    def _row(self, row: GroupRow, now_s: float, last: Rebalance | None, life: Life | None) -> WatchedGroup:
        committed = {} if life is None else life.commits.committed
        watched = [
            {**each, "back": known.back if (known := committed.get(Place(each["topic"], each["partition"]))) else 0}
            for each in row["offsets"]
        ]
        shown = {**row, "for_s": max(now_s - self._since[row["group"]][1], 0.0), "watched": watched}
        if last is not None:
            shown["last"] = last
        return cast(WatchedGroup, shown if life is None else shown | _from_log(life))

    def state(self, now_s: float, now_ms: int, title: str) -> dict[str, Any]:
        """Return the board as JSON data, in the form of the status page."""
        groups: list[dict[str, Any]] = []
        for row in self.groups(now_s):
            shown = {name: value for name, value in row.items() if name not in ("watched", "last")}
            last = row.get("last")
            groups.append({**shown, "offsets": row["watched"], "last_rebalance": None if last is None else last.row()})
        return {
            "title": title,
            "lines": self.summary(),
            "at_ms": now_ms,
            "away": self.away,
            "groups_total": self.total,
            "groups": groups,
            "rebalances_total": self.rebalances.total,
            "rebalances": [each.row() for each in self.rebalances.last(50)],
            "notices": self.warnings(),
        }

    def summary(self) -> str:
        """Return the numbers of the board in words."""
        return (
            f"{counted(self.total, 'groups')}, {counted(self.records, 'records')} of {TOPIC} read, "
            f"{counted(self.rebalances.total, 'new rebalances')}"
        )

    def metrics(self, now_s: float) -> Iterable[str]:
        """Yield lines in Prometheus' text format."""
        look = self._look
        under_way = {
            name: int((now_s - since) * 1_000) for name, (state, since) in self._since.items() if state in REBALANCING
        }
        yield from gauges(
            {
                "fencepost_watch_up": ("Whether the cluster responds.", float(self.away is None)),
                "fencepost_watch_records_total": (f"Records of {TOPIC} that were read.", self.records),
                "fencepost_rebalances_total": ("Rebalances since the start.", self.rebalances.total),
            }
        )
        yield from by_label("fencepost_groups", "Groups, by state.", "state", Counter(look.states.values()))
        members = {name: len(row["members"]) for name, row in look.groups.items()}
        lag = {name: row["lag"] for name, row in look.groups.items() if row["offsets"]}
        yield from self._counts.lines(members, lag, under_way)

    # the notices

    def warnings(self) -> list[str]:
        """Return what cannot be shown, or contradicts itself, a sentence each."""
        lines = [f"the cluster does not respond: {self.away}; what is shown is old"] if self.away else []
        lines += [
            unknown("group", name, self._look.states, "it will be shown once it exists")
            for name in self._names
            if name not in self._look.states and self.away is None
        ]
        hidden = self.total - len(self._look.groups)
        if hidden > 0 and not self._names:
            lines.append(f"not shown, only counted: {counted(hidden, 'groups')}; --max-groups sets how many are shown")
        if left_out := sum(each.left_out for each in self._passes.values()):
            lines.append(f"{counted(left_out, 'records')} of groups above --max-groups were skipped")
        lines += self._look.problems[:_PROBLEMS]
        if len(self._look.problems) > _PROBLEMS:
            lines.append(f"and {counted(len(self._look.problems) - _PROBLEMS, 'more problems')}")
        return [*lines, *_of_topic(self.problems), *self._of_log(), *self.notices.lines()]

    def _of_log(self) -> Iterable[str]:
        logs = [each.facts for each in self._passes.values()]
        backwards = [each for each in logs if each.backwards]
        if backwards:
            furthest = max(each.furthest_ms for each in backwards)
            times = counted(sum(each.backwards for each in backwards), "times")
            yield f"the clock of the log ran back {times}, by up to {furthest} ms; durations there are too short"
        reasons = Counter[str]()
        for each in logs:
            reasons.update(each.unknown)
        for reason, count in reasons.items():
            yield skipped(count, reason)

    def lost(self, reason: str, at_ms: int) -> None:
        """Note that no broker responds."""
        if self.away is None:
            self.rebalances.add(Happened(at_ms, "", f"the cluster does not respond: {reason}"))
        self.away = reason

    def back(self, at_ms: int) -> None:
        """Note that brokers respond."""
        if self.away is not None:
            self.rebalances.add(Happened(at_ms, "", "the cluster responds again"))
        self.away = None


def _from_log(life: Life) -> dict[str, Any]:
    found: dict[str, Any] = {
        "rebalances": life.rebalances,
        "rebalance_ms": life.rebalance_ms,
        "longest_ms": life.longest_ms,
        "commits": life.commits.total,
        "back": life.commits.back,
        "rules_broken": life.broken,
    }
    if life.protocol == CLASSIC and life.epoch is not None:
        found["generation"], found["leader"] = life.epoch, life.leader
    return found


def _rank(row: WatchedGroup) -> tuple[bool, bool, int, str]:
    return row["state"] not in REBALANCING, not any(each["flag"] for each in row["offsets"]), -row["lag"], row["group"]


def _of_topic(problems: dict[int, str]) -> Iterable[str]:
    alike: dict[str, list[int]] = {}
    for partition, text in problems.items():
        alike.setdefault(text, []).append(partition)
    for text, partitions in alike.items():
        if partitions == [-1]:
            yield f"{text}; generations, leaders, causes and commits are missing"
        else:
            which = f"partition {partitions[0]}" if len(partitions) == 1 else counted(len(partitions), "partitions")
            yield f"{which} of {TOPIC} cannot be read now: {text}; history is missing"
