"""The group coordinator as a pure function: ``step(state, event, choices) -> (state, outcome)``."""

from fencepost.protocol.errors import IllegalEvent

from . import quirks
from .dispatch import step
from .kernel.state import CoordinatorState, initial_state
from .replay import replay
from .views import committed_offset, consumer_view, consumer_views, group_view, offsets_view, view, views

__all__ = [
    "CoordinatorState",
    "IllegalEvent",
    "committed_offset",
    "consumer_view",
    "consumer_views",
    "group_view",
    "initial_state",
    "offsets_view",
    "quirks",
    "replay",
    "step",
    "view",
    "views",
]
