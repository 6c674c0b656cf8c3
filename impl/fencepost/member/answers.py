"""Responses to JoinGroup and SyncGroup (8.1, 8.2).

The handlers change the state of the member. How the join loop reacts to a failure is decided at the next poll, so the
handlers only store the failure in ``Member.join``.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupResponse, SyncGroupResponse

from . import heartbeats, leading, lookup, requests
from .consumer_protocol import PROTOCOL_TYPE
from .events import Failure, FailureKind
from .state import ClassicMemberState, Generation, JoinDone, JoinOpen, Retry, Sent
from .turn import Turn

#: Kafka's exception names that do not follow from the name of the error code.
_NAMES = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.INVALID_REGULAR_EXPRESSION: "InvalidRegularExpression",
    ErrorCode.OFFSET_METADATA_TOO_LARGE: "OffsetMetadataTooLarge",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
}
_JOIN_FATAL = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,  # K-ERR-08
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,  # K-ERR-09
        ErrorCode.INVALID_SESSION_TIMEOUT,  # K-ERR-10
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,  # K-ERR-11
    }
)
_SYNC_FATAL = frozenset({ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED})  # K-ERR-08, K-ERR-11


def exception_name(error: ErrorCode) -> str:
    """Return the name of Kafka's exception class for an error code, as rejoin reasons contain it (K-ERR-17)."""
    words = "".join(word.capitalize() for word in error.name.split("_"))
    return _NAMES.get(error, f"{words}Exception")


def _fail(turn: Turn, error: ErrorCode, retry: Retry) -> None:
    failure = Failure(FailureKind.ANSWER, error) if retry is Retry.NEVER else None
    turn.fail_join(exception_name(error), retry, failure, error)


def unexpected(turn: Turn, error: ErrorCode) -> None:
    """Fail the join with an error code that no client expects here: the poll throws."""
    turn.fail_join("KafkaException", Retry.NEVER, Failure(FailureKind.UNEXPECTED, error), error)


def joined(turn: Turn, sent: Sent, body: JoinGroupResponse) -> None:
    """Handle a JoinGroup response: the JoinGroup column of 8.2. Errors of K-ERR-10 are fatal."""
    member, error = turn.member, body.error_code
    unchanged = member.generation == sent.generation  # K-ST-15
    match error:
        case ErrorCode.NONE:
            _accepted(turn, body)
        case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # K-ERR-02
            _fail(turn, error, Retry.BACK_OFF)
        case ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:  # K-ERR-03
            _fail(turn, error, Retry.BACK_OFF)
            lookup.forget(turn)
        case ErrorCode.UNKNOWN_MEMBER_ID:  # K-ERR-04
            if unchanged:
                turn.reset(f"encountered {error.name} from JOIN_GROUP response", keep_id=False)  # C-REJ-09
            _fail(turn, error, Retry.AT_ONCE)
        case ErrorCode.REBALANCE_IN_PROGRESS:  # K-ERR-06
            _fail(turn, error, Retry.AT_ONCE)
        case ErrorCode.MEMBER_ID_REQUIRED:  # K-ERR-07
            turn.member = turn.member._replace(generation=Generation(member_id=body.member_id))  # C-REJ-02
            turn.request_rejoin(f"need to re-join with the given member-id: {body.member_id}")  # K-ST-17
            _fail(turn, error, Retry.AT_ONCE)
        case _ if error in _JOIN_FATAL:
            _fail(turn, error, Retry.NEVER)
        case _:  # includes K-ERR-05
            unexpected(turn, error)


def _accepted(turn: Turn, body: JoinGroupResponse) -> None:
    if body.protocol_type not in (None, PROTOCOL_TYPE):  # K-ERR-12
        _fail(turn, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, Retry.NEVER)
        return
    if turn.member.state is not ClassicMemberState.PREPARING_REBALANCE:  # K-ST-11
        turn.fail_join("UnjoinedGroupException", Retry.BACK_OFF)
        return
    generation = Generation(body.generation_id, body.member_id, body.protocol_name)
    turn.member = turn.member._replace(state=ClassicMemberState.COMPLETING_REBALANCE, generation=generation)  # K-ST-11
    heartbeats.enable(turn)  # K-HB-01
    if body.leader == body.member_id:  # G-WIRE-25
        leading.elected(turn, body)
    else:
        requests.send_sync(turn, {})


def synced(turn: Turn, sent: Sent, body: SyncGroupResponse) -> None:
    """Handle a SyncGroup response: the SyncGroup column of 8.2."""
    member, error = turn.member, body.error_code
    unchanged = member.generation == sent.generation  # K-ST-15
    match error:
        case ErrorCode.NONE:
            _assigned(turn, body)
        case ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            if turn.rules.sync_load_is_retried:
                _fail(turn, error, Retry.BACK_OFF)  # K-ERR-02
            else:
                unexpected(turn, error)
        case ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:  # K-ERR-03
            _fail(turn, error, Retry.BACK_OFF)
            lookup.forget(turn)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION:  # K-ERR-04, K-ERR-05, C-REJ-09, C-REJ-10
            if unchanged:
                turn.reset(
                    f"encountered {error.name} from SYNC_GROUP response",
                    keep_id=error is ErrorCode.ILLEGAL_GENERATION,  # C-REJ-10
                )
            _fail(turn, error, Retry.AT_ONCE)
        case ErrorCode.REBALANCE_IN_PROGRESS:  # K-ERR-06
            _fail(turn, error, Retry.AT_ONCE)
        case _ if error in _SYNC_FATAL:
            _fail(turn, error, Retry.NEVER)
        case _:
            unexpected(turn, error)


def _assigned(turn: Turn, body: SyncGroupResponse) -> None:
    """Take the assignment from a SyncGroup response, if the generation is still valid (K-ST-12)."""
    member = turn.member
    if body.protocol_type not in (None, PROTOCOL_TYPE):  # K-ERR-12
        _fail(turn, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, Retry.NEVER)
        return
    if member.generation.reset or member.state is not ClassicMemberState.COMPLETING_REBALANCE:
        _fail(turn, ErrorCode.ILLEGAL_GENERATION, Retry.AT_ONCE)
        return
    if body.protocol_name not in (None, member.generation.protocol_name):
        _fail(turn, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, Retry.NEVER)
        return
    turn.member = turn.member._replace(state=ClassicMemberState.STABLE, rejoin_needed=False, rejoin_reason="")
    if isinstance(member.join, JoinOpen):
        turn.member = turn.member._replace(join=JoinDone(body.assignment))
