"""The closed log as the explorer sees it: one component per broker, one for the cluster, one for the acknowledged
writes.

Each action reads as little as it can; of other brokers mostly the ends of their copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, Final, NoReturn, TypeAlias

from ...explore.interface import Action, Label, Outcome, Permutation, Properties, State, View
from . import rules
from .config import LogConfig
from .state import GONE, Broker, Cluster, Contents, Copy, Election, Memory, Row, below, place, replay

#: For each key the last replicated write, if its client received an answer.
Acknowledged: TypeAlias = tuple[Row | None, ...]
NOBODY: Final[frozenset[int]] = frozenset()


class LogSystem:
    """``explore.System`` for a configuration. ``properties``: those to check."""

    def __init__(self, config: LogConfig, properties: Properties | None = None) -> None:
        self.config = config
        self.properties = properties or Properties()
        self.symmetry: Sequence[Permutation] = ()
        count = len(config.brokers)
        self.numbers = range(count)
        self.cluster, self.acknowledged = count, count + 1
        self.components: Sequence[str] = (*config.brokers, "cluster", "acknowledged")
        first = count + 2
        self.reaches = range(first, first + count)
        self.copies = range(first + count, first + 2 * count)
        self.head = first + 2 * count
        self.views: Sequence[View] = (
            *(View(number, lambda broker: (broker.known_epoch, broker.copy.end)) for number in self.numbers),
            *(View(number, lambda broker: broker.copy) for number in self.numbers),
            View(self.cluster, lambda cluster: (cluster.epoch, cluster.elections[-1])),
        )

    @property
    def empty(self) -> Contents:
        return (GONE,) * len(self.config.keys)

    @property
    def empty_memory(self) -> Memory:
        return Memory(self.empty, 0, NOBODY)

    def initial(self) -> Iterable[State]:
        brokers = (Broker(1, Copy(), self.empty_memory) for _ in self.numbers)
        yield *brokers, Cluster((Election(0, 0),), frozenset(self.numbers)), (None,) * len(self.config.keys)

    def update(self, component: int, value: Any, token: Any) -> NoReturn:
        raise ValueError(f"the closed log has no updates (component {component}, {token!r} to {value!r})")

    # ---- actions ------------------------------------------------------------------------------------------------

    @cached_property
    def actions(self) -> Sequence[Action]:
        return tuple(action for number in self.numbers for action in self._of_broker(number))

    def _of_broker(self, b: int) -> Iterator[Action]:
        cluster, others = self.cluster, [each for each in self.numbers if each != b]
        reaches = tuple(self.reaches[each] for each in others)

        def action(name: str, reads: tuple[int, ...], step: Callable[..., Iterable[Outcome]]) -> Action:
            return Action(name, reads, partial(step, b))

        yield action("CoordinatorLoads", (b, cluster), self._load)
        yield action("HighWatermarkRises", (b, cluster, self.acknowledged, *reaches), self._raise_high_watermark)
        yield action("BrokerLearnsElection", (b, cluster), self._learn_election)
        for other in others:
            yield action("FollowerFetches", (self.head, b, self.copies[other]), partial(self._fetch, other))
            in_sync = (cluster, self.reaches[b], self.copies[other])
            yield action("FollowerIsInSync", in_sync, partial(self._become_in_sync, other))
        possible: dict[str, tuple[tuple[int, ...], Callable[..., Iterable[Outcome]]]] = {
            "ClientWrites": ((b, cluster), self._write),
            "WriteTimesOut": ((b,), self._time_out),
            "CleanerDropsRecord": ((b,), self._drop_record),
            "CleanerDropsTombstone": ((b, cluster, *reaches), self._drop_tombstone),
            "FollowerFallsBehind": ((cluster,), self._fall_behind),
            "LeaderIsElected": ((b, cluster), self._elect),
        }
        for name, (reads, step) in possible.items():
            if name in self.config.allowed:
                yield action(name, reads, step)

    def _label(self, action: str, b: int, *more: str) -> Label:
        return (action, self.config.brokers[b], *more)

    # ---- coordinators -------------------------------------------------------------------------------------------

    def _load(self, b: int, broker: Broker, cluster: Cluster) -> Iterator[Outcome]:
        copy, memory = broker.copy, broker.memory
        if not cluster.led_by(b, broker) or rules.has_loaded(broker):
            return
        found = copy.rows[place(copy.rows, memory.upto) :][:1]
        upto = found[0].offset + 1 if found else copy.end
        read = memory._replace(contents=replay(found, memory.contents), upto=upto)
        yield Outcome(self._label("CoordinatorLoads", b), ((b, broker._replace(memory=read)),))

    def _raise_high_watermark(
        self, b: int, broker: Broker, cluster: Cluster, acknowledged: Acknowledged, *reaches: tuple[int, int]
    ) -> Iterator[Outcome]:
        if not rules.may_replicate(b, broker, cluster):
            return
        copy, memory = broker.copy, broker.memory
        others = [each for each in self.numbers if each != b]
        counted = [end for other, (_, end) in zip(others, reaches, strict=True) if other in cluster.in_sync]
        high_watermark = rules.replicated_to_all(copy.end, counted)
        if high_watermark <= copy.high_watermark:
            return
        now = [*acknowledged]
        for row in below(copy.rows, high_watermark)[place(copy.rows, copy.high_watermark) :]:
            last = now[row.key]
            if last is None or last.offset < row.offset:
                now[row.key] = row if row.offset in memory.unanswered else None  # replicated, but not acknowledged
        unanswered = frozenset(offset for offset in memory.unanswered if offset >= high_watermark)
        after = broker._replace(
            copy=copy._replace(high_watermark=high_watermark), memory=memory._replace(unanswered=unanswered)
        )
        yield Outcome(self._label("HighWatermarkRises", b), ((b, after), (self.acknowledged, tuple(now))))

    def _learn_election(self, b: int, broker: Broker, cluster: Cluster) -> Iterator[Outcome]:
        if broker.known_epoch < cluster.epoch:
            end = rules.divergence_offset(broker, cluster)
            copy = Copy(below(broker.copy.rows, end), end, min(broker.copy.high_watermark, end))
            yield Outcome(
                self._label("BrokerLearnsElection", b), ((b, Broker(cluster.epoch, copy, self.empty_memory)),)
            )

    # ---- copies -------------------------------------------------------------------------------------------------

    def _fetch(self, other: int, b: int, head: tuple[int, Election], broker: Broker, leads: Copy) -> Iterator[Outcome]:
        epoch, election = head
        own = broker.copy
        if (
            election.leader != other
            or broker.known_epoch != epoch
            or (own.end >= leads.end and own.high_watermark >= leads.high_watermark)
        ):
            return
        found = leads.rows[place(leads.rows, own.end) :][:1]
        end = found[0].offset + 1 if found else leads.end
        copy = Copy(own.rows + found, end, max(own.high_watermark, min(leads.high_watermark, end)))
        yield Outcome(self._label("FollowerFetches", b), ((b, broker._replace(copy=copy)),))

    def _become_in_sync(
        self, other: int, b: int, cluster: Cluster, reach: tuple[int, int], leads: Copy
    ) -> Iterator[Outcome]:
        known_epoch, end = reach
        if cluster.leader != other or b in cluster.in_sync or known_epoch != cluster.epoch:
            return
        if rules.caught_up(end, leads.high_watermark, cluster.elections[-1].start):
            after = cluster._replace(in_sync=cluster.in_sync | {b})
            yield Outcome(self._label("FollowerIsInSync", b), ((self.cluster, after),))

    # ---- environment --------------------------------------------------------------------------------------------

    def _write(self, b: int, broker: Broker, cluster: Cluster) -> Iterator[Outcome]:
        copy, memory = broker.copy, broker.memory
        if not cluster.led_by(b, broker) or not rules.has_loaded(broker) or copy.end == self.config.ends:
            return
        for number, key in enumerate(self.config.keys):
            for value in (*self.config.values, GONE):
                if value == GONE == memory.contents[number]:
                    continue
                row = Row(copy.end, broker.known_epoch, number, value)
                after = Broker(
                    broker.known_epoch,
                    copy._replace(rows=(*copy.rows, row), end=copy.end + 1),
                    Memory(replay([row], memory.contents), memory.upto + 1, memory.unanswered | {row.offset}),
                )
                yield Outcome(self._label("ClientWrites", b, key, value or "tombstone"), ((b, after),))

    def _time_out(self, b: int, broker: Broker) -> Iterator[Outcome]:
        for offset in sorted(broker.memory.unanswered):
            contents = rules.after_time_out(broker, offset)
            memory = broker.memory._replace(contents=contents, unanswered=broker.memory.unanswered - {offset})
            yield Outcome(self._label("WriteTimesOut", b, str(offset)), ((b, broker._replace(memory=memory)),))

    def _drop(self, action: str, b: int, broker: Broker, row: Row) -> Outcome:
        rows = tuple(each for each in broker.copy.rows if each != row)
        after = broker._replace(copy=broker.copy._replace(rows=rows))
        return Outcome(self._label(action, b, str(row.offset)), ((b, after),))

    def _drop_record(self, b: int, broker: Broker) -> Iterator[Outcome]:
        for row in below(broker.copy.rows, broker.copy.high_watermark):
            if rules.superseded(broker.copy, row):
                yield self._drop("CleanerDropsRecord", b, broker, row)

    def _drop_tombstone(self, b: int, broker: Broker, cluster: Cluster, *reaches: tuple[int, int]) -> Iterator[Outcome]:
        upto = ((broker.known_epoch, broker.copy.end), *reaches)
        loading = broker.memory.upto if cluster.led_by(b, broker) else None
        for row in below(broker.copy.rows, broker.copy.high_watermark):
            if row.value != GONE or not rules.has_no_older_records(broker.copy, row):
                continue
            if rules.every_broker_has_seen(row, upto, cluster.epoch, loading):
                yield self._drop("CleanerDropsTombstone", b, broker, row)

    def _fall_behind(self, b: int, cluster: Cluster) -> Iterator[Outcome]:
        if b in cluster.in_sync and b != cluster.leader:
            after = cluster._replace(in_sync=cluster.in_sync - {b})
            yield Outcome(self._label("FollowerFallsBehind", b), ((self.cluster, after),))

    def _elect(self, b: int, broker: Broker, cluster: Cluster) -> Iterator[Outcome]:
        if b in cluster.in_sync and b != cluster.leader and cluster.epoch < self.config.elections:
            after = Cluster((*cluster.elections, Election(b, broker.copy.end)), frozenset({b}))
            begins = Broker(after.epoch, broker.copy, self.empty_memory)
            yield Outcome(self._label("LeaderIsElected", b), ((b, begins), (self.cluster, after)))
