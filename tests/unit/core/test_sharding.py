"""Groups are spread over partitions as Kafka spreads them."""

from __future__ import annotations

import pytest

from fencepost.sharding import java_hash, partition_for


@pytest.mark.parametrize(
    ("group_id", "value", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("group", 98629247, 47),
        ("test-group", 627841412, 12),
        ("my-group", -1906497762, 12),
        ("polygenelubricants", -2147483648, 0),
        ("\U0001d4b3", 1772318, 18),
    ],
)
def test_values_of_the_rule_book(group_id: str, value: int, partition: int) -> None:
    """The values were computed by Kafka's own classes (F-LOC-05, F-LOC-01…03)."""
    assert java_hash(group_id) == value
    assert partition_for(group_id, 50) == partition


def test_a_topic_without_partitions_is_refused() -> None:
    with pytest.raises(ValueError, match="partitions must be >= 1"):
        partition_for("group", 0)
