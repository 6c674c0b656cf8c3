"""The kinds of step that every trace has, for clients of any protocol: time, the log, changes of leadership."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import accumulate
from random import Random

from fencepost.protocol.events import AppendFailed, Load, TimerFired
from fencepost.protocol.records import Record

from .cleaner import Log, Reading, compacted, readings
from .world import World

#: more than any timeout and interval of a usual group; a day, and the limits of a 32-bit number of ms (G-CFG-27)
_LONG = (700_000, 3_600_000, 86_400_000, 2_147_483_647, 2_147_483_648, 5_000_000_000)
#: how often a kind of step is drawn, and its action
Weighted = tuple[float, Callable[[], None]]


class Steps(ABC):
    """Draws the steps of one trace."""

    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng

    @abstractmethod
    def _weighted(self) -> list[Weighted]:
        """Return the kinds of step while the partition is owned."""

    @abstractmethod
    def _client(self) -> None:
        """Let a client do its next action; if all clients wait, let time pass."""

    @abstractmethod
    def forge(self) -> None:
        """Send a request that no well-behaved client would send now."""

    @abstractmethod
    def _admin(self) -> None:
        """Describe, list or delete groups as an administrator."""

    @abstractmethod
    def preloaded(self) -> list[Record]:
        """Return the contents of the log when the first coordinator loads it."""

    def run(self, steps: int, between: Callable[[World], None] | None = None) -> None:
        """Run steps until the trace has so many events; ``between`` is called before each of them."""
        world, rng = self._world, self._rng
        # not stored: bound methods would keep the whole trace alive until a garbage collection
        weighted = self._weighted()
        kinds, weights = [kind for _, kind in weighted], [*accumulate(weight for weight, _ in weighted)]
        if rng.random() < 0.03:  # requests before the partition is owned (F-RT-02)
            self._client()
            self.forge()
        self._begin()
        while len(world.events) < steps:
            if between is not None:
                between(world)
            due = world.due()
            if due and rng.random() >= world.plan.mood.late_timers:
                world.feed(TimerFired(world.now, rng.choice(due)))
            elif not world.owned:
                self._not_owned()
            else:
                rng.choices(kinds, cum_weights=weights)[0]()
            self._befalls()

    def _begin(self) -> None:
        world, rng = self._world, self._rng
        records = self.preloaded() if world.plan.preloaded else []
        if rng.random() < 0.1:
            world.start_loading()
            if rng.random() < 0.5:
                self._client()
        world.load(records)

    def _wait(self) -> None:
        """Let time pass: a little, to just before the next deadline, to it, or beyond it."""
        world, rng = self._world, self._rng
        deadline = world.next_deadline()
        if world.plan.wide.long_waits and rng.random() < world.plan.wide.long_waits:
            world.now += rng.choice(_LONG)
            return
        draw = rng.random()
        if deadline is None or draw < 0.15:
            world.now += rng.choice((1, 10, 500, 1_000, 3_000))
        elif draw < 0.30:
            world.now = max(world.now, deadline - 1)
        elif draw < 0.85:
            world.now = deadline
        else:
            world.now = deadline + rng.choice((1, 100, 5_000))

    def _replicate(self) -> None:
        world, rng = self._world, self._rng
        if not world.unreplicated:
            return self._client()
        end = len(world.log)
        return world.replicate(end if rng.random() < 0.7 else self._some_end(world.replicated + 1))

    def _some_end(self, least: int) -> int:
        """Draw an offset, at least ``least``, that replication can have reached: it handles whole batches."""
        drawn = self._rng.randint(least, len(self._world.log))
        return next(end for end in self._world.ends if end >= drawn)

    def _fail_over(self) -> None:
        known = self._rng.random() < 0.8
        self._world.lose(known_epoch=known, epoch=self._odd_epoch() if known else None)

    def _befalls(self) -> None:
        """Let something happen to a coordinator: the loss of the partition, or an election without effect because it is
        late or a duplicate."""
        world, rng, wide = self._world, self._rng, self._world.plan.wide
        if wide.abrupt and rng.random() < wide.abrupt:
            self._fail_over()
        if wide.burst and isinstance(world.events[-1], AppendFailed) and rng.random() < 0.25:
            self._fail_over()
        if wide.odd_epochs and rng.random() < 0.05:
            epoch = self._odd_epoch()
            if epoch is not None and rng.random() < 0.5:
                world.load(self._surviving()[0], epoch)
            else:
                world.start_loading(epoch)

    def _odd_epoch(self) -> int | None:
        """Return an epoch that has been used before; None: the next one."""
        world, rng = self._world, self._rng
        if world.plan.wide.odd_epochs and rng.random() < world.plan.wide.odd_epochs:
            return max(0, world.epoch - rng.choice((0, 0, 0, 1, 1, 2, 5)))
        return None

    def beside(self) -> None:
        """Do something unrelated to the partition's leader."""
        self._befalls()

    def _not_owned(self) -> None:
        """Act between losing the partition and having loaded it again."""
        world, rng = self._world, self._rng
        wide = world.plan.wide
        if (wide.abrupt or wide.late_tasks) and rng.random() < 0.25:
            self.beside()
            return
        draw = rng.random()
        if draw < 0.3:
            self._client()
        elif draw < 0.4:
            self.forge()
        elif draw < 0.45:
            self._admin()
        elif not world.loading and draw < 0.7:
            world.start_loading(self._odd_epoch())
        elif world.loading and draw < 0.5:
            world.fail_loading()
        else:
            epoch = None
            if not world.loading:
                epoch = self._odd_epoch()
                world.epoch += epoch is None
            records, disk = self._surviving()
            world.load(records, epoch, disk)

    def _surviving(self) -> tuple[Sequence[Record], Log | None]:
        """Return what the next coordinator loads, perhaps without unreplicated records, perhaps compacted; and the log
        on disk if that differs."""
        world, rng = self._world, self._rng
        if world.plan.wide.cleaned:
            return self._cleaned()
        log = world.log[: self._some_end(world.replicated)] if rng.random() < 0.5 else list(world.log)
        if rng.random() < 0.5:
            log = list(compacted(log, tombstones=rng.random() < 0.5))
        return log, None

    def _cleaned(self) -> tuple[Sequence[Record], Log]:
        """Return the same while a log cleaner works."""
        world, rng = self._world, self._rng
        end = self._some_end(world.replicated) if rng.random() < 0.5 else len(world.log)
        keep = len(world.disk.records) - (len(world.log) - end)
        disk = world.disk._replace(records=world.disk.records[:keep], batches=world.disk.batches[:keep])
        ways = readings(disk, rng)
        way = rng.choice([*Reading]) if rng.random() < world.plan.wide.cleaned else Reading.WHOLE
        # a reader that read the beginning as it was finds it rewritten the next time
        left = Reading.PARTLY if way is Reading.WHILE_READ else way
        return ways[way], disk.after(Load(world.now, leader_epoch=world.epoch, records=ways[left]), ())
