"""Kafka's own ``SubscriptionState`` beside the reader's partitions: the same calls, compared after each."""

from .compare import Difference, KafkaPositions, differences, walk

__all__ = ["Difference", "KafkaPositions", "differences", "walk"]
