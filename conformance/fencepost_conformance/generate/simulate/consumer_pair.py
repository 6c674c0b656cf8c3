"""A KIP-848 member next to its model: the same inputs must have the same visible effects.

DRIVEN: the step function of the consumer. MODELLED: ``ClientModel``, written independently. The model has no clock, so
the pair decides when a timer expires, by moving the member's deadlines. Listener calls take as long as the pair likes:
answers, fences and timers may come in between.

After every step both must have the same timers, with the same delays where the step has set them. The model's timers
are in ``fencepost_model.member.consumer.timers``. The pair fires a timer where either side would let it expire.

Coordinator look-ups and metadata requests are not compared, because the model leaves them to its caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.member import events as ev
from fencepost.member.consumer import ConsumerMember, ConsumerSettings, consumer_step
from fencepost.member.consumer.state import ListenerCall
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse, TopicPartitions
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import Topic
from fencepost_model.machines import FATAL
from fencepost_model.member import inputs as mi
from fencepost_model.member import outputs as mo
from fencepost_model.member.consumer import ClientConfig, ClientModel, ClientState
from fencepost_model.member.consumer import inputs as ci
from fencepost_model.member.consumer import timers as ct
from fencepost_model.member.consumer.model import ClientSuccessor

from .alarms import Alarms
from .beside import NEVER, Beside, Disagreement, Effects, Input, same_effects, same_state

T, U, V = (name * 16 for name in (b"T", b"U", b"V"))
TOPICS = {T: Topic("t", T, 2), U: Topic("u", U, 1), V: Topic("v", V, 1)}
#: Targets that the coordinator may send, by topic; V is a topic that the client may not know.
TARGETS: tuple[tuple[tuple[bytes, tuple[int, ...]], ...], ...] = (
    (),
    ((T, (0,)),),
    ((T, (0, 1)),),
    ((T, (1,)), (U, (0,))),
    ((T, (0,)), (V, (0,))),
)
ERRORS = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
_BEATS = (ev.MemberTimer.HEARTBEAT, ev.MemberTimer.BACKOFF)


class ConsumerPair(Beside):
    """A member of a consumer group."""

    def __init__(self, settings: ConsumerSettings) -> None:
        config = ClientConfig(
            settings.group_id,
            "m",
            settings.group_instance_id,
            settings.rack,
            settings.server_assignor,
            settings.max_poll_interval_ms,
            settings.auto_commit,
            settings.listener,
            settings.version,
            settings.profile,
        )
        self.model = ClientModel(config)
        self.member = ConsumerMember(settings, "m")
        self.state: ClientState = self.model.initial()
        self.now = 0
        self.requests: tuple[tuple[int, int], ...] = ()  #: in flight: the member's request id and the model's
        self.alarms = Alarms()  #: the member's timers
        self.timers = ct.Timers()  #: the model's timers
        self._delays = ct.Delays(
            settings.max_poll_interval_ms,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
            settings.profile.fault_late_heartbeat_counts,
        )
        self._commit: tuple[int, int] | None = None
        self._topics: tuple[bytes, ...] = (T, U)
        self._know((T, U))

    # --- inputs ---

    def inputs(self) -> list[Input]:
        member, state = self.member, self.state
        found: list[Input] = [Input("topics", topics) for topics in ((T, U), (T,), (T, U, V)) if topics != self._topics]
        if not member.closed and member.waiting is None:
            found += [Input("poll"), Input("enforce"), Input("unsubscribe")]
            if member.subscription.regex is None:
                found += [Input("subscribe", topics) for topics in ("t", "tu")]
            if member.subscription.regex is not None or not member.subscription.subscribed:
                found += [Input("regex", regex) for regex in ("t.*", "u|v")]
            found += [Input("close", option) for option in ev.CloseOption]
        if state.running is not None:
            found += [Input("listener"), Input("listener", "throws")]
        if member.coordinator.node is None:
            if not member.closed:
                found += [Input("coordinator"), Input("no coordinator")]
        else:
            found.append(Input("disconnected"))
        running = {*self.alarms.running, *self.timers.running(state)}
        if running & {timer.value for timer in _BEATS}:
            found.append(Input("heartbeat due"))
        if ev.MemberTimer.POLL.value in running:
            found.append(Input("poll expired"))
        if ev.MemberTimer.LOOKUP.value in running:
            found.append(Input("look-up due"))
        for position in range(len(self.requests)):
            found += [Input("answer", body, position) for body in self._answers()]
            found.append(Input("lost", None, position))
        if self._commit is not None:
            found += [Input("committed", result) for result in ev.CommitResult]
        if ev.MemberTimer.RETRY.value in running:
            found.append(Input("commit due"))
        return found

    def _answers(self) -> list[ConsumerGroupHeartbeatResponse]:
        epoch = max(self.state.epoch, 0) + 1
        good = (
            ConsumerGroupHeartbeatResponse(
                ErrorCode.NONE,
                member_id="m",
                member_epoch=epoch,
                heartbeat_interval_ms=5_000,
                assignment=tuple(TopicPartitions(*row) for row in rows),
            )
            for rows in TARGETS
        )
        return [
            ConsumerGroupHeartbeatResponse(
                ErrorCode.NONE, member_id="m", member_epoch=epoch, heartbeat_interval_ms=5_000
            ),
            ConsumerGroupHeartbeatResponse(ErrorCode.NONE, member_id="m", member_epoch=-1, heartbeat_interval_ms=5_000),
            *good,
            *map(ConsumerGroupHeartbeatResponse, ERRORS),
        ]

    def _take(self, what: Input) -> None:
        self.now += 1
        now = self.now
        match what:
            case Input("poll"):
                self._give(mi.Poll(), ev.Poll(now))
            case Input("listener", throws):
                self._give(
                    ci.ListenerReturned(threw=throws is not None), ev.ListenerDone(now, "thrown" if throws else None)
                )
            case Input("enforce"):
                self._give(mi.EnforceRebalance(), ev.EnforceRebalance(now))
            case Input("subscribe", str() as topics):
                self._give(mi.Subscribe(frozenset(topics)), ev.Subscribe(now, frozenset(topics)))
            case Input("regex", str() as regex):
                self._give(ci.SubscribeRegex(regex), ev.SubscribeRegex(now, regex))
            case Input("unsubscribe"):
                self._give(mi.Unsubscribe(), ev.Unsubscribe(now))
            case Input("close", ev.CloseOption() as option):
                self._give(mi.Close(mi.CloseOption[option.name]), ev.Close(now, option))
            case Input("topics", tuple() as topics):
                self._know(topics)
            case Input("coordinator"):
                self._give(mi.CoordinatorFound(), ev.CoordinatorFound(now, node=1))
            case Input("no coordinator"):
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
                self._give(mi.CoordinatorFound(error), ev.LookupFailed(now, error))
            case Input("disconnected"):
                self._give(ci.Disconnected(), ev.CoordinatorLost(now))
            case Input("heartbeat due"):
                self._beat()
            case Input("look-up due"):
                self._look_up()
            case Input("poll expired"):
                self._fire(mi.PollExpired(), ev.MemberTimer.POLL)
            case Input("answer", ConsumerGroupHeartbeatResponse() as body, position):
                ours, theirs = self.requests[position]
                self._give(ci.HeartbeatAnswered(theirs, body), ev.Answered(now, request_id=ours, body=body))
            case Input("lost", _, position):
                ours, theirs = self.requests[position]
                self._give(ci.HeartbeatAnswered(theirs, None), ev.RequestLost(now, request_id=ours))
            case Input("committed", ev.CommitResult() as result) if self._commit is not None:
                ours, theirs = self._commit
                self._commit = None
                again = result is ev.CommitResult.RETRIABLE
                self._give(ci.CommitEnded(theirs, again), ev.CommitFinished(now, commit_id=ours, result=result))
            case Input("commit due"):
                self._fire(ci.CommitDue(), ev.MemberTimer.RETRY)
            case _:
                raise ValueError(f"no input {what}")

    # --- both sides ---

    def _know(self, topics: tuple[bytes, ...]) -> None:
        self._topics = topics
        known = frozenset((each, TOPICS[each].name) for each in topics)
        self._give(ci.TopicsKnown(known), ev.MetadataChanged(self.now, tuple(TOPICS[each] for each in topics)))

    def _due(self, timer: ev.MemberTimer) -> None:
        self.member = self.member._replace(deadlines={**self.member.deadlines, timer: self.now})

    def _fire(self, theirs: ci.ClientInput, timer: ev.MemberTimer) -> None:
        self._due(timer)
        self.alarms = self.alarms.without(timer)
        try:
            self._give(theirs, ev.MemberTimerFired(self.now, timer))
        except (IllegalEvent, ValueError) as refused:
            raise Disagreement(f"only one side lets the {timer.value} timer expire: {refused}", ("N-HB-07",)) from None

    def _beat(self) -> None:
        """Let the interval and the minimum gap pass. When both run, the first of the two has no effect."""
        due = [timer for timer in _BEATS if timer.value in self.alarms.running] or [ev.MemberTimer.HEARTBEAT]
        for timer in due[:-1]:
            self._quietly(timer)
        self._fire(mi.HeartbeatDue(), due[-1])

    def _look_up(self) -> None:
        """Check that nothing happens but another look-up."""
        self._quietly(ev.MemberTimer.LOOKUP)
        self.timers = self.timers.looks_again()

    def _quietly(self, timer: ev.MemberTimer) -> None:
        self._due(timer)
        self.member, commands = consumer_step(self.member, ev.MemberTimerFired(self.now, timer))
        seen, _ = _our_effects(commands)
        same_effects(seen, [], ("N-HB-07", "K-FIND-01"))
        self.alarms = self.alarms.without(timer).after(commands)

    def _same_timers(self, before: ClientState, theirs: ci.ClientInput, successor: ClientSuccessor) -> None:
        self.timers = ct.after(self._delays, self.timers, before, theirs, successor)
        same_state({"timers": self.alarms.running}, {"timers": self.timers.running(self.state)}, successor.rules)

    def _give(self, theirs: ci.ClientInput, ours: ev.MemberEvent) -> None:
        before = self.state
        (successor,) = self.model.successors(before, theirs)
        self.state = successor.state
        expected, numbered = _their_effects(successor.outputs)
        self.member, commands = consumer_step(self.member, ours)
        self.alarms = self.alarms.kept().after(commands)
        seen, numbers = _our_effects(commands)
        same_effects(seen, expected, successor.rules)
        self._pair_requests(list(zip(numbers, numbered, strict=True)), seen)
        same_state(self._ours(), self._theirs(), successor.rules)
        self._same_timers(before, theirs, successor)
        self.member = self.member._replace(deadlines=dict.fromkeys(self.member.deadlines, NEVER))

    def _pair_requests(self, new: list[tuple[int, int]], seen: Effects) -> None:
        kinds = [what for what, _ in seen if what in ("sends", "commits")]
        for kind, pair in zip(kinds, new, strict=True):
            if kind == "commits":
                self._commit = pair
            else:
                self.requests = (*self.requests, pair)
        flying = {sent.request_id for sent in self.member.sent}
        self.requests = tuple(pair for pair in self.requests if pair[0] in flying)

    def _ours(self) -> dict[str, object]:
        member, subscription = self.member, self.member.subscription
        return {
            "state": member.state.name,
            "epoch": member.epoch,
            "commits as": member.commits_as,
            "coordinator": member.coordinator.node is not None,
            "owned": frozenset(map(tuple, subscription.owned)),
            "not to be fetched": frozenset(map(tuple, subscription.pending_revocation)),
            "not told yet": frozenset(map(tuple, subscription.pending_callback)),
            "current": member.current and (member.current.epoch, frozenset(map(tuple, member.current.partitions))),
            "target": member.target and (member.target.epoch, frozenset(map(tuple, member.target.partitions))),
            "reconciles": member.reconciliation is not None,
            "in flight": member.in_flight is not None,
            "unanswered": len(member.sent),
            "leaving": member.leaving,
            "waiting": member.waiting is not None,
            "queue": [
                (each.call.value, frozenset(map(tuple, each.partitions)))
                if isinstance(each, ListenerCall)
                else ("throw", each.error and each.error.name)
                for each in member.queue
            ],
        }

    def _theirs(self) -> dict[str, object]:
        state = self.state
        epoch = -1 if state.state == FATAL else state.epoch
        return {
            "state": state.state,
            "epoch": state.epoch,
            "commits as": ("m" if state.known_member else "", epoch if epoch > 0 else -1),
            "coordinator": state.coordinator,
            "owned": state.owned,
            "not to be fetched": state.blocked,
            "not told yet": state.fresh,
            "current": state.current and tuple(state.current),
            "target": state.target and tuple(state.target),
            "reconciles": state.work is not None,
            "in flight": state.in_flight is not None,
            "unanswered": len(state.late) + len(state.ignored) + (state.in_flight is not None),
            "leaving": state.leaving,
            "waiting": bool(state.call),
            "queue": [(task.call, task.error if task.call == "throw" else task.partitions) for task in state.queue],
        }

    def key(self) -> object:
        """Return a key that is equal for pairs that behave alike; request ids, local epochs and time do not count."""
        state, member = self.state, self.member
        target, current = state.target, state.current
        plain = state._replace(
            next_request=0,
            in_flight=None if state.in_flight is None else 0,
            leave_request=None if state.leave_request is None else 0,
            close_commit=None if state.close_commit is None else 0,
            late=frozenset(),
            ignored=frozenset(),
            epoch=min(state.epoch, 2),
            target=target and target._replace(epoch=0),
            current=current and current._replace(epoch=0),
            sent_fields=state.sent_fields._replace(owned=None),
            work=state.work and state.work._replace(commit=0, local=state.work.local._replace(epoch=0)),
        )
        same = target is not None and current is not None and target.epoch == current.epoch
        return (
            plain,
            same,
            state.sent_fields.owned == current,
            tuple(sent.beat for sent in member.sent),
            member.failed_attempts > 0,
            self._commit is None,
            member.subscription,
            member.last_sent.topics,
            member.last_sent.regex,
            frozenset(self.alarms.running),
            self.timers._replace(begun=(), failures=min(self.timers.failures, 5)),
        )


def _our_effects(commands: Sequence[ev.Command]) -> tuple[Effects, list[int]]:
    effects: Effects = []
    numbers: list[int] = []
    for command in commands:
        match command:
            case ev.Send(request_id=number, body=body):
                effects.append(("sends", body))
                numbers.append(number)
            case ev.Commit(commit_id=number, partitions=partitions):
                effects.append(("commits", frozenset(map(tuple, partitions))))
                numbers.append(number)
            case ev.Listener(call=call, partitions=partitions):
                effects.append((call.value, frozenset(map(tuple, partitions))))
            case ev.Returned(failure=None):
                effects.append(("returns", None))
            case ev.Returned(failure=ev.Failure() as failure):
                effects.append(("throws", failure.error.name if failure.error is not None else "KafkaException"))
            case _:
                pass
    return effects, numbers


def _their_effects(outputs: Sequence[mo.MemberOutput]) -> tuple[Effects, list[int]]:
    effects: Effects = []
    numbers: list[int] = []
    for output in outputs:
        match output:
            case mo.Send(request=number, body=body):
                effects.append(("sends", body))
                numbers.append(number)
            case mo.Commit(request=number, partitions=partitions):
                effects.append(("commits", partitions))
                numbers.append(number)
            case mo.Callback(kind=kind, partitions=partitions):
                effects.append((kind, partitions))
            case mo.Returns():
                effects.append(("returns", None))
            case mo.Raise(error=error):
                effects.append(("throws", error))
            case _:
                pass
    return effects, numbers
