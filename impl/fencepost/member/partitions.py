"""Partitions and their orders, as the assignors of this package take and give them."""

from fencepost.protocol.partitions import TopicPartition, java_order, partition_order

__all__ = ["TopicPartition", "java_order", "partition_order"]
