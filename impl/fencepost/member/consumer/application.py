"""The application's thread: poll, unsubscribe, close, and their listener calls (8.12, N-TR-07)."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import varies

from ..events import Call, CloseOption, Commit, Failure, FailureKind, MemberTimer, Returned
from ..partitions import TopicPartition
from ..subscription import SubscriptionState
from . import reconciling
from .heartbeats import leave_epoch
from .state import ApiCall, ConsumerState, ListenerCall, Reason, WaitingConsumerCall
from .turn import ConsumerTurn

#: Errors that unsubscribe does not throw (N-TR-07).
_HARMLESS = (ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def poll(turn: ConsumerTurn) -> None:
    """Run one pass of the poll loop: the background handles the poll event, then this thread processes the
    background's events (N-POLL-01)."""
    turn.wait(WaitingConsumerCall(ApiCall.POLL))
    if turn.member.subscription.subscribed:
        work_off(turn)
        _process_until_callback(turn)


def process_background_events(turn: ConsumerTurn) -> None:
    """Run this thread's part of one pass, for a consumer whose reader also has a part (``work_off`` is the
    background's)."""
    turn.wait(WaitingConsumerCall(ApiCall.BACKGROUND_EVENTS))
    _process_until_callback(turn)


def work_off(turn: ConsumerTurn) -> None:
    """Run the background's part of one pass of the poll loop."""
    if turn.member.metadata_arrived:
        turn.member = turn.member._replace(metadata_requested=False)
    reconciling.start(turn, polled=True)
    _match_pattern(turn)
    changed = turn.member.subscription_changed
    turn.member = turn.member._replace(subscription_changed=False)  # N-TR-14
    if changed and turn.member.state is ConsumerState.UNSUBSCRIBED:
        turn.join()  # N-TR-01
    turn.set_deadline(MemberTimer.POLL, turn.member.settings.max_poll_interval_ms)
    if turn.member.state is ConsumerState.STALE:  # N-TR-10
        turn.member = turn.member._replace(back=True)
        _come_back(turn)


def _match_pattern(turn: ConsumerTurn) -> None:
    """Match the client-side pattern; a new match is a change of the subscription (K-JOIN-15)."""
    subscription = turn.member.subscription.match(turn.member.cluster)
    if subscription != turn.member.subscription:
        turn.member = turn.member._replace(subscription=subscription, subscription_changed=True)


def _come_back(turn: ConsumerTurn) -> None:
    """Join again after the listener has been called for the lost partitions (N-TR-10)."""
    if turn.member.state is not ConsumerState.STALE or not turn.member.back:
        return
    waiting = (*turn.waiting.background_events, *turn.member.queue)
    if not any(isinstance(each, ListenerCall) and each.reason is Reason.STALE for each in waiting):
        turn.join()


def _process_until_callback(turn: ConsumerTurn) -> None:
    """Process queued events up to the next listener call. Events queued meanwhile wait for the next pass of this poll's
    loop, or for the next poll if this one throws."""
    while True:
        waiting = turn.waiting
        if not waiting.background_events:
            if waiting.api is ApiCall.UNSUBSCRIBE and waiting.failure is not None and _harmless(waiting.failure):
                turn.wait(replace(waiting, failure=None, resting=True))
                return  # the leave gets time to end before the queue is read again (N-TR-07)
            if waiting.failure is not None or not turn.member.queue:
                return
            if waiting.drained and waiting.api is ApiCall.UNSUBSCRIBE and not turn.member.leaving:
                return  # the unsubscribe is over; other events wait for a poll
            if waiting.drained and waiting.api is ApiCall.BACKGROUND_EVENTS:
                turn.wait(replace(waiting, again=True))
                return
            if waiting.drained and waiting.api is ApiCall.POLL:
                work_off(turn)
            waiting = replace(turn.waiting, background_events=turn.member.queue, drained=True)
            turn.member = turn.member._replace(queue=())
        event = waiting.background_events[0]
        turn.wait(replace(waiting, background_events=waiting.background_events[1:]))
        if isinstance(event, Failure):
            _throw(turn, event)
        elif (
            event.reason is Reason.ASSIGNMENT
            and waiting.api is ApiCall.UNSUBSCRIBE
            and turn.rules.poll_replaces_assignment
        ):
            turn.member = turn.member._replace(reconciliation=None)  # the application no longer wants the assignment
        elif event.reason is not Reason.ASSIGNMENT or reconciling.take_over(turn):
            _call(turn, event)
            return


def _harmless(failure: Failure) -> bool:
    """Return whether an unsubscribe ignores the failure (N-TR-07)."""
    return failure.kind is FailureKind.ANSWER and failure.error in _HARMLESS


def _call(turn: ConsumerTurn, call: ListenerCall) -> None:
    turn.wait(replace(turn.waiting, running=call))
    turn.listen(call.call, call.partitions)


def _throw(turn: ConsumerTurn, failure: Failure) -> None:
    if turn.waiting.failure is None:
        turn.wait(replace(turn.waiting, failure=failure))


