"""A server that misbehaves on request, for authors of clients: answers are lost, late, doubled and out of order,
connections break, the coordinator moves, writes fail, and requests are refused with chosen codes."""

from .hostile import Hostile
from .plan import BadPlan, Fault, Plan, by_seed, parse

__all__ = ["BadPlan", "Fault", "Hostile", "Plan", "by_seed", "parse"]
