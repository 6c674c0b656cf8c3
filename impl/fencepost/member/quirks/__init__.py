"""Differences of Kafka's clients from the intended protocol, for both kinds of member; see ``fencepost.quirks``."""

from . import classic, consumer

__all__ = ["classic", "consumer"]
