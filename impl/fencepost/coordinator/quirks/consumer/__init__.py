"""What Kafka does otherwise in consumer groups, by what it is about."""

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
