"""Differences of Kafka's clients from the intended protocol, for both kinds of member; see ``fencepost.quirks``."""

from . import consumer, values

__all__ = ["consumer", "values"]
