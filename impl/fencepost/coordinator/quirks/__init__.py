"""Deviations of Kafka releases from the intended behaviour, by layer. See ``fencepost.quirks``."""

from . import classic, consumer, kernel, mixed, offsets, values

__all__ = ["classic", "consumer", "kernel", "mixed", "offsets", "values"]
