"""Deviations of Kafka in consumer groups, by subject."""

from . import epochs, identity, intervals, lingering, mapping, partition_metadata, reconcile, regex, target

__all__ = [
    "epochs",
    "identity",
    "intervals",
    "lingering",
    "mapping",
    "partition_metadata",
    "reconcile",
    "regex",
    "target",
]
