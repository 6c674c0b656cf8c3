"""The scenarios that members of recorded groups play. Each ends when every member has left."""

from . import (
    administration,
    assignors,
    consumer,
    consumer_static,
    consumer_topics,
    crashes,
    delays,
    history,
    membership,
    mixed,
    offsets,
    rejoining,
    static,
    transactions,
)
from .scenario import ALL, SCENARIOS, Scenario

__all__ = [
    "ALL",
    "SCENARIOS",
    "Scenario",
    "administration",
    "assignors",
    "consumer",
    "consumer_static",
    "consumer_topics",
    "crashes",
    "delays",
    "history",
    "membership",
    "mixed",
    "offsets",
    "rejoining",
    "static",
    "transactions",
]
