"""One broker: its coordinators, its copies of the logs, and the leaders that it knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencepost import host
from fencepost import log as lg
from fencepost.functions import KafkaFunctions
from fencepost.protocol.choices import Choices
from fencepost.protocol.events import (
    CancelTimer,
    Event,
    Outcome,
    Request,
    SetTimer,
    TimerFired,
    TimerKey,
    TopicsChanged,
)
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

#: A timer of a coordinator: its broker, its partition, its key.
Timer = tuple[int, int, TimerKey]


@dataclass
class Led:
    """A partition that the broker believes to lead, in this ``epoch``.

    ``length`` is the number of loaded records and ``end`` the end of the log at that time; ``length`` is None until the
    load is done. ``high_watermark``: as the coordinator knows it. ``ends``: how far each follower has fetched,
    by broker. ``in_sync``: the in-sync copies, as the broker knows them."""

    epoch: int
    in_sync: frozenset[int]
    length: int | None = None
    end: int = 0
    high_watermark: int = 0
    ends: dict[int, int] = field(default_factory=dict)


class Node:
    """A broker. ``view``: by partition, the newest epoch that it has learnt of, and the leader in it."""

    def __init__(self, number: int, partitions: int, settings: Settings, profile: Profile, choices: Choices) -> None:
        self.number = number
        self.alive = True
        self.life = 0  #: number of restarts
        self.logs = [lg.PartitionLog() for _ in range(partitions)]
        self.view: dict[int, tuple[int, int]] = {}
        self.led: dict[int, Led] = {}
        self.armed: dict[Timer, int] = {}
        self._made = (partitions, settings, profile)
        self._choices = choices
        self.broker = host.initial_broker(*self._made, functions=KafkaFunctions())

    def restart(self) -> None:
        """Forget everything but the logs."""
        self.alive = True
        self.life += 1
        self.view, self.led, self.armed = {}, {}, {}
        self.broker = host.initial_broker(*self._made, functions=KafkaFunctions())

    def step(self, event: host.OnPartition | Request | TopicsChanged) -> host.Served:
        """Run one step of all its coordinators and keep their timers."""
        self.broker, served = host.step(self.broker, event, self._choices)
        inner: Any = event.event if isinstance(event, host.OnPartition) else event
        for part, outcome in served.parts:
            self._timers(part, inner, outcome)
        return served

    def on(self, partition: int, event: Event) -> host.Served:
        """Run a step for one partition."""
        return self.step(host.OnPartition(partition, event))

    def leads(self, partition: int) -> bool:
        """Whether it has loaded the partition and believes to lead it."""
        led = self.led.get(partition)
        return self.alive and led is not None and led.length is not None

    def _timers(self, partition: int, event: Event, outcome: Outcome) -> None:
        if isinstance(event, TimerFired):
            self.armed.pop((self.number, partition, event.key), None)
        for command in outcome.timers:
            timer = self.number, partition, command.key
            if isinstance(command, SetTimer):
                self.armed[timer] = event.at_ms + command.delay_ms
            elif isinstance(command, CancelTimer):
                self.armed.pop(timer, None)
