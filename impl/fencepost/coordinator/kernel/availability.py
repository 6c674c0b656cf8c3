"""Whether the coordinator serves requests (F-RT-02)."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode

from .state import CoordinatorState, Status


def not_serving(state: CoordinatorState) -> ErrorCode | None:
    """Why the partition is not served, None if it is: another broker leads it, or its log is still being loaded
    (C-JOIN-06, C-JOIN-07, C-SYNC-04, C-HB-04)."""
    if state.status is Status.ACTIVE:
        return None
    loading = state.status is Status.LOADING
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
