"""Sums of fixed-width numbers that may overflow (G-VOC-04, O-COMMIT-14)."""

from __future__ import annotations


def next_epoch(epoch: int) -> int:
    """Return the next generation or epoch; 2^31 - 1 is followed by -2^31 (G-VOC-04, G-VOC-07)."""
    return epoch + 1 if epoch < 2**31 - 1 else -(2**31)


def expiry(now: int, retention: int) -> int:
    """Return when an offset with this retention expires, in ms; beyond 2^63 - 1 it wraps to below zero
    (O-COMMIT-14)."""
    return now + retention if now + retention < 2**63 else now + retention - 2**64
