"""Deviations of Kafka in consumer groups, by subject."""

from . import assignments, members, topics

__all__ = ["assignments", "members", "topics"]
