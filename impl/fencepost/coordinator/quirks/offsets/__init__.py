"""Deviations of Kafka with offsets, by subject."""

from . import commits, deletion, reads, replay

__all__ = ["commits", "deletion", "reads", "replay"]
