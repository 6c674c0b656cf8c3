"""Kafka's own serde of the group coordinator's records, in a JVM; the project's codec is compared with it."""

from .client import KafkaSerde

__all__ = ["KafkaSerde"]
