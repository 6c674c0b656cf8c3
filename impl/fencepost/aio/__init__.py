"""Coordinators in an asyncio program: awaitable requests, real timers, a store."""

from .broker import GroupBroker, Started, Stopped
from .choices import RandomChoices
from .engine import Counts

__all__ = ["Counts", "GroupBroker", "RandomChoices", "Started", "Stopped"]
