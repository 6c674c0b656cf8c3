"""A coordinator in an asyncio program: awaitable requests, real timers, a store."""

from .choices import RandomChoices
from .coordinator import GroupCoordinator, Started, Stopped

__all__ = ["GroupCoordinator", "RandomChoices", "Started", "Stopped"]
