"""The inputs of a member. Time is an input: the caller says that a timer has expired."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse, JoinGroupResponse, LeaveGroupResponse, SyncGroupResponse

Partition: TypeAlias = tuple[str, int]
#: The topics that the client knows: name and partition count.
Metadata: TypeAlias = tuple[tuple[str, int], ...]


class Poll(NamedTuple):
    """The application polls. ``throws`` names the callbacks that throw if this poll calls them (K-CB-09)."""

    throws: frozenset[str] = frozenset()


class CoordinatorFound(NamedTuple):
    """The coordinator is known again, or with an error, the look-up failed permanently (K-FIND-01)."""

    error: ErrorCode = ErrorCode.NONE


class CommitAnswer(NamedTuple):
    """The answer to a commit: the first error of its partitions (K-OFF-10…17)."""

    error_code: ErrorCode


AnswerBody: TypeAlias = JoinGroupResponse | SyncGroupResponse | HeartbeatResponse | LeaveGroupResponse | CommitAnswer


class Answer(NamedTuple):
    """A request is answered; ``body`` None: the connection broke or the request timed out (K-ERR-13)."""

    request: int
    body: AnswerBody | None


class HeartbeatDue(NamedTuple):
    """The heartbeat interval or back-off is over."""


class SessionExpired(NamedTuple):
    """No good heartbeat for a session timeout (K-HB-02)."""


class PollExpired(NamedTuple):
    """No poll for ``max.poll.interval.ms`` (K-HB-03)."""


class Subscribe(NamedTuple):
    """The application subscribes to these topics."""

    topics: frozenset[str]


class Unsubscribe(NamedTuple):
    """The application unsubscribes."""


class CloseOption(Enum):
    """The option of ``close`` (K-LEAVE-05)."""

    DEFAULT = "default"
    LEAVE_GROUP = "leave"
    REMAIN_IN_GROUP = "remain"


class Close(NamedTuple):
    """The application closes the consumer."""

    option: CloseOption = CloseOption.DEFAULT


class EnforceRebalance(NamedTuple):
    """The application asks for a rebalance."""

    reason: str = "rebalance enforced by user"


class MetadataChanged(NamedTuple):
    """The client learns of topics and partition counts."""

    metadata: Metadata


MemberInput: TypeAlias = (
    Poll
    | CoordinatorFound
    | Answer
    | HeartbeatDue
    | SessionExpired
    | PollExpired
    | Subscribe
    | Unsubscribe
    | Close
    | EnforceRebalance
    | MetadataChanged
)
