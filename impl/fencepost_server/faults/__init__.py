"""Fault injection, for authors of clients: answers are lost, late, duplicated and out of order, connections break, the
coordinator moves, writes fail, and requests are rejected with chosen error codes."""

from fencepost_server.faults.hostile import Hostile
from fencepost_server.faults.plan import BadPlan, Fault, Plan, by_seed, parse

__all__ = ["BadPlan", "Fault", "Hostile", "Plan", "by_seed", "parse"]
