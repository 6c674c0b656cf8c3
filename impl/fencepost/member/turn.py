"""The working copy of a member during one step: what members of both protocols do alike, and the classic one's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, Protocol, Self, TypeVar, get_args

from fencepost.protocol.errors import ErrorCode, IllegalEvent
from fencepost.protocol.misuse import expect
from fencepost.protocol.shapes import fault
from fencepost.quirks import Quirks

from .events import (
    Call,
    CancelMemberTimer,
    Close,
    Command,
    EnforceRebalance,
    Failure,
    Listener,
    ListenerDone,
    MemberEvent,
    MemberTimer,
    MemberTimerFired,
    Poll,
    Returned,
    SetMemberTimer,
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
    Unsubscribe,
)
from .partitions import TopicPartition, partition_order
from .settings import ClientSettings
from .state import Coordinator, Generation, JoinFailed, JoinOpen, Member, MemberState, Retry, Waiting

#: What the application calls; one at a time, and nothing after ``Close``.
CALLS = (Subscribe, SubscribePattern, SubscribeRegex, Unsubscribe, EnforceRebalance, Poll, Close)

_EVENTS: Final = frozenset(get_args(MemberEvent))

#: Timers that run only while the heartbeat thread works and knows whom to ask (K-HB-02).
THREAD_TIMERS = (MemberTimer.HEARTBEAT, MemberTimer.SESSION, MemberTimer.POLL)


def thread_works(member: Member) -> bool:
    """Whether the heartbeat thread sends heartbeats now (K-HB-02)."""
    thread = member.thread
    return thread.exists and thread.enabled and thread.failure is None and member.state.in_generation


def armed(member: Member) -> dict[MemberTimer, int]:
    """The timers that are set, with their deadlines."""
    if member.coordinator.node is not None and thread_works(member):
        return dict(member.deadlines)
    return {timer: at for timer, at in member.deadlines.items() if timer not in THREAD_TIMERS}


class AnyMember(Protocol):
    """What members of both protocols have; they are named tuples. ``deadlines`` are absolute, in ms."""

    @property
    def settings(self) -> ClientSettings: ...
    @property
    def coordinator(self) -> Coordinator: ...
    @property
    def deadlines(self) -> Mapping[MemberTimer, int]: ...
    @property
    def closed(self) -> bool: ...

    def _replace(
        self, *, coordinator: Coordinator = ..., deadlines: Mapping[MemberTimer, int] = ..., sent: tuple[()] = ...
    ) -> Self: ...


M = TypeVar("M", bound=AnyMember)


def look(kind: type, member: AnyMember, event: MemberEvent) -> None:
    """Raises ``WrongType`` for what is no member of this kind, ``IllegalEvent`` for what is no event of a member."""
    expect(kind, member, "member", f"begin with {kind.__name__}(settings), then hand in what the step before returned")
    if type(event) not in _EVENTS:
        raise IllegalEvent(f"{type(event).__name__} is no event of a member; those stand in fencepost.member.events")
    wrong = fault(event) if isinstance(event, CALLS) else None  # what the application says; the rest was decoded
    if wrong is not None:
        raise IllegalEvent(wrong)


def take(
    member: AnyMember, event: MemberEvent, timers: dict[MemberTimer, int], *, call: str | None, listening: bool
) -> dict[MemberTimer, int]:
    """The timers that are still set once the event has come.

    ``call``: the call of the application that has not returned; ``listening``: its listener runs. Raises
    ``IllegalEvent`` for what cannot happen to the member now.
    """
    if isinstance(event, CALLS):
        if member.closed:
            raise IllegalEvent("the member is closed")
        if call is not None:
            raise IllegalEvent(f"a call has not returned yet ({call})")
    elif isinstance(event, ListenerDone):
        if not listening:
            raise IllegalEvent("no listener is running")
    elif isinstance(event, MemberTimerFired):
        if timers.get(event.timer, event.at_ms + 1) > event.at_ms:
            raise IllegalEvent(f"the {event.timer.value} timer is not due")
        return {timer: at for timer, at in timers.items() if timer is not event.timer}
    return timers


class AnyTurn(Generic[M]):
    """``member`` is replaced as the step goes on; ``now``: the event's time; ``jitter``: factor of back-offs."""

    def __init__(self, member: M, now: int, jitter: float) -> None:
        self.member = member
        self.now = now
        self.jitter = jitter
        self.commands: list[Command] = []

    @property
    def quirks(self) -> Quirks | None:
        """What the client of the profile does otherwise."""
        return self.member.settings.quirks

    def emit(self, command: Command) -> None:
        """Ask the driver for this."""
        self.commands.append(command)

    def listen(self, call: Call, partitions: frozenset[TopicPartition]) -> None:
        """Call the rebalance listener."""
        self.emit(Listener(call, tuple(sorted(partitions, key=partition_order))))

    # --- timers ---

    def set_deadline(self, timer: MemberTimer, delay_ms: int) -> None:
        """Set a timer, or set it anew."""
        self.member = self.member._replace(deadlines={**self.member.deadlines, timer: self.now + delay_ms})

    def drop_deadline(self, timer: MemberTimer) -> None:
        """The timer is not needed."""
        if timer in self.member.deadlines:
            self.member = self.member._replace(
                deadlines={key: at for key, at in self.member.deadlines.items() if key is not timer}
            )

    def running(self, timer: MemberTimer) -> bool:
        """Is the timer set and not yet due?"""
        return self.member.deadlines.get(timer, self.now) > self.now

    def backoff(self, attempts: int) -> int:
        """Exponential, base 2, with jitter (K-HB-05)."""
        settings = self.member.settings
        exponential = settings.retry_backoff_ms * 2 ** min(attempts, 30)
        return min(int(exponential * self.jitter), settings.retry_backoff_max_ms)

    def arm(self, before: Mapping[MemberTimer, int], after: Mapping[MemberTimer, int]) -> None:
        """Tell the difference between the timers before and after the step."""
        if after == before:
            return
        for timer in MemberTimer:
            if timer in after and after[timer] != before.get(timer):
                self.emit(SetMemberTimer(timer, max(0, after[timer] - self.now)))
            elif timer in before and timer not in after:
                self.emit(CancelMemberTimer(timer))


