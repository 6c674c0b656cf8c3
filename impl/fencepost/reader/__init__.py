"""The reader of a consumer as a step function: subscription, positions, fetches, polls and commits."""

from . import quirks
from .calls import poll_by
from .settings import Client, ReaderSettings, Reset, ResetPolicy, reset_policy
from .state import Reader
from .step import step

__all__ = ["Client", "Reader", "ReaderSettings", "Reset", "ResetPolicy", "poll_by", "quirks", "reset_policy", "step"]
