"""Responses to heartbeats (8.10)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import varies

from ..events import Call, Failure, FailureKind
from . import heartbeats
from .state import Beat, ConsumerState, LocalAssignment, Reason, SentHeartbeat, TopicIdPartition
from .turn import ConsumerTurn

_GONE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
THROWN_OUT = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


def answered(turn: ConsumerTurn, sent: SentHeartbeat, body: ConsumerGroupHeartbeatResponse) -> None:
    """Handle a heartbeat response. The response to a leave for the poll interval is ignored (N-TR-09)."""
    if sent.beat is Beat.LATE:
        overtaken(turn, sent, body)
    elif sent.beat is not Beat.IGNORED:
        heard(turn, sent, body)


@varies
def overtaken(turn: ConsumerTurn, sent: SentHeartbeat, body: ConsumerGroupHeartbeatResponse) -> None:
    """Ignore a response to a heartbeat sent before a leave: that membership has ended (N-HB-11)."""


def heard(turn: ConsumerTurn, sent: SentHeartbeat, body: ConsumerGroupHeartbeatResponse) -> None:
    """Handle a response that counts, by its error code (8.10)."""
    if sent.beat is Beat.LEAVE:
        turn.left()  # N-TR-08: with any code
    gone = sent.beat is Beat.LEAVE or turn.member.state is ConsumerState.UNSUBSCRIBED
    error = body.error_code
    if error is ErrorCode.NONE:
        heartbeats.good(turn, body.heartbeat_interval_ms)
        _accepted(turn, body)
        return
    heartbeats.failed(turn)
    if error in _GONE:  # N-ERR-01
        heartbeats.skip_backoff(turn)
        heartbeats.let_go(turn)
    elif error in THROWN_OUT:  # N-ERR-02
        heartbeats.skip_backoff(turn)
        _thrown_out(turn)
    elif (
        (gone and harmless(turn, error))  # N-TR-08
        or error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # N-ERR-03
    ):
        pass
    elif error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:  # N-ERR-07
        turn.put(Failure(FailureKind.ANSWER, error))
    else:  # N-ERR-04, N-ERR-05
        turn.fail(Failure(FailureKind.ANSWER, error), leaving=sent.beat is Beat.LEAVE)


def harmless(turn: ConsumerTurn, error: ErrorCode) -> bool:
    """Return whether a member that has left ignores the error (N-TR-08)."""
    rules = turn.rules
    if not rules.leave_errors_ignored:
        return False
    named = error is ErrorCode.GROUP_ID_NOT_FOUND and turn.member.state is ConsumerState.UNSUBSCRIBED
    return named or not rules.only_missing_group_ignored


def _accepted(turn: ConsumerTurn, body: ConsumerGroupHeartbeatResponse) -> None:
    """Store the epoch and the target of the response (N-HB-10, N-TR-02, N-TR-03). The member does not check that epochs
    grow."""
    state = turn.member.state
    if not state.heartbeats:
        return
    if body.member_epoch < 0 and turn.rules.negative_epochs_ignored:
        return  # it echoes a leave (N-HB-10)
    turn.member = turn.member._replace(epoch=body.member_epoch)
    if body.member_epoch > 0:
        remembered = replace(turn.member.remembered, joined=True)
        turn.member = turn.member._replace(joined_once=True, remembered=remembered)
    if state is ConsumerState.PREPARE_LEAVING or body.assignment is None:
        return
    received = frozenset(TopicIdPartition(row.topic_id, each) for row in body.assignment for each in row.partitions)
    target = turn.member.target
    if target is None or target.partitions != received:
        target = LocalAssignment(0 if target is None else target.epoch + 1, received)
        turn.member = turn.member._replace(target=target, metadata_requested=False)
    if target != turn.member.current:
        turn.move(ConsumerState.RECONCILING)  # N-TR-02
    elif state is ConsumerState.RECONCILING:
        turn.move(ConsumerState.STABLE)  # N-TR-03


def _thrown_out(turn: ConsumerTurn) -> None:
    """Handle a fenced or unknown member (N-TR-06). A leaving member has then left (N-ERR-02); outside the group nothing
    changes."""
    state = turn.member.state
    if state in (ConsumerState.PREPARE_LEAVING, ConsumerState.LEAVING):
        turn.member = turn.member._replace(epoch=heartbeats.leave_epoch(turn, turn.member.option), current=None)
        turn.move(ConsumerState.UNSUBSCRIBED)
        turn.left()
    elif state.in_group:
        turn.member = turn.member._replace(epoch=0)
        turn.move(ConsumerState.FENCED)
        if not turn.give_up(Call.LOST, Reason.FENCED):
            turn.release()
            turn.join()
