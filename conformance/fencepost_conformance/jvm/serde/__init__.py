"""Kafka's own serde of the group coordinator's records, in a JVM: what the project's codec is held against."""

from .client import KafkaSerde

__all__ = ["KafkaSerde"]
