"""The coordinator's side of classic groups."""

from .group import GroupModel, GroupState, Successor
from .state import AppendError, Arrive, Durable, Fire, Group, Lose, Member, Output, TimeOut, Timer

__all__ = [
    "AppendError",
    "Arrive",
    "Durable",
    "Fire",
    "Group",
    "GroupModel",
    "GroupState",
    "Lose",
    "Member",
    "Output",
    "Successor",
    "TimeOut",
    "Timer",
]
