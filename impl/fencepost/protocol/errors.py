"""Error codes of the Kafka protocol that group coordination uses, and exceptions of step functions.

The numbers are those of Kafka's ``Errors`` enum, as they are sent on the wire.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class ErrorCode(IntEnum):
    """A Kafka error code, by its protocol name."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    CORRUPT_MESSAGE = 2
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    REPLICA_NOT_AVAILABLE = 9
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    INVALID_TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    UNSTABLE_OFFSET_COMMIT = 88
    PRODUCER_FENCED = 90
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    TRANSACTION_ABORTABLE = 120
    INVALID_REGULAR_EXPRESSION = 128


#: Reasons of an ``IllegalEvent`` that a driver can see only in earlier outcomes: it names a timer, a task or a place of
#: the log that does not exist.
IMPOSSIBLE: Final = ("NoSuchTimer", "NoSuchTask", "OffsetBeyondLog", "OffsetInsideBatch", "NothingToAppend")


class MisuseError(Exception):
    """Wrong use of the core by the program around it. The message says what is wrong, and what to do instead. The state
    is unchanged."""


class WrongType(MisuseError, TypeError):
    """An argument has the wrong type, such as a state, choices, a profile or a store."""


class WrongState(MisuseError, ValueError):
    """The state does not allow the operation; the message says which state does."""


class NoSuchProfile(MisuseError, KeyError):
    """There is no profile with that name."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show the message in quotes


class IllegalEvent(MisuseError, ValueError):
    """An event that no driver may deliver now, to a coordinator or to a member. The state is unchanged.

    The message says what is wrong, and what would be right. ``reason``: one word for it, one of ``IMPOSSIBLE``, else
    the name of the class.
    """

    def __init__(self, message: str, reason: str = "IllegalEvent") -> None:
        super().__init__(message)
        self.reason = reason
