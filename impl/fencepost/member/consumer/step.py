"""The step function of a KIP-848 consumer.

``consumer_step(member, event)`` returns the member after the event, and the commands that the event caused, in order.
It works like the classic member's, with the same events and commands.

The Java consumer has two threads. The *background* (``heartbeats``, ``answers``, ``reconciling``) keeps the state of
8.9: it sends heartbeats, receives assignments, and leaves when the application stops polling. The *application's
thread* (``application``) runs inside ``poll``, ``unsubscribe`` or ``close``. Only there are listeners called; the
background queues tasks for it. Here the background runs at the end of every step, and the application's thread runs
only in the application's events. So a slow listener is a late ``ListenerDone``: responses, fences and timers can come
before it.

The host handles offsets and positions, fetching, interval commits, and the timeout of ``close``.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.messages import ResponseBody

from .. import lookup
from ..events import (
    Answered,
    Close,
    Command,
    CommitFinished,
    CommitRefused,
    CoordinatorFound,
    CoordinatorLost,
    EnforceRebalance,
    Failure,
    FailureKind,
    ListenerDone,
    LookupFailed,
    MemberEvent,
    MemberTimer,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    PollPart,
    RequestLost,
    RequestMetadata,
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
    Unsubscribe,
)
from ..state import Coordinator
from ..subscription import SubscriptionState
from ..turn import look, take
from . import answers, application, heartbeats, reconciling
from .state import ConsumerMember, ConsumerState
from .turn import ConsumerTurn, armed


def consumer_step(
    member: ConsumerMember, event: MemberEvent, jitter: float = 1.0
) -> tuple[ConsumerMember, tuple[Command, ...]]:
    """Handle one event. ``jitter``: the factor, 0.8 to 1.2, of a back-off that this step may start (N-HB-07).

    Raises ``IllegalEvent`` for an event that cannot happen now: a call on a closed member or while another call has not
    returned, ``ListenerDone`` without a listener running, a timer that is not set. Raises ``ValueError`` for a
    subscription that Kafka refuses (K-SUB-01).
    """
    look(ConsumerMember, member, event)
    waiting = member.waiting
    call = None if waiting is None else waiting.api.value
    listening = waiting is not None and waiting.running is not None
    before = take(member, event, armed(member), call=call, listening=listening)
    turn = ConsumerTurn(member, event.at_ms, jitter)
    _handle(turn, event)
    heartbeats.have_turn(turn)
    application.finish(turn)
    if turn.member.epoch != 0 or turn.member.state is ConsumerState.FATAL:
        turn.member = turn.member._replace(named=True)
    turn.arm(before, armed(turn.member))
    return turn.member, tuple(turn.commands)


def _handle(turn: ConsumerTurn, event: MemberEvent) -> None:
    match event:
        case Poll(part=PollPart.WHOLE):
            application.poll(turn)
        case Poll(part=PollPart.BACKGROUND):
            application.work_off(turn)
        case Poll(part=PollPart.BACKGROUND_EVENTS):
            application.process_background_events(turn)
        case Poll(part=part):
            raise IllegalEvent(f"a poll has no such part for a member of a consumer group: {part.value}")
        case ListenerDone(error=error):
            application.listener_done(turn, error)
        case Answered(request_id=request_id, body=body):
            _answered(turn, request_id, body)
        case MemberTimerFired(timer=timer):
            turn.drop_deadline(timer)
            if timer is MemberTimer.RETRY:
                reconciling.commit_again(turn)
        case RequestLost(request_id=request_id):
            if any(sent.request_id == request_id for sent in turn.member.sent):
                heartbeats.lost(turn)
        case CoordinatorLost(moved=True):
            heartbeats.let_go(turn)
        case CoordinatorLost():
            heartbeats.forget_coordinator(turn, disconnected=True)
        case CoordinatorFound(node=node):
            turn.member = turn.member._replace(coordinator=Coordinator(node=node))
            turn.set_deadline(MemberTimer.LOOKUP, turn.backoff(0))  # K-FIND-01: the least gap between two look-ups
        case LookupFailed(error=error_code):
            _lookup_failed(turn, error_code)
        case MetadataChanged(topics=topics):
            turn.member = turn.member._replace(cluster={topic.name: topic for topic in topics}, metadata_arrived=True)
        case CommitFinished(commit_id=commit_id, result=result):
            waiting = turn.member.waiting
            if waiting is not None and waiting.commit_id == commit_id:
                application.committed(turn)
            else:
                reconciling.commit_finished(turn, commit_id, result)
        case Subscribe(topics=names):
            _subscribed(turn, turn.member.subscription.subscribe(names))
        case SubscribePattern(pattern=pattern):
            _subscribed(turn, turn.member.subscription.subscribe_pattern(pattern).match(turn.member.cluster))
        case SubscribeRegex(regex=regex):
            _subscribed(turn, turn.member.subscription.subscribe_regex(regex))
        case Unsubscribe():
            application.unsubscribe(turn)
        case Close(option=option):
            application.close(turn, option)
        case EnforceRebalance():
            pass  # N-POLL-04
        case CommitRefused():
            pass  # only heartbeats change the member's state (N-CMT-03)


def _answered(turn: ConsumerTurn, request_id: int, body: ResponseBody) -> None:
    sent = heartbeats.in_flight(turn, request_id)
    if sent is None:
        return
    if not isinstance(body, ConsumerGroupHeartbeatResponse):
        raise IllegalEvent(f"{type(body).__name__} does not answer a heartbeat to a consumer group")
    answers.answered(turn, sent, body)


def _lookup_failed(turn: ConsumerTurn, error: ErrorCode | None) -> None:
    """Set the back-off before the next look-up; a poll throws an error that is not retriable (K-FIND-01)."""
    coordinator = turn.member.coordinator
    attempts = coordinator.failed_attempts
    turn.member = turn.member._replace(coordinator=replace(coordinator, looking_up=False, failed_attempts=attempts + 1))
    turn.set_deadline(MemberTimer.LOOKUP, turn.backoff(attempts))
    if error is not None and error not in lookup.RETRIABLE:
        turn.put(Failure(FailureKind.ANSWER, error))


def _subscribed(turn: ConsumerTurn, subscription: SubscriptionState) -> None:
    """Store a subscription: the next poll joins, or the next due heartbeat contains the change (N-TR-14)."""
    changed = subscription != turn.member.subscription
    turn.member = turn.member._replace(subscription=subscription, subscription_changed=True)
    if changed and subscription.regex is None:
        everything = subscription.pattern is not None
        turn.emit(RequestMetadata(frozenset() if everything else subscription.topics))
