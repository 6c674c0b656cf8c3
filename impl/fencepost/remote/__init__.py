"""Groups of a Kafka broker, or of ``fencepost serve``, for workers of this program."""

from .cluster import Refused
from .groups import Groups
from .sasl import LoginFailed, Sasl

__all__ = ["Groups", "LoginFailed", "Refused", "Sasl"]
