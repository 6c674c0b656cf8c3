"""Numbers of a fixed width: what a sum is where it does not fit (G-VOC-04, O-COMMIT-14)."""

from __future__ import annotations


def next_epoch(epoch: int) -> int:
    """G-VOC-04, G-VOC-07: the next generation or epoch; 2^31 - 1 is followed by -2^31."""
    return epoch + 1 if epoch < 2**31 - 1 else -(2**31)


def expiry(now: int, retention: int) -> int:
    """O-COMMIT-14: when an offset is too old that is to be kept for so long; beyond 2^63 - 1 it is below zero."""
    return now + retention if now + retention < 2**63 else now + retention - 2**64
