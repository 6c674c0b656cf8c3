"""Stores for coordinators' records: the logs of all partitions of a host, and the host's other data."""

from .base import AppendError, ClosedStore, NotInStore, OtherPartitions, Store, StoreError
from .checking import Checked, check_file
from .kept import Change, DropBatches, Kept, Put, PutBatch
from .lease import NodeInUse, Peer, PostgresLease, Seen
from .memory import MemoryStore
from .postgres import PostgresStore
from .sqlite import ForeignFile, LockedStore, NewerFormat, SQLiteStore
from .tables import DamagedStore
from .worker import InDoubt

__all__ = [
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
    "OtherPartitions",
    "Peer",
    "PostgresLease",
    "PostgresStore",
    "Put",
    "PutBatch",
    "SQLiteStore",
    "Seen",
    "Store",
    "StoreError",
    "check_file",
]
