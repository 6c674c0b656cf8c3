"""Kafka's coordinator, fed one event at a time while a trace is made: every event runs the whole trace so far again."""

from __future__ import annotations

from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import IMPOSSIBLE
from fencepost.protocol.events import Event, TimerKey
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView
from fencepost_conformance.targets.kafka_jvm import KafkaJvm
from fencepost_conformance.traces.observation import Observation


class JvmSession:
    """The coordinator that the generator needs, answered by Kafka itself."""

    def __init__(self, kafka: KafkaJvm, settings: Settings) -> None:
        self._kafka = kafka
        self._settings = settings
        self._events: list[Event] = []
        self.armed: dict[TimerKey, int] = {}
        self.groups: dict[str, GroupView] = {}
        self.consumer_groups: dict[str, ConsumerGroupView] = {}

    def feed(self, event: Event) -> Observation:
        self._events.append(event)
        seen = self._kafka.run(self._settings, INTENDED, self._events)[-1]
        _follow(self.armed, seen.timers)
        _follow(self.groups, seen.groups)
        _follow(self.consumer_groups, seen.consumer_groups)
        if seen.error in IMPOSSIBLE:
            raise AssertionError(f"{event} cannot happen: {seen.error}")
        return seen


def _follow(known, changes) -> None:  # type: ignore[no-untyped-def]
    for key, value in changes.items():
        if value is None:
            known.pop(key, None)
        else:
            known[key] = value
