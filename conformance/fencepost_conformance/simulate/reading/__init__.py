"""One consumer that reads, in a small cluster of its own: random walks, each step held against a ledger."""

from .ledger import Ledger
from .world import World, walk

__all__ = ["Ledger", "World", "walk"]
