"""Numbers of single groups for Prometheus, with a bound on the values of the label ``group``.

The first groups that have something to count get a label, and keep it while they exist. All other groups are summed
under ``OTHERS``. So no counter ever decreases: a group that gets a label later starts at 0, and a labelled group that
is deleted hands its counts to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fencepost.host.broker import HostEvent, OnPartition, Served
from fencepost.protocol.events import Unload
from fencepost.protocol.logged import PlainCommit
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey
from fencepost.protocol.records import Record
from fencepost_server.observe.metrics import family
from fencepost_server.options import LABELLED_GROUPS

#: the value of the label for all groups without their own
OTHERS: Final = "(other)"


@dataclass(slots=True)
class _Counts:
    """The events of a group since it has its label. ``rebalances``: by cause."""

    rebalances: Counter[str] = field(default_factory=Counter)
    evictions: int = 0
    rebalance_ms: int = 0
    commits: int = 0

    def add(self, other: _Counts) -> None:
        self.rebalances.update(other.rebalances)
        self.evictions += other.evictions
        self.rebalance_ms += other.rebalance_ms
        self.commits += other.commits


class GroupCounts:
    """Counts by group. ``most``: how many groups get their own label; ``ValueError`` if it is negative."""

    def __init__(self, most: int = LABELLED_GROUPS) -> None:
        if most < 0:
            raise ValueError(f"the number of groups with a label must be >= 0 (got {most})")
        self._most = most
        self._labelled: dict[str, _Counts] = {}
        self._others = _Counts()

    def rebalance(self, group: str, cause: str) -> None:
        """Count a rebalance that begins. ``cause``: one of a few words."""
        self._of(group).rebalances[cause] += 1

    def evict(self, group: str, members: int) -> None:
        """Count members that the coordinator removed."""
        if members:
            self._of(group).evictions += members

    def spend(self, group: str, ms: int) -> None:
        """Add the duration of a rebalance, in ms; a clock that runs back adds nothing."""
        self._of(group).rebalance_ms += max(ms, 0)

    def commit(self, group: str, offsets: int) -> None:
        """Count committed offsets."""
        self._of(group).commits += offsets

    def keep(self, groups: Collection[str]) -> None:
        """Free the labels of all groups but these."""
        for name in [name for name in self._labelled if name not in groups]:
            self._others.add(self._labelled.pop(name))

    def _of(self, group: str) -> _Counts:
        found = self._labelled.get(group)
        if found is None:
            if len(self._labelled) >= self._most or group == OTHERS:
                return self._others
            found = self._labelled[group] = _Counts()
        return found

    def lines(self, members: Mapping[str, int], lag: Mapping[str, int], under_way: Mapping[str, int]) -> Iterable[str]:
        """Yield the lines of all numbers of groups.

        Args:
            members: the number of members of each group that exists.
            lag: the lag of each group that has committed offsets, in records.
            under_way: how long each rebalance that has not ended lasts so far, in ms; a gauge, so that the counter of
                the time never decreases.
        """
        self.keep(members)
        for name in sorted(members):
            self._of(name)
        counted = [*sorted(self._labelled.items()), (OTHERS, self._others)]
        seconds = {name: ms / 1_000 for name, ms in self._summed(under_way).items() if ms or name == OTHERS}
        yield from _gauge("members", "Members of the group.", self._summed(members))
        yield from _gauge(
            "lag", "Records from the committed offsets to the ends of their partitions.", self._summed(lag)
        )
        yield from _gauge("rebalance_under_way_seconds", "How long the rebalance under way lasts so far.", seconds)
        yield from family(
            "fencepost_group_rebalances_total",
            "Rebalances that began, by cause.",
            [
                ({"group": name, "cause": cause}, count)
                for name, each in counted
                for cause, count in sorted(each.rebalances.items())
            ],
        )
        yield from _counter(
            "evictions_total", "Members that the coordinator removed.", counted, lambda it: it.evictions
        )
        yield from _counter(
            "rebalance_seconds_total", "Time in rebalances that ended.", counted, lambda it: it.rebalance_ms / 1_000
        )
        yield from _counter("commits_total", "Committed offsets of partitions.", counted, lambda it: it.commits)
        yield from family(
            "fencepost_groups_without_label",
            f'Groups that are summed as group="{OTHERS}".',
            [({}, sum(name not in self._labelled for name in members))],
        )

    def _summed(self, values: Mapping[str, int]) -> dict[str, int]:
        """Return the values by label."""
        found = Counter({OTHERS: 0})
        for name, value in values.items():
            found[name if name in self._labelled else OTHERS] += value
        return found


def _gauge(name: str, words: str, values: Mapping[str, float]) -> Iterable[str]:
    return family(
        f"fencepost_group_{name}", words, [({"group": group}, value) for group, value in sorted(values.items())]
    )


def _counter(
    name: str, words: str, counted: Iterable[tuple[str, _Counts]], number: Callable[[_Counts], float]
) -> Iterable[str]:
    return family(f"fencepost_group_{name}", words, [({"group": group}, number(each)) for group, each in counted])


class CommitWatcher:
    """Counts the offsets that coordinators write; those of a transaction once it commits."""

    def __init__(self, counts: GroupCounts) -> None:
        self._counts = counts
        self._pending: dict[tuple[int, int], Counter[str]] = {}  #: by partition and producer id, by group

    def watch(self, event: HostEvent, served: Served) -> None:
        """Count the commits of one step (``GroupBroker.watch``)."""
        one = event.event if isinstance(event, OnPartition) else event
        for place, outcome in served.parts:
            if isinstance(one, Unload):
                self._pending = {key: found for key, found in self._pending.items() if key[0] != place}
            written = outcome.written
            if isinstance(written, PlainCommit):
                self._counts.commit(written.group, len(written))
                continue
            for record in written:
                self._take(place, record)

    def _take(self, place: int, record: Record) -> None:
        key, producer = record.key, record.producer
        if isinstance(key, ControlKey):
            if producer is not None:
                for group, offsets in self._pending.pop((place, producer.producer_id), Counter[str]()).items():
                    self._counts.commit(group, offsets if key.committed else 0)
        elif isinstance(key, OffsetCommitKey) and record.value is not None:
            if producer is None:
                self._counts.commit(key.group, 1)
            else:
                self._pending.setdefault((place, producer.producer_id), Counter())[key.group] += 1
