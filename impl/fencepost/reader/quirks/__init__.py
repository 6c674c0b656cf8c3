"""What Kafka's consumers do otherwise than intended when they read and commit: ``fencepost.quirks`` says how."""

from . import commits, reading

__all__ = ["commits", "reading"]
