"""The exception of a schedule in which a promise does not hold."""

from __future__ import annotations


class Broken(AssertionError):
    """A promise that did not hold; the message says which, with the values that were seen."""
