"""Kafka's own client assignors and embedded consumer protocol, in a JVM."""

from .client import KafkaAssignors

__all__ = ["KafkaAssignors"]
