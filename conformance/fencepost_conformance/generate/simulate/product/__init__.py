"""Product exploration (E2): takes every transition of a bounded configuration on the real core and on the model."""

from .both import Both
from .bounds import Bounds, Client, Explored
from .search import explore

__all__ = ["Both", "Bounds", "Client", "Explored", "explore"]
