"""Whole groups in virtual time: real members, the real core, and a bad environment."""

from .broken import Broken
from .plan import Plan, draw_plan
from .run import Report, simulate

__all__ = ["Broken", "Plan", "Report", "draw_plan", "simulate"]
