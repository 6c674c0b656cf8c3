"""The heartbeat thread: it keeps the member in its generation while the application works (8.3).

Java's heartbeat thread is a loop. Here it runs at the end of every step and does whatever is due. Its three timers make
sure that the next step is in time.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse

from . import leaving, lookup, requests
from .events import CloseOption, Failure, FailureKind, MemberTimer
from .lookup import heartbeat_failed
from .state import ClassicMemberState, Sent
from .turn import THREAD_TIMERS, Turn, thread_works


def enable(turn: Turn) -> None:
    """Start all three timers again, after a response to JoinGroup (K-HB-01)."""
    thread, settings = turn.member.thread, turn.member.settings
    if not thread.exists:
        return
    turn.member = turn.member._replace(thread=replace(thread, enabled=True))
    lengths = (settings.heartbeat_interval_ms, settings.session_timeout_ms, settings.max_poll_interval_ms)
    for timer, length in zip(THREAD_TIMERS, lengths, strict=True):
        turn.set_deadline(timer, length)


def have_turn(turn: Turn) -> None:
    """Run the heartbeat thread: do the first action that is due, until none is (K-HB-02).

    A member that is out of the group, or that waits for its JoinGroup response, sends no heartbeats (K-ST-01, K-ST-02).
    While listeners run before the JoinGroup, the member is still stable and sends heartbeats (K-HB-06). When the poll
    timer has expired, the member keeps its assignment until the next poll (K-HB-04)."""
    if turn.member.thread.enabled and not thread_works(turn.member):
        turn.member = turn.member._replace(
            thread=replace(turn.member.thread, enabled=False)
        )  # K-HB-01: the thread disables itself
    while thread_works(turn.member):
        if turn.member.coordinator.node is None:
            lookup.start(turn)
            return
        if not turn.running(MemberTimer.SESSION):
            lookup.forget(turn)
        elif not turn.running(MemberTimer.POLL):
            leaving.leave(turn, CloseOption.DEFAULT, "consumer poll timeout has expired.")  # K-HB-03
        elif not turn.running(MemberTimer.HEARTBEAT):
            turn.set_deadline(MemberTimer.HEARTBEAT, turn.member.settings.heartbeat_interval_ms)  # K-HB-08
            requests.send_heartbeat(turn)
        else:
            return


def answered(turn: Turn, sent: Sent, body: HeartbeatResponse) -> None:
    """Handle a heartbeat response: the heartbeat column of 8.2."""
    member, error = turn.member, body.error_code
    match error:
        case ErrorCode.NONE:  # K-ERR-01
            _good(turn)
        case ErrorCode.COORDINATOR_NOT_AVAILABLE | ErrorCode.NOT_COORDINATOR:  # K-ERR-03
            lookup.forget(turn)
            heartbeat_failed(turn)
        case ErrorCode.REBALANCE_IN_PROGRESS:  # K-ERR-06
            if member.state is ClassicMemberState.STABLE:
                turn.request_rejoin("group is already rebalancing")  # C-REJ-03
            _good(turn)
        case ErrorCode.UNKNOWN_MEMBER_ID | ErrorCode.ILLEGAL_GENERATION | ErrorCode.FENCED_INSTANCE_ID:
            if member.generation != sent.generation:  # K-ST-15
                _good(turn)
                return
            # K-ERR-04, K-ERR-05, K-ERR-08: after ILLEGAL_GENERATION the member keeps its id
            turn.reset(
                f"encountered {error.name} from HEARTBEAT response", keep_id=error is ErrorCode.ILLEGAL_GENERATION
            )
            if error is ErrorCode.FENCED_INSTANCE_ID:  # K-ERR-08
                failure = Failure(FailureKind.ANSWER, error)
                turn.member = turn.member._replace(thread=replace(turn.member.thread, failure=failure))  # K-HB-10
            else:
                heartbeat_failed(turn)
        case _:  # K-ERR-02, K-ERR-09, K-ERR-11: no poll throws these
            heartbeat_failed(turn)


def _good(turn: Turn) -> None:
    turn.set_deadline(MemberTimer.SESSION, turn.member.settings.session_timeout_ms)
    turn.member = turn.member._replace(thread=replace(turn.member.thread, failed_attempts=0))
