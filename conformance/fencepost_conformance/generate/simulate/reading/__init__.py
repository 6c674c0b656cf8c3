"""One consumer that reads in a small cluster: random walks, with each step checked against a ledger."""

from .ledger import Ledger
from .world import World, walk

__all__ = ["Ledger", "World", "walk"]
