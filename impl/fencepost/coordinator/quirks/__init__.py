"""What releases of Kafka do otherwise than intended, layer by layer: ``fencepost.quirks`` says how."""

from . import classic, consumer, conversion, deletion, kernel, loading, mixed, offsets, timers

__all__ = ["classic", "consumer", "conversion", "deletion", "kernel", "loading", "mixed", "offsets", "timers"]
