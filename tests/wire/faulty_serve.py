"""``fencepost`` with a known fault of brokers: ``python faulty_serve.py FAULT serve …``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from fencepost.coordinator import admin, routing
from fencepost.coordinator.kernel import operations
from fencepost.coordinator.offsets import validation
from fencepost.protocol.errors import ErrorCode
from fencepost_conformance.cli import main


def let_in(error: ErrorCode) -> None:
    """Requests that must be rejected with this error reach the group."""

    def without(check: Callable[..., Any]) -> Callable[..., Any]:
        def patched(*given: Any) -> Any:
            failed = check(*given)
            return None if failed is not None and failed.error is error else failed

        return patched

    for kind, api in list(routing.APIS.items()):
        routing.APIS[kind] = api._replace(check=without(api.check))


def commits_are_not_fenced() -> None:
    """Any generation, member epoch and member id may commit."""
    validation.may_commit = lambda *_: None  # type: ignore[assignment] # every commit passes


def lists(change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """ListGroups lists groups that do not exist."""
    committed = operations.committed_groups
    operations.committed_groups = lambda step: change(committed(step))


def lists_deleted_groups() -> None:
    """A deleted group stays in the list."""
    ever: dict[str, Any] = {}
    lists(lambda groups: ever.update(groups) or ever)


def lists_all_as_empty() -> None:
    """ListGroups shows another state than that of the group."""
    listed = admin._listed
    admin._listed = lambda group: (listed(group)[0], "Empty", listed(group)[2])


FAULTS = {
    "commits-not-fenced": commits_are_not_fenced,
    "lists-no-group": lambda: lists(lambda groups: {}),
    "lists-deleted-groups": lists_deleted_groups,
    "lists-all-as-empty": lists_all_as_empty,
    "any-session-timeout": lambda: let_in(ErrorCode.INVALID_SESSION_TIMEOUT),
    "empty-group-id": lambda: let_in(ErrorCode.INVALID_GROUP_ID),
}

if __name__ == "__main__":
    FAULTS[sys.argv[1]]()
    main(sys.argv[2:])
