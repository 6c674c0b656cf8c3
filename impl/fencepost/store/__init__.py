"""Where a coordinator's records go. A store is the log of one coordinator."""

from .base import AppendError, Store
from .memory import MemoryStore

__all__ = ["AppendError", "MemoryStore", "Store"]
