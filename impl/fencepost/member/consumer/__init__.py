"""Members of consumer groups (KIP-848) as step functions."""

from ..settings import ConsumerSettings
from ..turn import IllegalEvent
from .state import ConsumerMember, ConsumerState
from .step import step

__all__ = ["ConsumerMember", "ConsumerSettings", "ConsumerState", "IllegalEvent", "step"]
