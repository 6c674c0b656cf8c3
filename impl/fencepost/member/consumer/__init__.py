"""Members of consumer groups (KIP-848) as step functions."""

from fencepost.protocol.errors import IllegalEvent

from ..settings import ConsumerSettings
from .state import ConsumerMember, ConsumerState
from .step import consumer_step

__all__ = ["ConsumerMember", "ConsumerSettings", "ConsumerState", "IllegalEvent", "consumer_step"]
