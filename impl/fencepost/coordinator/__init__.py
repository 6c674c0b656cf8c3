"""The group coordinator as a pure function: ``step(state, event, choices) -> (state, outcome)``."""

from fencepost.protocol.errors import IllegalEvent

from . import quirks
from .dispatch import step
from .kernel.state import CoordinatorState, initial_state
from .replay import replay
from .views import consumer_view, consumer_views, offsets_view, view, views

__all__ = [
    "CoordinatorState",
    "IllegalEvent",
    "consumer_view",
    "consumer_views",
    "initial_state",
    "offsets_view",
    "quirks",
    "replay",
    "step",
    "view",
    "views",
]
