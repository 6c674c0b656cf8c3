"""Where coordinators' records go. A ``Store`` is the log of one coordinator, a ``SharedStore`` those of all partitions
of a broker, and what the broker keeps beside them."""

from .base import AppendError, Store
from .kept import Change, DropBatches, Kept, Put, PutBatch
from .memory import MemoryStore
from .shared import PARTITIONS, ClosedStore, OtherPartitions, SharedStore, StoreError
from .shared_memory import SharedMemoryStore

__all__ = [
    "PARTITIONS",
    "AppendError",
    "Change",
    "ClosedStore",
    "DropBatches",
    "Kept",
    "MemoryStore",
    "OtherPartitions",
    "Put",
    "PutBatch",
    "SharedMemoryStore",
    "SharedStore",
    "Store",
    "StoreError",
]
