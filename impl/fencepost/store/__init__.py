"""Stores for coordinators' records. A ``Store`` is the log of one coordinator. A ``SharedStore`` has the logs of all
partitions of a broker, and the broker's other data."""

from .base import AppendError, Store
from .checking import Checked, check_file
from .kept import Change, DropBatches, Kept, Put, PutBatch
from .lease import NodeInUse, Peer, PostgresLease, Seen
from .memory import MemoryStore
from .postgres import PostgresStore
from .shared import PARTITIONS, ClosedStore, NotInStore, OnePartition, OtherPartitions, SharedStore, StoreError
from .shared_memory import SharedMemoryStore
from .sqlite import ForeignFile, LockedStore, NewerFormat, SQLiteStore
from .tables import DamagedStore
from .worker import InDoubt

__all__ = [
    "PARTITIONS",
    "AppendError",
    "Change",
    "Checked",
    "ClosedStore",
    "DamagedStore",
    "DropBatches",
    "ForeignFile",
    "InDoubt",
    "Kept",
    "LockedStore",
    "MemoryStore",
    "NewerFormat",
    "NodeInUse",
    "NotInStore",
    "OnePartition",
    "OtherPartitions",
    "Peer",
    "PostgresLease",
    "PostgresStore",
    "Put",
    "PutBatch",
    "SQLiteStore",
    "Seen",
    "SharedMemoryStore",
    "SharedStore",
    "Store",
    "StoreError",
    "check_file",
]
