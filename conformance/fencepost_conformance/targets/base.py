"""The interface of a target: events in, observations out, one observation an event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings

from ..traces.observation import Observation


class Target(Protocol):
    """Anything that takes a whole trace of events and returns its observation of each."""

    name: str

    def run(self, settings: Settings, profile: Profile, events: Sequence[Event]) -> list[Observation]:
        """Start anew, handle the events in order, and return one observation for each event."""

    def close(self) -> None: ...
