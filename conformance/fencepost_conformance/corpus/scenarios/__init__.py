"""What the members of a recorded group do. Each scenario ends with every member gone."""

from . import assignors, crashes, delays, history, membership, rejoining, static
from .scenario import ALL, SCENARIOS, Scenario

__all__ = [
    "ALL",
    "SCENARIOS",
    "Scenario",
    "assignors",
    "crashes",
    "delays",
    "history",
    "membership",
    "rejoining",
    "static",
]
