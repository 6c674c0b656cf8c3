"""Partitions and their orders, as this package's assignors use them."""

from fencepost.protocol.partitions import (
    TopicPartition,
    java_order,
    java_sorted,
    partition_order,
    partitions_of,
    static_first,
)

__all__ = ["TopicPartition", "java_order", "java_sorted", "partition_order", "partitions_of", "static_first"]
