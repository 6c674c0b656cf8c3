"""Deviations of Kafka releases from the intended behaviour, by layer. See ``fencepost.quirks``."""

from . import classic, consumer, conversion, deletion, kernel, loading, mixed, offsets, timers, values

__all__ = ["classic", "consumer", "conversion", "deletion", "kernel", "loading", "mixed", "offsets", "timers", "values"]
