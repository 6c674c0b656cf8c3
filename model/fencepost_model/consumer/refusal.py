"""A request that is answered with an error and changes nothing."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode


class Refused(Exception):
    """The error of the answer, and the rule that decides it."""

    def __init__(self, error: ErrorCode, rule: str) -> None:
        super().__init__(error, rule)
        self.error = error
        self.rule = rule


class CannotHappen(Exception):
    """A condition that the coordinator takes for impossible: an internal error (F-REPLAY-13)."""
