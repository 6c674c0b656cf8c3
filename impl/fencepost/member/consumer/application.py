"""The application's thread: poll, unsubscribe, close, and the listener calls in them (8.12, N-TR-07)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.quirks import varies

from ..events import Call, CloseOption, Commit, Failure, FailureKind, MemberTimer, Returned
from ..subscription import SubscriptionState
from . import reconciling
from .heartbeats import leave_epoch
from .state import ApiCall, ConsumerState, ListenerCall, Reason, Waiting
from .turn import ConsumerTurn


def poll(turn: ConsumerTurn) -> None:
    """One turn of the poll loop: the background works off the poll event, then this thread what that has brought
    (N-POLL-01)."""
    turn.wait(Waiting(ApiCall.POLL))
    if not turn.member.subscription.subscribed:
        return
    if turn.member.metadata_arrived:
        turn.member = turn.member._replace(metadata_requested=False)
    reconciling.start(turn, polled=True)
    _match_pattern(turn)
    changed = turn.member.subscription_changed
    turn.member = turn.member._replace(subscription_changed=False)
    if changed and turn.member.state is ConsumerState.UNSUBSCRIBED:
        turn.join()  # N-TR-01, N-TR-14
    turn.set_deadline(MemberTimer.POLL, turn.member.settings.max_poll_interval_ms)
    if turn.member.state is ConsumerState.STALE:  # N-TR-10
        turn.member = turn.member._replace(back=True)
        _come_back(turn)
    _run_errands(turn)


def _match_pattern(turn: ConsumerTurn) -> None:
    """A pattern that the client matches is a change of the subscription when it matches anew (K-JOIN-15)."""
    subscription = turn.member.subscription.match(turn.member.cluster)
    if subscription != turn.member.subscription:
        turn.member = turn.member._replace(subscription=subscription, subscription_changed=True)


def _come_back(turn: ConsumerTurn) -> None:
    """Join again, once the listener knows what was lost (N-TR-10)."""
    if turn.member.state is not ConsumerState.STALE or not turn.member.back:
        return
    waiting = (*turn.waiting.errands, *turn.member.queue)
    if not any(isinstance(each, ListenerCall) and each.reason is Reason.STALE for each in waiting):
        turn.join()


def _run_errands(turn: ConsumerTurn) -> None:
    """What the background has asked for, up to the next listener call. New errands are for the next poll if this one
    has something to throw."""
    while True:
        waiting = turn.waiting
        if not waiting.errands:
            if waiting.failure is not None or not turn.member.queue:
                return
            waiting = replace(waiting, errands=turn.member.queue)
            turn.member = turn.member._replace(queue=())
        errand = waiting.errands[0]
        turn.wait(replace(waiting, errands=waiting.errands[1:]))
        if isinstance(errand, Failure):
            _throw(turn, errand)
        elif errand.reason is not Reason.ASSIGNMENT or reconciling.take_over(turn):
            _call(turn, errand)
            return


def _call(turn: ConsumerTurn, call: ListenerCall) -> None:
    turn.wait(replace(turn.waiting, running=call))
    turn.listen(call.call, call.partitions)


def _throw(turn: ConsumerTurn, failure: Failure) -> None:
    if turn.waiting.failure is None:
        turn.wait(replace(turn.waiting, failure=failure))


def listener_done(turn: ConsumerTurn, error: str | None) -> None:
    """The background goes on with what the listener was called for, and this thread with its errands."""
    ran = turn.waiting.running
    assert ran is not None
    turn.wait(replace(turn.waiting, running=None))
    if error is not None:
        _throw(turn, Failure(FailureKind.LISTENER, text=error))
    match ran.reason:
        case Reason.REVOCATION:
            reconciling.revoked(turn, error)
        case Reason.ASSIGNMENT:
            reconciling.assigned(turn, error)
        case Reason.LEAVE | Reason.CLOSE:
            _say_goodbye(turn)  # also if it threw (N-TR-07)
        case Reason.FENCED:
            turn.release()
            if turn.member.state is ConsumerState.FENCED:
                turn.join()  # N-TR-06, also if it threw
        case Reason.STALE:
            turn.release()
            _come_back(turn)
        case Reason.FATAL:
            turn.release()
    if ran.reason is not Reason.CLOSE:
        _run_errands(turn)


# --- leaving ---


def unsubscribe(turn: ConsumerTurn) -> None:
    """The application wants nothing any more: it is told that its partitions are gone, and the member leaves
    (N-TR-07)."""
    turn.wait(Waiting(ApiCall.UNSUBSCRIBE))
    turn.member = turn.member._replace(option=CloseOption.DEFAULT)
    if turn.member.state.in_group:
        turn.move(ConsumerState.PREPARE_LEAVING)
        turn.member = turn.member._replace(leaving=True)
        if turn.give_up(_farewell(turn), Reason.LEAVE):
            _run_errands(turn)
            return
    _say_goodbye(turn)
    _run_errands(turn)


def close(turn: ConsumerTurn, option: CloseOption) -> None:
    """The last call: commit, tell the application, leave (N-CLOSE-01). Waiting no longer than the close's timeout is
    the driver's: it may drop the member when it likes."""
    member = turn.member
    turn.member = turn.member._replace(closed=True, option=honoured(turn, option))
    turn.wait(Waiting(ApiCall.CLOSE))
    owned = member.subscription.owned
    if member.settings.auto_commit and owned and member.coordinator.node is not None:
        commit_id = turn.number()
        turn.wait(replace(turn.waiting, commit_id=commit_id))
        turn.emit(Commit(commit_id, owned))
    else:
        committed(turn)


