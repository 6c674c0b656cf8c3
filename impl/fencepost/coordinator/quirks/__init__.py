"""Deviations of Kafka releases from the intended behaviour, by layer. See ``fencepost.quirks``."""

from . import classic, conversion, deletion, kernel, loading, mixed, offsets, targets, timers, topics, values

__all__ = [
    "classic",
    "conversion",
    "deletion",
    "kernel",
    "loading",
    "mixed",
    "offsets",
    "targets",
    "timers",
    "topics",
    "values",
]
