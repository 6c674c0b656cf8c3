"""The mapping of log errors to answers."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.errors import ErrorCode

_METADATA: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
_OPERATION: Final = {**_METADATA, ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def of_metadata_append(error: ErrorCode) -> ErrorCode:
    """Return the error that a failed append of a group's metadata answers (C-SYNC-30)."""
    return _METADATA.get(error, error)


def of_operation(error: ErrorCode) -> ErrorCode:
    """Return the error that a failed operation answers (F-RT-10)."""
    return _OPERATION.get(error, error)
