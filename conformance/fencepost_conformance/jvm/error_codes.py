"""Kafka's error codes in what the harness tells."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode

from .process import ProcessFault

_ERRORS = {int(code): code for code in ErrorCode}


def error_of(code: int) -> ErrorCode:
    """Raises ``ProcessFault`` for a code that no rule of groups names."""
    found = _ERRORS.get(code)
    if found is None:
        raise ProcessFault(f"Kafka answered with error code {code}, which no rule of groups names")
    return found
