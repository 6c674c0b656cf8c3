"""How an internal error becomes the error that a client sees."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.errors import ErrorCode

#: The errors that a group reports when the append of its records failed (C-SYNC-30). Other errors stay unchanged.
_APPEND: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}


class InternalError(Exception):
    """The operation failed inside; its request is answered UNKNOWN_SERVER_ERROR (F-RT-10)."""


class Rejected(Exception):
    """The request is answered with this error and writes nothing. ``why``: the error message for the client, where the
    answer has a field for it; by default the message of the error."""

    def __init__(self, error: ErrorCode, why: str | None = None) -> None:
        super().__init__(error.name)
        self.error = error
        self.why = why


def append_error(error: ErrorCode) -> ErrorCode:
    """The error that a client gets when a write failed with this error (C-SYNC-30)."""
    return _APPEND.get(error, error)


def operation_error(error: ErrorCode) -> ErrorCode:
    """The error that a client gets when its operation failed (F-RT-10): as in C-SYNC-30, and a network error becomes
    COORDINATOR_LOAD_IN_PROGRESS."""
    if error is ErrorCode.NETWORK_EXCEPTION:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return _APPEND.get(error, error)
