"""The step function of a classic consumer.

``step(member, event)`` returns the member after the event, and the commands that the event caused, in order. It has no
clock, no randomness and no memory: each event carries its time, the caller passes the jitter of back-offs, and two runs
with the same arguments give the same results.

A member has three parts, which the Java consumer spreads over two threads. The *join loop* (``joining``) runs inside
``poll``: it prepares, joins, and adopts the assignment; on the way it calls the rebalance listener. The *handlers*
(``answers``) run whenever a response arrives; they change the state, and leave the outcome of the join for the next
poll. The *heartbeat thread* (``heartbeats``) sends heartbeats, and takes the member out of the group if the application
stops polling. It can do so in the middle of a join; K-ST-12, K-ST-15 and K-ST-16 are the rules for that race.
"""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.messages import HeartbeatResponse, JoinGroupResponse, ResponseBody, SyncGroupResponse

from . import answers, completing, heartbeats, joining, leading, leaving, lookup
from .completing import Progress
from .events import (
    Answered,
    Close,
    Command,
    CommitFinished,
    CommitRefused,
    CoordinatorFound,
    CoordinatorLost,
    EnforceRebalance,
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
from .state import CallStage, Member, SentKind
from .subscription import SubscriptionState
from .turn import Turn, armed, look, take


def step(member: Member, event: MemberEvent, jitter: float = 1.0) -> tuple[Member, tuple[Command, ...]]:
    """Handle one event. ``jitter``: the factor, 0.8 to 1.2, of a back-off that this step may start (K-HB-05).

    Raises ``IllegalEvent`` for an event that cannot happen now: a call on a closed member or while another call has not
    returned, ``ListenerDone`` without a listener running, a timer that is not set. Raises ``ValueError`` for a
    subscription that Kafka refuses (K-SUB-01).
    """
    look(Member, member, event)
    waiting = member.waiting
    call = None if waiting is None else waiting.stage.value
    before = take(member, event, armed(member), call=call, listening=waiting is not None)
    turn = Turn(member, event.at_ms, jitter)
    _handle(turn, event)
    heartbeats.have_turn(turn)
    turn.arm(before, armed(turn.member))
    return turn.member, tuple(turn.commands)


def _handle(turn: Turn, event: MemberEvent) -> None:
    match event:
        case Poll(part=PollPart.WHOLE):
            joining.poll(turn)
        case Poll(part=PollPart.RESUMED):
            joining.join_if_needed(turn)
        case Poll(part=part):
            raise IllegalEvent(f"a classic member's poll has no such part: {part.value}")
        case ListenerDone(error=error):
            _listener_done(turn, error)
        case Answered(request_id=request_id, body=body):
            _answered(turn, request_id, body)
        case MemberTimerFired(timer=timer):
            if timer in (MemberTimer.RETRY, MemberTimer.LOOKUP):
                turn.drop_deadline(timer)
        case RequestLost(request_id=request_id):
            if any(sent.request_id == request_id for sent in turn.member.sent):
                lookup.forget(turn, disconnected=True)  # K-ERR-13: for any kind of request
        case CoordinatorLost():
            lookup.forget(turn, disconnected=True)
        case CoordinatorFound(node=node):
            lookup.found(turn, node)
        case LookupFailed(error=error_code):
            lookup.failed(turn, error_code)
        case MetadataChanged(topics=topics):
            cluster = {topic.name: topic for topic in topics}
            version = turn.member.metadata_version + 1
            turn.member = turn.member._replace(cluster=cluster, metadata_version=version, metadata_requested=False)
            leading.metadata_arrived(turn)
        case CommitFinished(commit_id=commit_id, result=result):
            waiting = turn.member.waiting
            if waiting is not None and waiting.commit_id == commit_id:
                turn.member = turn.member._replace(waiting=None)
                leaving.committed(turn, waiting.option)
            else:
                completing.commit_finished(turn, commit_id, result)
        case CommitRefused(error=refusal):
            _commit_refused(turn, refusal)
        case Subscribe(topics=topics_named):
            _subscribed(turn, turn.member.subscription.subscribe(topics_named))
        case SubscribePattern(pattern=pattern):
            subscription = turn.member.subscription.subscribe_pattern(pattern)
            _subscribed(turn, subscription.match(turn.member.cluster))
        case SubscribeRegex():
            raise ValueError("a classic group cannot subscribe to a regex; use SubscribePattern")  # K-SUB-01
        case Unsubscribe():
            leaving.unsubscribe(turn)
        case EnforceRebalance(reason=reason):
            turn.request_rejoin(reason or "rebalance enforced by user")  # K-JOIN-01
        case Close(option=option):
            leaving.close(turn, option)


def _subscribed(turn: Turn, subscription: SubscriptionState) -> None:
    """Store a changed subscription and request metadata for it, before the two are compared (K-JOIN-10, 18)."""
    changed = subscription != turn.member.subscription
    turn.member = turn.member._replace(subscription=subscription)
    if changed:
        turn.member = turn.member._replace(metadata_requested=True)
        everything = subscription.pattern is not None
        turn.emit(RequestMetadata(frozenset() if everything else subscription.watched))


def _commit_refused(turn: Turn, error: ErrorCode) -> None:
    """Handle an error of the member's commit: after REBALANCE_IN_PROGRESS the next poll joins again; after any other
    error the member leaves its generation. It keeps its id if only the generation is wrong (K-OFF-12, K-OFF-13)."""
    if error is ErrorCode.REBALANCE_IN_PROGRESS:
        turn.request_rejoin("offset commit failed since group is already rebalancing")
    else:
        reason = f"encountered {error.name} from OFFSET_COMMIT response"
        turn.reset(reason, keep_id=error is ErrorCode.ILLEGAL_GENERATION)


def _answered(turn: Turn, request_id: int, body: ResponseBody) -> None:
    sent = next((each for each in turn.member.sent if each.request_id == request_id), None)
    if sent is None:
        return
    turn.member = turn.member._replace(sent=tuple(each for each in turn.member.sent if each is not sent))
    match sent.kind, body:
        case SentKind.JOIN, JoinGroupResponse():
            answers.joined(turn, sent, body)
        case SentKind.SYNC, SyncGroupResponse():
            answers.synced(turn, sent, body)
        case SentKind.HEARTBEAT, HeartbeatResponse():
            heartbeats.answered(turn, sent, body)
        case SentKind.LEAVE, _:
            pass  # the member does not wait for this response (K-LEAVE-01)
        case _:
            raise IllegalEvent(f"{type(body).__name__} does not answer a {sent.kind.value} request")


def _listener_done(turn: Turn, error: str | None) -> None:
    """Resume the call that the listener interrupted."""
    waiting = turn.member.waiting
    assert waiting is not None
    match waiting.stage:
        case CallStage.PREPARE:
            if completing.prepared(turn, waiting, error) is Progress.OVER:
                joining.join_if_needed(turn, prepared=True)
        case CallStage.COMPLETE_REVOKED:
            completing.revoked(turn, waiting, error)
        case CallStage.COMPLETE_ASSIGNED:
            if completing.assigned(turn, waiting, error) is Progress.OVER:
                joining.join_done(turn)
                joining.join_if_needed(turn)
        case CallStage.UNSUBSCRIBE:
            leaving.unsubscribed(turn, error)
        case CallStage.CLOSE:
            leaving.closed(turn, waiting.option, error)
        case CallStage.CLOSE_COMMIT:
            raise IllegalEvent("ListenerDone: no listener is running; the close waits for its commit")
