"""Numbers as records and messages hold them: they have a width, and go round at its ends as Java's do (G-VOC-04).

No group comes near the ends by itself: it would need two thousand million rebalances. But a log may contain such a
number, and a request may name any time to keep an offset. The records and answers must fit their fields all the same,
and the coordinator must do from there what Kafka's does.
"""

from __future__ import annotations


def next_epoch(number: int) -> int:
    """The generation or epoch after this one, a number of 32 bits (G-VOC-04, G-VOC-07)."""
    return _signed(number + 1, 32)


def time_after(at_ms: int, span_ms: int) -> int:
    """The time so long after that one, both in ms, a number of 64 bits (O-COMMIT-14)."""
    return _signed(at_ms + span_ms, 64)


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half
