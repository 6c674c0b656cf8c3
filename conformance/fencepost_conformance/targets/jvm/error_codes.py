"""Kafka's error codes in the harness's output."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode

from .process import ProcessFault

_ERRORS = {int(code): code for code in ErrorCode}


def error_of(code: int) -> ErrorCode:
    """Return the error; raises ``ProcessFault`` for a code that is not in the rule book."""
    found = _ERRORS.get(code)
    if found is None:
        raise ProcessFault(f"Kafka answered with error code {code}, which is not in the rule book")
    return found
