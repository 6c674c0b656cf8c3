"""The broker around the coordinator: its log, topics and background tasks, and changes of the partition's leader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Load,
    LoadStarted,
    TaskDone,
    TaskKey,
    Topic,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.records import Record

from ...traces.observation import Observation
from ..world import APPEND_ERRORS
from .world import World


class Logged(Protocol):
    """A coordinator with its log: the records in order."""

    log: list[Record]


class Broker:
    """A broker. ``leader_epoch`` counts the brokers that have led the partition; ``active``: one of them leads it
    now."""

    def __init__(self, world: World, core: Logged, topics: Mapping[str, int]) -> None:
        self.core = core
        self.topics = {name: Topic(name, name.encode().ljust(16, b"\0"), size) for name, size in topics.items()}
        self.leader_epoch = 0
        self.active = False
        self._world = world
        self._rng = world.rng
        self._replicated = 0
        #: length of the log after each batch that this broker wrote
        self._ends: list[int] = []
        self._image = 0

    def carry_out(self, seen: Observation) -> None:
        """Carry out what a step asks for apart from its answers."""
        if seen.records:
            self._append()
        for key in seen.tasks:
            self._run_task(key)

    def publish_topics(self) -> None:
        self._image += 1
        self._world.feed(TopicsChanged(self._world.now, tuple(self.topics.values()), version=self._image))

    def _run_task(self, key: TaskKey) -> None:
        leader_epoch = self.leader_epoch

        def done() -> None:
            if leader_epoch == self.leader_epoch and self.active:
                self._world.feed(TaskDone(self._world.now, key))

        self._world.later(self._world.network.delay(), done)

    def _append(self) -> None:
        draw, plan, leader_epoch, end = (
            self._rng.random(),
            self._world.network.plan,
            self.leader_epoch,
            len(self.core.log),
        )
        if draw < plan.append_fails:
            self._world.feed(AppendFailed(self._world.now, self._rng.choice(APPEND_ERRORS)))
            return
        self._ends.append(end)
        draw -= plan.append_fails
        if draw < plan.append_slow:
            delay = self._world.plan.settings.offsets_commit_timeout_ms + self._rng.randint(1, 3_000)
        elif draw < plan.append_slow + plan.append_waits:
            delay = self._rng.randint(1, 2 * plan.delay_ms)
        else:
            self._replicate(leader_epoch, end)
            return
        self._world.later(delay, lambda: self._replicate(leader_epoch, end))

    def _replicate(self, leader_epoch: int, offset: int) -> None:
        if leader_epoch == self.leader_epoch and self.active and self._replicated < offset <= len(self.core.log):
            self._replicated = offset
            self._world.feed(Appended(self._world.now, offset=offset))

    def replicate_all(self) -> None:
        if self.active:
            self._replicate(self.leader_epoch, len(self.core.log))

    def load(self, kept: int) -> None:
        """Let the next broker load the partition, with the first ``kept`` records."""
        self.leader_epoch += 1
        self.active = True
        self._replicated, self._ends = kept, []
        if self._rng.random() < 0.5:
            self._world.feed(LoadStarted(self._world.now, leader_epoch=self.leader_epoch))
        self._world.feed(Load(self._world.now, leader_epoch=self.leader_epoch, records=tuple(self.core.log[:kept])))

    def fail_over(self, gap_ms: int) -> None:
        """Lose the partition and win it again after ``gap_ms``; ``liveness`` checks that the groups continue (LIV-09).

        Some unreplicated records may survive. The records of one step survive together or not at all: they are one
        batch."""
        if not self.active:
            return
        self.active = False
        reached = self._rng.randint(self._replicated, len(self.core.log))
        kept = max(end for end in (self._replicated, *self._ends) if end <= reached)
        self._world.feed(Unload(self._world.now, leader_epoch=None))
        self._world.later(gap_ms, lambda: self.load(kept))
