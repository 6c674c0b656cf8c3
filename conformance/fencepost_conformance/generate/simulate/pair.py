"""A classic member next to its model: the same inputs must have the same visible effects.

DRIVEN: the step function of the classic consumer. MODELLED: ``MemberModel``, written independently. The model has no
clock, so the pair decides when a timer expires, by moving the member's deadlines. The model's listener takes no time,
so here a listener returns or throws at once.

After every step both must have the same timers, with the same delays where the step has set them. The model's timers
are in ``fencepost_model.member.timers``. The pair fires a timer where either side would let it expire.

The time of coordinator look-ups and the wording of reasons are not compared, because the model leaves them to its
caller. A member that forgets its coordinator loses its other open requests; the pair reports that to the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencepost.member import Member, MemberSettings, step
from fencepost.member import events as ev
from fencepost.member.assignors.base import RebalanceProtocol
from fencepost.member.turn import THREAD_TIMERS
from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import JoinGroupRequest, LeaveGroupRequest, RequestBody
from fencepost_model.member import inputs as mi
from fencepost_model.member import outputs as mo
from fencepost_model.member import timers as mt
from fencepost_model.member.model import MemberModel, MemberSuccessor
from fencepost_model.member.state import MemberConfig, MemberState

from .alarms import Alarms
from .beside import NEVER, Beside, Disagreement, Effects, Input, same_effects, same_state
from .classic_answers import answers
from .codec import RealCodec


class Pair(Beside):
    """A classic member."""

    def __init__(self, settings: MemberSettings, metadata: mi.Metadata) -> None:
        config = MemberConfig(
            settings.group_id,
            tuple(assignor.name for assignor in settings.assignors),
            settings.protocol is RebalanceProtocol.COOPERATIVE,
            settings.group_instance_id,
            settings.session_timeout_ms,
            settings.max_poll_interval_ms,
            settings.auto_commit,
            codec=RealCodec(settings.assignors),
            profile=settings.profile,
        )
        self.model = MemberModel(config)
        self.member = Member(settings)
        self.state: MemberState = self.model.initial()
        self.now = 0
        self.requests: tuple[tuple[int, int], ...] = ()  #: in flight: the member's request id and the model's
        self.alarms = Alarms()  #: the member's timers
        self.timers = mt.Timers()  #: the model's timers
        self._delays = mt.Delays(
            settings.heartbeat_interval_ms,
            settings.session_timeout_ms,
            settings.max_poll_interval_ms,
            settings.retry_backoff_ms,
            settings.retry_backoff_max_ms,
        )
        self._metadata = metadata
        self._commit: tuple[int, int] | None = None
        self._give(mi.MetadataChanged(metadata), ev.MetadataChanged(0, _topics(metadata)))

    # --- inputs ---

    def inputs(self) -> list[Input]:
        member, state = self.member, self.state
        found: list[Input] = []
        if not member.closed:
            found += [Input("poll"), Input("poll", "revoked"), Input("poll", "assigned"), Input("enforce")]
            found += [Input("subscribe", topics) for topics in ("t", "tu")]
            found += [Input("unsubscribe"), *(Input("close", option) for option in ev.CloseOption)]
            found += [Input("metadata", (("t", count), ("u", 1))) for count in (2, 3)]
            if member.coordinator.node is None:
                found.append(Input("coordinator"))
            running = {*self.alarms.running, *self.timers.running(state)}
            found += [Input(what) for what, (_, timer) in _FIRED.items() if timer.value in running]
        name = member.settings.assignors[0].name
        for position, (number, _) in enumerate(self.requests):
            kind = next(sent.kind.value for sent in member.sent if sent.request_id == number)
            found += [Input("answer", body, position) for body in answers(self.state, name, kind)]
            found.append(Input("lost", None, position))
        if self._commit is not None:
            found += [Input("committed", result) for result in ev.CommitResult]
        return found

    def _take(self, what: Input) -> None:
        self.now += 1
        match what:
            case Input("poll", throws):
                self._pass_backoff()
                self._give(mi.Poll(frozenset({throws} if throws else ())), ev.Poll(self.now), str(throws or ""))  # type: ignore[arg-type]
            case Input("enforce"):
                self._give(mi.EnforceRebalance(), ev.EnforceRebalance(self.now))
            case Input("subscribe", str() as topics):
                self._give(mi.Subscribe(frozenset(topics)), ev.Subscribe(self.now, frozenset(topics)))
            case Input("unsubscribe"):
                self._give(mi.Unsubscribe(), ev.Unsubscribe(self.now))
            case Input("close", ev.CloseOption() as option):
                self._give(mi.Close(_OPTIONS[option]), ev.Close(self.now, option))
            case Input("metadata", tuple() as metadata):
                self._metadata = metadata
                self._give(mi.MetadataChanged(metadata), ev.MetadataChanged(self.now, _topics(metadata)))
            case Input("coordinator"):
                self._give(mi.CoordinatorFound(), ev.CoordinatorFound(self.now, node=1))
            case Input(("heartbeat due" | "session expired" | "poll expired") as fired):
                self._fire(*_FIRED[fired])
            case Input("answer", body, position):
                ours, theirs = self.requests[position]
                self._give(mi.Answer(theirs, body), ev.Answered(self.now, request_id=ours, body=body))  # type: ignore[arg-type]
            case Input("lost", _, position):
                ours, theirs = self.requests[position]
                self._give(mi.Answer(theirs, None), ev.RequestLost(self.now, request_id=ours), lost=theirs)
            case Input("committed", ev.CommitResult() as result) if self._commit is not None:
                ours, theirs = self._commit
                self._commit = None
                error = mi.CommitAnswer(_COMMIT_ERRORS[result])
                self._give(mi.Answer(theirs, error), ev.CommitFinished(self.now, commit_id=ours, result=result))
            case _:
                raise ValueError(f"no input {what}")

    # --- both sides ---

    def _fire(self, theirs: mi.MemberInput, timer: ev.MemberTimer) -> None:
        self.member = self.member._replace(deadlines={**self.member.deadlines, timer: self.now})
        self.alarms = self.alarms.without(timer)
        try:
            self._give(theirs, ev.MemberTimerFired(self.now, timer))
        except (IllegalEvent, ValueError) as refused:
            raise Disagreement(f"only one side lets the {timer.value} timer expire: {refused}", ("K-HB-02",)) from None

    def _pass_backoff(self) -> None:
        """Let the back-off of the join loop pass, and check that nothing else happens."""
        for timer in (ev.MemberTimer.RETRY, ev.MemberTimer.LOOKUP):
            if timer.value in self.alarms.running:
                self.now = max(self.now, self.member.deadlines[timer])
                self.member, commands = step(self.member, ev.MemberTimerFired(self.now, timer))
                same_effects([("does", each) for each in commands], [], ("K-ERR-14",))
                self.alarms = self.alarms.without(timer)
                self.timers = self.timers.without(timer.value)

    def _give(self, theirs: mi.MemberInput, ours: ev.MemberEvent, throws: str = "", lost: int = -1) -> None:
        before = self.state
        (successor,) = self.model.successors(before, theirs)
        self.state = successor.state
        expected = self._their_effects(successor.outputs)
        seen = self._our_effects(ours, throws)
        same_effects(seen, expected, successor.rules)
        self._pair_requests(lost)
        self._same_state(successor.rules)
        self._same_timers(before, theirs, successor)
        far = dict.fromkeys((timer for timer in THREAD_TIMERS if timer in self.member.deadlines), NEVER)
        self.member = self.member._replace(deadlines={**self.member.deadlines, **far})

    def _same_timers(self, before: MemberState, theirs: mi.MemberInput, successor: MemberSuccessor) -> None:
        self.timers = mt.after(self._delays, self.timers, before, theirs, successor)
        same_state({"timers": self.alarms.running}, {"timers": self.timers.running(self.state)}, successor.rules)

    def _our_effects(self, event: ev.MemberEvent, throws: str) -> Effects:
        effects: Effects = []
        self._sent_now: list[int] = []
        pending = [event]
        self.alarms = self.alarms.kept()
        while pending:
            self.member, commands = step(self.member, pending.pop(0))
            self.alarms = self.alarms.after(commands)
            for command in commands:
                match command:
                    case ev.Send(request_id=number, body=body):
                        effects.append(("sends", _plain(body)))
                        self._sent_now.append(number)
                    case ev.Commit(commit_id=number, partitions=partitions):
                        effects.append(("commits", frozenset(map(tuple, partitions))))
                        if self.member.closed:  # the close waits for it, the model does not
                            pending.append(ev.CommitFinished(self.now, commit_id=number, result=ev.CommitResult.DONE))
                        else:
                            self._commit = (number, -1)
                    case ev.Listener(call=call, partitions=partitions):
                        effects.append((call.value, frozenset(map(tuple, partitions))))
                        error = "thrown" if call.value == throws else None
                        pending.append(ev.ListenerDone(self.now, error))
                    case ev.RequestMetadata(topics=topics, topic_ids=ids):
                        effects.append(("asks for metadata", (topics, ids)))
                        pending.append(ev.MetadataChanged(self.now, _topics(self._metadata)))
                    case ev.Returned(failure=failure) if failure is not None:
                        effects.append(("throws", _thrown(failure)))
                    case _:
                        pass
        return effects

    def _their_effects(self, outputs: Sequence[mo.MemberOutput]) -> Effects:
        effects: Effects = []
        self._sent_then: list[int] = []
        self._committed_then = -1
        for output in outputs:
            match output:
                case mo.Send(request=number, body=body):
                    effects.append(("sends", _plain(body)))
                    self._sent_then.append(number)
                case mo.Commit(request=number, partitions=partitions):
                    effects.append(("commits", partitions))
                    self._committed_then = number
                case mo.AskMetadata(topics=topics):
                    effects.append(("asks for metadata", (topics, frozenset[bytes]())))
                case mo.Callback(kind=kind, partitions=partitions):
                    effects.append((kind, partitions))
                case mo.Raise(error=error):
                    effects.append(("throws", error))
                case _:
                    pass
        return effects

    def _pair_requests(self, lost: int) -> None:
        """Track requests in flight; tell the model which were lost with a forgotten coordinator."""
        if self._commit is not None and self._commit[1] == -1:
            self._commit = (self._commit[0], self._committed_then)
        known = (*self.requests, *zip(self._sent_now, self._sent_then, strict=True))
        open_now = {sent.request_id for sent in self.member.sent}
        self.requests = tuple(pair for pair in known if pair[0] in open_now)
        flying = {each.request for each in self.state.in_flight}
        for ours, theirs in known:
            if ours not in open_now and theirs in flying and theirs != lost:
                (successor,) = self.model.successors(self.state, mi.Answer(theirs, None))
                self.state = successor.state

    def _same_state(self, rules: Sequence[str]) -> None:
        member, state = self.member, self.state
        ours = {
            "state": member.state.name,
            "generation": (
                member.generation.generation_id,
                member.generation.member_id,
                member.generation.protocol_name,
            ),
            "owned": frozenset(map(tuple, member.assignment)),
            "coordinator": member.coordinator.node is not None,
            "rejoin": member.rejoin_needed,
            "joining": member.join is not None,
            "prepare": member.needs_prepare,
        }
        theirs = {
            "state": state.state,
            "generation": tuple(state.generation),
            "owned": state.owned,
            "coordinator": state.coordinator,
            "rejoin": state.rejoin,
            "joining": state.joining,
            "prepare": state.prepare,
        }
        same_state(ours, theirs, rules)

    def key(self) -> object:
        """Return a key that is equal for pairs that behave alike; request ids, time and wording do not count."""
        state = self.state._replace(
            in_flight=tuple(each._replace(request=0) for each in self.state.in_flight), next_request=0, reason=""
        )
        member = self.member
        return (
            state,
            tuple((sent.kind, sent.generation) for sent in member.sent),
            self._commit is None,
            member.join,
            member.thread,
            member.coordinator.node,
            member.needs_prepare,
            member.is_leader,
            member.assignment_snapshot and member.assignment_snapshot.topics,
            member.snapshot.topics,
            member.prepare_commit,
            member.subscription,
            self._metadata,
            frozenset(self.alarms.running),
            self.timers.failures,
        )


_FIRED: dict[str, tuple[mi.MemberInput, ev.MemberTimer]] = {
    "heartbeat due": (mi.HeartbeatDue(), ev.MemberTimer.HEARTBEAT),
    "session expired": (mi.SessionExpired(), ev.MemberTimer.SESSION),
    "poll expired": (mi.PollExpired(), ev.MemberTimer.POLL),
}
_OPTIONS = {
    ev.CloseOption.DEFAULT: mi.CloseOption.DEFAULT,
    ev.CloseOption.LEAVE_GROUP: mi.CloseOption.LEAVE_GROUP,
    ev.CloseOption.REMAIN_IN_GROUP: mi.CloseOption.REMAIN_IN_GROUP,
}
_COMMIT_ERRORS = {
    ev.CommitResult.DONE: ErrorCode.NONE,
    ev.CommitResult.RETRIABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ev.CommitResult.FAILED: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
}


def _topics(metadata: mi.Metadata) -> tuple[Topic, ...]:
    return tuple(Topic(name, b"", count) for name, count in metadata)


def _plain(body: RequestBody) -> object:
    """Return the body without the wording of reasons."""
    match body:
        case JoinGroupRequest():
            return replace(body, reason=None)
        case LeaveGroupRequest(members=members):
            return replace(body, members=tuple(replace(each, reason=None) for each in members))
        case _:
            return body


def _thrown(failure: ev.Failure) -> str:
    match failure.kind:
        case ev.FailureKind.ANSWER if failure.error is not None:
            return failure.error.name
        case ev.FailureKind.ASSIGNMENT:
            return "IllegalStateException"
        case _:
            return "KafkaException"
