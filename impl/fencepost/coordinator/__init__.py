"""The group coordinator as a pure function: ``step(state, event, choices) -> (state, outcome)``."""

from fencepost.protocol.errors import IllegalEvent

from .replay import replay
from .state import CoordinatorState, initial_state
from .step import step
from .views import consumer_view, consumer_views, view, views

__all__ = [
    "CoordinatorState",
    "IllegalEvent",
    "consumer_view",
    "consumer_views",
    "initial_state",
    "replay",
    "step",
    "view",
    "views",
]
