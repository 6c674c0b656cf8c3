"""What the members of a recorded group do. Each scenario ends with every member gone."""

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
