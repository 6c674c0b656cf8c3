"""The rules by which the model explains each step of a trace."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost_model.trace import Follower

from ...traces.observation import Observation


def rules_of_steps(
    settings: Settings, profile: Profile, events: Sequence[Event], observations: Sequence[Observation]
) -> list[tuple[str, ...]]:
    """Return the rules of each step, up to and including the first step that the model rejects."""
    follower = Follower(settings, profile)
    rules = []
    for event, seen in zip(events, observations, strict=False):
        verdict = follower.feed(event, seen)
        rules.append(verdict.rules)
        if not verdict.ok:
            break
    return rules
