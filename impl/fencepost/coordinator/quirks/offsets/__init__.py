"""What Kafka does otherwise with offsets, by what it is about."""

from . import commits, deletion, reads, replay

__all__ = ["commits", "deletion", "reads", "replay"]
