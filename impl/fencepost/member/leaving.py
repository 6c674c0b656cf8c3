"""Leaving the group: unsubscribe, close, and the leave that an expired poll interval causes (8.4)."""

from __future__ import annotations

from . import requests
from .events import Call, CloseOption, Commit, Failure, FailureKind, MemberTimer
from .state import HeartbeatThread, MemberState, Stage, Waiting
from .subscription import SubscriptionState
from .turn import Turn


def leave(turn: Turn, option: CloseOption, reason: str) -> None:
    """Tell the coordinator if it is known and this kind of member does (K-LEAVE-01, K-LEAVE-05), and forget the
    generation."""
    member = turn.member
    dynamic = member.settings.group_instance_id is None
    asked = (
        option is CloseOption.LEAVE_GROUP  # K-LEAVE-03
        or (option is CloseOption.DEFAULT and dynamic)  # C-LEAVE-26
    )
    joined = member.state is not MemberState.UNJOINED and bool(member.generation.member_id)
    if asked and joined and member.coordinator.node is not None:
        requests.send_leave(turn, reason)
    turn.reset("consumer pro-actively leaving the group", keep_id=False)


def unsubscribe(turn: Turn) -> None:
    """The application wants nothing any more: its partitions are revoked, then the member leaves."""
    if not _give_up(turn, Waiting(Stage.UNSUBSCRIBE)):
        unsubscribed(turn, None)


def unsubscribed(turn: Turn, error: str | None) -> None:
    """The listener returned. If it threw, the rest of the call does not happen (K-LEAVE-04)."""
    turn.member = turn.member._replace(subscription=turn.member.subscription.assign(()))
    if error is not None:
        turn.returns(Failure(FailureKind.LISTENER, text=error))
        return
    leave(turn, CloseOption.DEFAULT, "the consumer unsubscribed from all topics")  # K-LEAVE-02
    turn.member = turn.member._replace(subscription=SubscriptionState())
    turn.returns()


def close(turn: Turn, option: CloseOption) -> None:
    """The last call: commit, revoke, leave (K-LEAVE-04). Who owns nothing has nothing to commit, but waits in the
    same way for what was committed asynchronously; who is not in the group is refused his commit, but callbacks run
    all the same (K-OFF-02). Step 6, waiting for the last answers, is the driver's: it may drop the member when it
    likes."""
    member = turn.member
    turn.member = turn.member._replace(closed=True)
    owned = member.subscription.owned
    if member.settings.auto_commit and member.coordinator.node is not None:
        commit_id = member.next_request_id
        turn.member = turn.member._replace(
            next_request_id=commit_id + 1, waiting=Waiting(Stage.CLOSE_COMMIT, option=option, commit_id=commit_id)
        )
        turn.emit(Commit(commit_id, owned))
    else:
        committed(turn, option)


def committed(turn: Turn, option: CloseOption) -> None:
    """The commit is over, well or not; the heartbeat thread stops."""
    turn.member = turn.member._replace(thread=HeartbeatThread())
    for timer in (MemberTimer.RETRY, MemberTimer.LOOKUP):
        turn.drop_deadline(timer)
    if not _give_up(turn, Waiting(Stage.CLOSE, option=option)):
        closed(turn, option, None)


def closed(turn: Turn, option: CloseOption, error: str | None) -> None:
    """The application was told; the member leaves, and its close returns."""
    turn.member = turn.member._replace(subscription=turn.member.subscription.assign(()))
    if error is not None:
        turn.returns(Failure(FailureKind.LISTENER, text=error))
        return
    leave(turn, option, "the consumer is being closed")
    turn.returns()


def _give_up(turn: Turn, waiting: Waiting) -> bool:
    """Have the listener told what is given up; false if there is nothing (K-CB-07)."""
    member = turn.member
    owned = member.subscription.owned
    if not owned:
        return False
    outside = member.generation.generation_id == -1 or not member.generation.member_id
    rebalancing = member.state in (MemberState.PREPARING_REBALANCE, MemberState.COMPLETING_REBALANCE)
    turn.call(Call.LOST if outside or rebalancing else Call.REVOKED, owned, waiting)  # K-CB-07
    return True
