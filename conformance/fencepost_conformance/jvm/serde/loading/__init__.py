"""Kafka's own loader on a log on disk: what it takes, what it passes over, what fails a load (F-LOAD-02, F-REC-26)."""

from .client import KafkaLoader, damaged_logs, differences, taken

__all__ = ["KafkaLoader", "damaged_logs", "differences", "taken"]
