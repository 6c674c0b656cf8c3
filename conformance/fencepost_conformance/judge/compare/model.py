"""The model along a trace: whether it allows what the core did, up to the first step that it rejects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fencepost.functions import KafkaFunctions
from fencepost.protocol.events import Event
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost_model.trace import Follower

from ...traces.observation import Observation
from .difference import Difference, show

_FUNCTIONS = KafkaFunctions()


@dataclass(frozen=True, slots=True)
class Followed:
    """``steps`` were accepted; ``refused`` is the step after them, if the model does not allow it, and ``rules`` are
    those that decide there."""

    steps: int
    refused: Difference | None = None
    rules: tuple[str, ...] = ()


def follow(
    settings: Settings, profile: Profile, events: Sequence[Event], observations: Sequence[Observation]
) -> Followed:
    """Let the model follow the trace as far as there are observations."""
    follower = Follower(settings, profile, _FUNCTIONS.matcher)
    for index, (event, seen) in enumerate(zip(events, observations, strict=False)):
        verdict = follower.feed(event, seen)
        if verdict.ok:
            continue
        closest = verdict.alternatives[0].mismatches if verdict.alternatives else ()
        if not closest:
            return Followed(index, Difference(index, "model", "", verdict.reason), verdict.rules)
        first = closest[0]
        return Followed(
            index, Difference(index, f"model: {first.part}", show(first.observed), show(first.expected)), verdict.rules
        )
    return Followed(min(len(events), len(observations)))
