"""The exception of a schedule in which a guarantee does not hold."""

from __future__ import annotations


class Broken(AssertionError):
    """A guarantee does not hold; the message says which, with the observed values."""
