"""The coordinator's side of consumer groups (KIP-848)."""

from .group import ConsumerGroupModel, Step, Successor
from .oracle import Canonical, Oracle
from .state import Beat, ConsumerGroup, Expire, Image, Member, Resolution, Resolve, Timer
from .turn import World

__all__ = [
    "Beat",
    "Canonical",
    "ConsumerGroup",
    "ConsumerGroupModel",
    "Expire",
    "Image",
    "Member",
    "Oracle",
    "Resolution",
    "Resolve",
    "Step",
    "Successor",
    "Timer",
    "World",
]
