"""What clients of Kafka do otherwise than intended, as members of either kind: ``fencepost.quirks`` says how."""

from . import classic, consumer

__all__ = ["classic", "consumer"]
