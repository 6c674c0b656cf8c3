"""Simulations of whole groups in virtual time: real members, the real core, and an unreliable environment."""

from .broken import Broken
from .plan import Plan, draw_plan
from .report import Report
from .run import simulate

__all__ = ["Broken", "Plan", "Report", "draw_plan", "simulate"]
