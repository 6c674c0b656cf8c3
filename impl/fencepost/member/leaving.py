"""Leaving the group: unsubscribe, close, and the leave that an expired poll interval causes (8.4)."""

from __future__ import annotations

from . import requests
from .events import Call, CloseOption, Commit, Failure, FailureKind, MemberTimer
from .state import CallStage, ClassicMemberState, HeartbeatThread, WaitingCall
from .subscription import SubscriptionState
from .turn import Turn


def leave(turn: Turn, option: CloseOption, reason: str) -> None:
    """Send LeaveGroup if the coordinator is known and this kind of member sends it (K-LEAVE-01, K-LEAVE-05). Reset the
    generation."""
    member = turn.member
    dynamic = member.settings.group_instance_id is None
    asked = (
        option is CloseOption.LEAVE_GROUP  # K-LEAVE-03
        or (option is CloseOption.DEFAULT and dynamic)  # C-LEAVE-26
    )
    joined = member.state is not ClassicMemberState.UNJOINED and bool(member.generation.member_id)
    if asked and joined and member.coordinator.node is not None:
        requests.send_leave(turn, reason)
    turn.reset("consumer pro-actively leaving the group", keep_id=False)


def unsubscribe(turn: Turn) -> None:
    """Drop the subscription: the listener gives up all partitions, then the member leaves."""
    if not _give_up(turn, WaitingCall(CallStage.UNSUBSCRIBE)):
        unsubscribed(turn, None)


def unsubscribed(turn: Turn, error: str | None) -> None:
    """Finish an unsubscribe after the listener. If the listener threw, the member does not leave (K-LEAVE-04)."""
    turn.member = turn.member._replace(subscription=turn.member.subscription.assign(()))
    if error is not None:
        turn.returns(Failure(FailureKind.LISTENER, text=error))
        return
    leave(turn, CloseOption.DEFAULT, "the consumer unsubscribed from all topics")  # K-LEAVE-02
    turn.member = turn.member._replace(subscription=SubscriptionState())
    turn.returns()


def close(turn: Turn, option: CloseOption) -> None:
    """Close the member: commit, revoke, leave (K-LEAVE-04). A member that owns nothing commits nothing, but waits in
    the same way for its asynchronous commits. Outside the group the commit fails without a request, but the callbacks
    still run (K-OFF-02). Step 6, waiting for the last responses, is the driver's: it may drop the member any time."""
    member = turn.member
    turn.member = turn.member._replace(closed=True)
    owned = member.subscription.owned
    if member.settings.auto_commit and member.coordinator.node is not None:
        commit_id = member.next_request_id
        turn.member = turn.member._replace(
            next_request_id=commit_id + 1,
            waiting=WaitingCall(CallStage.CLOSE_COMMIT, option=option, commit_id=commit_id),
        )
        turn.emit(Commit(commit_id, owned))
    else:
        committed(turn, option)


def committed(turn: Turn, option: CloseOption) -> None:
    """Continue the close when its commit has ended, with or without success; the heartbeat thread stops."""
    turn.member = turn.member._replace(thread=HeartbeatThread())
    for timer in (MemberTimer.RETRY, MemberTimer.LOOKUP):
        turn.drop_deadline(timer)
    if not _give_up(turn, WaitingCall(CallStage.CLOSE, option=option)):
        closed(turn, option, None)


def closed(turn: Turn, option: CloseOption, error: str | None) -> None:
    """Finish a close after the listener: the member leaves, and close returns."""
    turn.member = turn.member._replace(subscription=turn.member.subscription.assign(()))
    if error is not None:
        turn.returns(Failure(FailureKind.LISTENER, text=error))
        return
    leave(turn, option, "the consumer is being closed")
    turn.returns()


def _give_up(turn: Turn, waiting: WaitingCall) -> bool:
    """Call the listener for all owned partitions (K-CB-07). Return false if there are none."""
    member = turn.member
    owned = member.subscription.owned
    if not owned:
        return False
    outside = member.generation.generation_id == -1 or not member.generation.member_id
    rebalancing = member.state in (ClassicMemberState.PREPARING_REBALANCE, ClassicMemberState.COMPLETING_REBALANCE)
    turn.call(Call.LOST if outside or rebalancing else Call.REVOKED, owned, waiting)  # K-CB-07
    return True
