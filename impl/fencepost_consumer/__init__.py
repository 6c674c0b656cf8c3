"""The reader of a consumer as a step function: subscription, positions, fetches, polls and commits."""

from fencepost_consumer import quirks
from fencepost_consumer.calls import poll_by
from fencepost_consumer.settings import Client, ReaderSettings, Reset, ResetPolicy, reset_policy
from fencepost_consumer.state import Reader
from fencepost_consumer.step import step

__all__ = ["Client", "Reader", "ReaderSettings", "Reset", "ResetPolicy", "poll_by", "quirks", "reset_policy", "step"]
