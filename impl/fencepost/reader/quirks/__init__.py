"""Differences of Kafka's consumers from the intended protocol when they read and commit; see ``fencepost.quirks``."""

from . import commits, reading

__all__ = ["commits", "reading"]
