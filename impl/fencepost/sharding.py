"""The partition of the offsets topic, and so the coordinator, to which a group belongs (F-LOC-01…05)."""

from __future__ import annotations

from functools import lru_cache


def java_hash(text: str) -> int:
    """Return Java's string hash as a signed 32-bit number, over UTF-16 code units (F-LOC-02)."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for index in range(0, len(units), 2):
        value = (31 * value + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


@lru_cache(maxsize=16_384)
def partition_for(group_id: str, partitions: int) -> int:
    """Return the partition, 0 to ``partitions`` - 1, that hosts the group (F-LOC-01).

    ``partitions`` must never change while groups exist (F-LOC-04). Raises ``ValueError`` if it is not positive.
    """
    if partitions < 1:
        raise ValueError(f"partitions must be >= 1 (got {partitions})")
    value = java_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partitions  # F-LOC-03
