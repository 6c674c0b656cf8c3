"""Kafka's own loader on a log on disk: records that it loads, skips, or fails on (F-LOAD-02, F-REC-26)."""

from .client import KafkaLoader, damaged_logs, differences, taken

__all__ = ["KafkaLoader", "damaged_logs", "differences", "taken"]