@varies
def honoured(turn: ConsumerTurn, option: CloseOption) -> CloseOption:
    """What the application asks of a close, it gets (K-LEAVE-01)."""
    return option


def committed(turn: ConsumerTurn) -> None:
    """The last commit is over, well or not. This thread tells the listener itself, whatever the background has asked
    for, and then asks for the leave."""
    turn.member = turn.member._replace(queue=(), reconciliation=None)
    turn.wait(replace(turn.waiting, errands=(), commit_id=None))
    for timer in (MemberTimer.RETRY, MemberTimer.LOOKUP):
        turn.drop_deadline(timer)
    owned = turn.member.subscription.owned
    if owned and turn.member.settings.listener:
        _call(turn, ListenerCall(_farewell(turn), owned, Reason.CLOSE))
    else:
        _say_goodbye(turn)


def _farewell(turn: ConsumerTurn) -> Call:
    return Call.REVOKED if turn.member.epoch > 0 else Call.LOST


def _say_goodbye(turn: ConsumerTurn) -> None:
    """Nothing is owned nor subscribed to any more. Who is in the group tells the coordinator; FENCED is out of it,
    STALE and FATAL stay what they are (N-TR-07)."""
    turn.release()
    turn.member = turn.member._replace(subscription=SubscriptionState(), subscription_changed=False)
    state = turn.member.state
    if state is ConsumerState.FENCED:
        turn.move(ConsumerState.UNSUBSCRIBED)
        return
    if state.in_group:
        turn.move(ConsumerState.PREPARE_LEAVING)
    if turn.member.state is ConsumerState.PREPARE_LEAVING:
        turn.member = turn.member._replace(leaving=True, expired=False, epoch=leave_epoch(turn, turn.member.option))
        turn.move(ConsumerState.LEAVING)


def finish(turn: ConsumerTurn) -> None:
    """At the end of a step: the call returns unless it waits for the listener, for the leave, or for a commit."""
    waiting = turn.member.waiting
    if waiting is None or waiting.running is not None or waiting.commit_id is not None:
        return
    if waiting.api is not ApiCall.POLL and turn.member.leaving:
        return
    turn.member = turn.member._replace(waiting=None)
    turn.emit(Returned(waiting.failure))
