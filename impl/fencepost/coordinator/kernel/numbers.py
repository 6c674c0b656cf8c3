"""Numbers of records and messages: they have a width, and wrap around as Java's do (G-VOC-04).

No group reaches the limits by itself: it would need two thousand million rebalances. But a log may contain such a
number, and a request may ask for any retention time. The records and answers must still fit their fields, and the
coordinator must then continue as Kafka's does.
"""

from __future__ import annotations


def next_epoch(number: int) -> int:
    """The generation or epoch after this one, a number of 32 bits (G-VOC-04, G-VOC-07)."""
    return _signed(number + 1, 32)


def time_after(at_ms: int, span_ms: int) -> int:
    """The time ``span_ms`` after ``at_ms``, a number of 64 bits (O-COMMIT-14)."""
    return _signed(at_ms + span_ms, 64)


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half
