"""Group members as step functions, and the assignors that a leader runs."""

from fencepost.protocol.errors import IllegalEvent

from . import quirks
from .settings import MemberSettings
from .state import Member, MemberState
from .step import step

__all__ = ["IllegalEvent", "Member", "MemberSettings", "MemberState", "quirks", "step"]
