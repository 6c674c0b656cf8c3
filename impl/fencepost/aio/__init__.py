"""Coordinators in an asyncio program: awaitable requests, real timers, a store. ``GroupBroker`` hosts many of them over
one store, ``GroupCoordinator`` one."""

from .broker import GroupBroker
from .choices import RandomChoices
from .coordinator import GroupCoordinator, Started, Stopped
from .engine import Counts

__all__ = ["Counts", "GroupBroker", "GroupCoordinator", "RandomChoices", "Started", "Stopped"]
