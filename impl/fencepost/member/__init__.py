"""Group members as step functions, and the assignors that a leader runs."""

from .settings import MemberSettings
from .state import Member, MemberState
from .step import step
from .turn import IllegalEvent

__all__ = ["IllegalEvent", "Member", "MemberSettings", "MemberState", "step"]
