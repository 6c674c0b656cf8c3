"""Partitions, and the orders in which Kafka's clients sort topics and members."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of a topic. Compares by code points; for Kafka's order use ``java_order`` as sort key."""

    topic: str
    partition: int


def java_order(text: str) -> bytes:
    """Sort key with the order of Java strings, which compare UTF-16 code units (A-COM-02)."""
    return text.encode("utf-16-be", "surrogatepass")


def partition_order(partition: TopicPartition) -> tuple[bytes, int]:
    """By topic name, then number."""
    return java_order(partition.topic), partition.partition
