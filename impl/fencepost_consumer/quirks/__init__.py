"""Differences of Kafka's consumers from the intended protocol when they read and commit; see ``fencepost.quirks``."""

from fencepost_consumer.quirks import commits, reading, values

__all__ = ["commits", "reading", "values"]
