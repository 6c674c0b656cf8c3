"""What releases of Kafka do otherwise than intended, layer by layer: ``fencepost.quirks`` says how."""

from . import classic, consumer

__all__ = ["classic", "consumer"]