class Turn(AnyTurn[Member]):
    """A classic member's."""

    # --- membership ---

    def request_rejoin(self, reason: str) -> None:
        """The next poll joins again, and says why."""
        self.member = self.member._replace(rejoin_needed=True, rejoin_reason=reason[:255])  # K-ERR-17

    def reset(self, reason: str, *, keep_id: bool) -> None:
        """The member is out of the generation, and join prepare runs again (K-ST-13, K-ST-14, K-ERR-15)."""
        member_id = self.member.generation.member_id if keep_id else ""  # K-ST-14
        self.member = self.member._replace(
            state=MemberState.UNJOINED, generation=Generation(member_id=member_id), needs_prepare=True
        )  # K-ST-13
        self.request_rejoin(reason)

    def fail_join(
        self, cause: str, retry: Retry, failure: Failure | None = None, error: ErrorCode | None = None
    ) -> None:
        """The join under way has failed; the next poll sees it (K-ERR-14)."""
        if isinstance(self.member.join, JoinOpen):
            self.member = self.member._replace(join=JoinFailed(cause, retry, failure, error), electing=None)  # K-ERR-14

    # --- the application's thread ---

    def call(self, call: Call, partitions: frozenset[TopicPartition], waiting: Waiting) -> None:
        """Call the listener; the call of the application goes on when that returns."""
        self.member = self.member._replace(waiting=waiting)
        self.listen(call, partitions)

    def returns(self, failure: Failure | None = None) -> None:
        """The call of the application is over."""
        self.member = self.member._replace(waiting=None)
        self.emit(Returned(failure))
