"""``fencepost`` with a fault that brokers have had: ``python faulty_serve.py FAULT serve …``."""

from __future__ import annotations

import sys
from typing import Any

from fencepost.coordinator import dispatch
from fencepost.coordinator.offsets import validation
from fencepost.protocol.errors import ErrorCode
from fencepost_conformance.cli import main


def let_in(error: ErrorCode) -> None:
    """Requests that would be refused with this error reach the group."""
    refused = dispatch._refused

    def patched(state: Any, event: Any) -> Any:
        found = refused(state, event)
        return (None, "") if found[0] is error else found

    dispatch._refused = patched


def commits_are_not_fenced() -> None:
    """Any generation, member epoch and member id may commit."""
    validation.may_commit = lambda *_: None  # type: ignore[assignment] # it lets everybody in


FAULTS = {
    "commits-not-fenced": commits_are_not_fenced,
    "any-session-timeout": lambda: let_in(ErrorCode.INVALID_SESSION_TIMEOUT),
    "empty-group-id": lambda: let_in(ErrorCode.INVALID_GROUP_ID),
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    main(sys.argv[2:])