def listener_done(turn: ConsumerTurn, error: str | None) -> None:
    """Continue after a listener call: the background by the call's reason, this thread with its tasks."""
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
        case Reason.LEAVE:
            _say_goodbye(turn, began=True)  # even if the callback threw (N-TR-07)
        case Reason.CLOSE:
            _say_goodbye(turn)
        case Reason.FENCED:
            turn.release()
            if turn.member.state is ConsumerState.FENCED:
                turn.join()  # N-TR-06: even if the callback threw
        case Reason.STALE:
            turn.release()
            _come_back(turn)
        case Reason.FATAL:
            turn.release()
    if ran.reason is not Reason.CLOSE:
        _process_until_callback(turn)


# --- leaving ---


def unsubscribe(turn: ConsumerTurn) -> None:
    """Drop the subscription: call the listener for the owned partitions, then leave (N-TR-07)."""
    turn.wait(WaitingConsumerCall(ApiCall.UNSUBSCRIBE))
    turn.member = turn.member._replace(option=CloseOption.DEFAULT)
    began = turn.member.state.in_group
    if began:
        turn.move(ConsumerState.PREPARE_LEAVING)
        turn.member = turn.member._replace(leaving=True)
        if turn.give_up(_farewell(turn), Reason.LEAVE):
            _process_until_callback(turn)
            return
    _say_goodbye(turn, began=began)
    _process_until_callback(turn)


def close(turn: ConsumerTurn, option: CloseOption) -> None:
    """Close the member: commit, call the listener, leave (N-CLOSE-01). The driver enforces the timeout of close: it may
    drop the member at any time."""
    member = turn.member
    applies = option if turn.rules.close_options_honoured else CloseOption.DEFAULT  # K-LEAVE-01
    turn.member = turn.member._replace(closed=True, option=applies)
    turn.wait(WaitingConsumerCall(ApiCall.CLOSE))
    owned = member.subscription.owned
    if member.settings.auto_commit and owned and member.coordinator.node is not None:
        commit_id = turn.number()
        turn.wait(replace(turn.waiting, commit_id=commit_id))
        turn.emit(Commit(commit_id, owned))
    else:
        committed(turn)


def committed(turn: ConsumerTurn) -> None:
    """Continue the close after its commit, with or without success. This thread calls the listener itself, drops the
    queued tasks, and then starts the leave."""
    turn.member = turn.member._replace(queue=())
    turn.wait(replace(turn.waiting, background_events=(), commit_id=None))
    for timer in (MemberTimer.RETRY, MemberTimer.LOOKUP):
        turn.drop_deadline(timer)
    call, owned = given_up(turn)
    if owned and turn.member.settings.listener:
        _call(turn, ListenerCall(call, owned, Reason.CLOSE))
    else:
        _say_goodbye(turn)


@varies
def given_up(turn: ConsumerTurn) -> tuple[Call, frozenset[TopicPartition]]:
    """Return the listener call of a close, and its partitions (N-TR-07)."""
    return _farewell(turn), turn.member.subscription.owned


def _farewell(turn: ConsumerTurn) -> Call:
    return Call.REVOKED if turn.member.epoch > 0 else Call.LOST


def _say_goodbye(turn: ConsumerTurn, *, began: bool = False) -> None:
    """Drop partitions and subscription, and leave. A member in the group sends a leave heartbeat; a FENCED one is out
    already; STALE and FATAL keep their state (N-TR-07). ``began``: the leave had begun, whatever the state is now."""
    state = turn.member.state
    if began or state.in_group or state is ConsumerState.PREPARE_LEAVING:
        turn.member = turn.member._replace(subscription=SubscriptionState())
        turn.release()  # in this order, so that the application's thread does not learn of it (N-CLOSE-01)
    else:
        turn.release()
        turn.remember(frozenset())
        turn.left()
    turn.member = turn.member._replace(subscription=SubscriptionState(), subscription_changed=False)
    if state is ConsumerState.FENCED:
        turn.move(ConsumerState.UNSUBSCRIBED)
        return
    if state.in_group:
        turn.move(ConsumerState.PREPARE_LEAVING)
    if turn.member.state is ConsumerState.PREPARE_LEAVING:
        turn.member = turn.member._replace(leaving=True, expired=False, epoch=leave_epoch(turn, turn.member.option))
        turn.move(ConsumerState.LEAVING)


def finish(turn: ConsumerTurn) -> None:
    """End the step: the application's call returns unless it waits for the listener, the leave, or a commit."""
    waiting = turn.member.waiting
    if waiting is None or waiting.running is not None or waiting.commit_id is not None:
        return
    if waiting.api is ApiCall.UNSUBSCRIBE and turn.member.leaving and not waiting.resting:
        _process_until_callback(turn)
        waiting = turn.waiting
        if waiting.running is not None:
            return
    if waiting.resting:  # until the next event
        waiting = replace(waiting, resting=False)
        turn.wait(waiting)
    thrown = waiting.api is ApiCall.UNSUBSCRIBE and waiting.failure is not None
    if waiting.api in (ApiCall.UNSUBSCRIBE, ApiCall.CLOSE) and turn.member.leaving and not thrown:
        return
    if waiting.api is ApiCall.UNSUBSCRIBE and not thrown:  # for close, the member then counts as new
        turn.member = turn.member._replace(remembered=replace(turn.member.remembered, joined=False))
    turn.member = turn.member._replace(waiting=None)
    timed_out = waiting.failure is not None and waiting.failure.error is ErrorCode.REQUEST_TIMED_OUT
    failure = None if timed_out and waiting.api is ApiCall.UNSUBSCRIBE else waiting.failure
    turn.emit(Returned(failure, again=waiting.again))
