"""The coordinator's side of consumer groups (KIP-848)."""

from .group import ConsumerGroupModel, Successor
from .group_step import Environment
from .handle import Step
from .oracle import CanonicalOracle, Oracle
from .state import ConsumerGroup, ConsumerHeartbeat, Expire, Image, Member, Resolution, Resolve, Timer

__all__ = [
    "CanonicalOracle",
    "ConsumerGroup",
    "ConsumerGroupModel",
    "ConsumerHeartbeat",
    "Environment",
    "Expire",
    "Image",
    "Member",
    "Oracle",
    "Resolution",
    "Resolve",
    "Step",
    "Successor",
    "Timer",
]
