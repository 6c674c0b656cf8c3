"""A broker that hosts many coordinators: one for each partition of the offsets topic. A group's name decides which
coordinator it has (F-LOC-01)."""

from .broker import Broker, OnPartition, Served, initial_broker, step
from .lookup import (
    Endpoint,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    KeyType,
    find_coordinator,
)
from .parts import merge, split

__all__ = [
    "Broker",
    "Endpoint",
    "FindCoordinatorRequest",
    "FindCoordinatorResponse",
    "FoundCoordinator",
    "KeyType",
    "OnPartition",
    "Served",
    "find_coordinator",
    "initial_broker",
    "merge",
    "split",
    "step",
]
