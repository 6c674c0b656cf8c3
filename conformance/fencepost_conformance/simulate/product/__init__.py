"""Product exploration (E2): every transition of a bounded configuration, taken on the real core and on the model."""

from .both import Both
from .bounds import Bounds, Client, Explored
from .search import explore

__all__ = ["Both", "Bounds", "Client", "Explored", "explore"]
