"""Working copies of a member during one step: what both protocols share, and the classic member's part."""

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
from .rules import MemberRules
from .settings import ClientSettings
from .state import ClassicMemberState, Coordinator, Generation, JoinFailed, JoinOpen, Member, Retry, WaitingCall

#: The application's calls. Only one may be in progress, and none follows ``Close``.
CALLS = (Subscribe, SubscribePattern, SubscribeRegex, Unsubscribe, EnforceRebalance, Poll, Close)

_EVENTS: Final = frozenset(get_args(MemberEvent))

#: Timers that count only while the heartbeat thread works and the coordinator is known (K-HB-02).
THREAD_TIMERS = (MemberTimer.HEARTBEAT, MemberTimer.SESSION, MemberTimer.POLL)


def thread_works(member: Member) -> bool:
    """Return whether the heartbeat thread sends heartbeats now (K-HB-02)."""
    thread = member.thread
    return thread.exists and thread.enabled and thread.failure is None and member.state.in_generation


def armed(member: Member) -> dict[MemberTimer, int]:
    """Return the timers that are set, with their deadlines."""
    if member.coordinator.node is not None and thread_works(member):
        return dict(member.deadlines)
    return {timer: at for timer, at in member.deadlines.items() if timer not in THREAD_TIMERS}


class AnyMember(Protocol):
    """Attributes that members of both protocols have; both are named tuples. ``deadlines`` are absolute, in ms."""

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
    """Check the types of the member and the event.

    Raises ``WrongType`` if ``member`` is not a ``kind``, and ``IllegalEvent`` if ``event`` is not a valid member event.
    """
    expect(kind, member, "member", f"start with {kind.__name__}(settings), then pass what the previous step returned")
    if type(event) not in _EVENTS:
        raise IllegalEvent(f"{type(event).__name__} is not a member event; use those in fencepost.member.events")
    wrong = fault(event) if isinstance(event, CALLS) else None  # other events were decoded, so their types are right
    if wrong is not None:
        raise IllegalEvent(wrong)


def take(
    member: AnyMember, event: MemberEvent, timers: dict[MemberTimer, int], *, call: str | None, listening: bool
) -> dict[MemberTimer, int]:
    """Return the timers that are still set after the event.

    ``call``: the application's call that has not returned, if any; ``listening``: the listener runs. Raises
    ``IllegalEvent`` for an event that the member cannot get now.
    """
    if isinstance(event, CALLS):
        if member.closed:
            raise IllegalEvent(f"{type(event).__name__}: the member is closed")
        if call is not None:
            raise IllegalEvent(f"{type(event).__name__}: another call has not returned yet ({call})")
    elif isinstance(event, ListenerDone):
        if not listening:
            raise IllegalEvent("ListenerDone: no listener is running")
    elif isinstance(event, MemberTimerFired):
        if timers.get(event.timer, event.at_ms + 1) > event.at_ms:
            raise IllegalEvent(f"the {event.timer.value} timer is not due at {event.at_ms} ms")
        return {timer: at for timer, at in timers.items() if timer is not event.timer}
    return timers


class AnyTurn(Generic[M]):
    """``member`` is replaced as the step proceeds; ``now``: the event's time; ``jitter``: factor of back-offs."""

    def __init__(self, member: M, now: int, jitter: float) -> None:
        self.member = member
        self.now = now
        self.jitter = jitter
        self.commands: list[Command] = []

    @property
    def quirks(self) -> Quirks | None:
        """The differences of the profile's client from the intended one; None: there are none."""
        return self.member.settings.quirks

    @property
    def rules(self) -> MemberRules:
        """The small choices of the profile's client."""
        return self.member.settings.rules

    def emit(self, command: Command) -> None:
        """Append a command for the driver."""
        self.commands.append(command)

    def listen(self, call: Call, partitions: frozenset[TopicPartition]) -> None:
        """Ask the driver to call the rebalance listener."""
        self.emit(Listener(call, tuple(sorted(partitions, key=partition_order))))

    # --- timers ---

    def set_deadline(self, timer: MemberTimer, delay_ms: int) -> None:
        """Set or replace a timer; it is due in ``delay_ms``."""
        self.member = self.member._replace(deadlines={**self.member.deadlines, timer: self.now + delay_ms})

    def drop_deadline(self, timer: MemberTimer) -> None:
        """Cancel the timer if it is set."""
        if timer in self.member.deadlines:
            self.member = self.member._replace(
                deadlines={key: at for key, at in self.member.deadlines.items() if key is not timer}
            )

    def running(self, timer: MemberTimer) -> bool:
        """Return whether the timer is set and not yet due."""
        return self.member.deadlines.get(timer, self.now) > self.now

    def backoff(self, attempts: int) -> int:
        """Return the back-off in ms: exponential, base 2, with jitter (K-HB-05)."""
        settings = self.member.settings
        exponential = settings.retry_backoff_ms * 2 ** min(attempts, 30)
        return min(int(exponential * self.jitter), settings.retry_backoff_max_ms)

    def arm(self, before: Mapping[MemberTimer, int], after: Mapping[MemberTimer, int]) -> None:
        """Emit a command for each timer that the step set, changed or cancelled."""
        if after == before:
            return
        for timer in MemberTimer:
            if timer in after and after[timer] != before.get(timer):
                self.emit(SetMemberTimer(timer, max(0, after[timer] - self.now)))
            elif timer in before and timer not in after:
                self.emit(CancelMemberTimer(timer))


class Turn(AnyTurn[Member]):
    """Working copy of a classic member."""

    # --- membership ---

    def request_rejoin(self, reason: str) -> None:
        """Make the next poll join again, with ``reason`` in its JoinGroup."""
        self.member = self.member._replace(rejoin_needed=True, rejoin_reason=reason[:255])  # K-ERR-17

    def reset(self, reason: str, *, keep_id: bool) -> None:
        """Take the member out of its generation; join prepare runs again (K-ST-13, K-ST-14, K-ERR-15)."""
        member_id = self.member.generation.member_id if keep_id else ""  # K-ST-14
        self.member = self.member._replace(
            state=ClassicMemberState.UNJOINED, generation=Generation(member_id=member_id), needs_prepare=True
        )  # K-ST-13
        self.request_rejoin(reason)

    def fail_join(
        self, cause: str, retry: Retry, failure: Failure | None = None, error: ErrorCode | None = None
    ) -> None:
        """Record that the join in progress failed; the next poll handles it (K-ERR-14)."""
        if isinstance(self.member.join, JoinOpen):
            self.member = self.member._replace(join=JoinFailed(cause, retry, failure, error), electing=None)  # K-ERR-14

    # --- the application's thread ---

    def call(self, call: Call, partitions: frozenset[TopicPartition], waiting: WaitingCall) -> None:
        """Call the listener; ``waiting`` says where the application's call resumes when the listener returns."""
        self.member = self.member._replace(waiting=waiting)
        self.listen(call, partitions)

    def returns(self, failure: Failure | None = None) -> None:
        """End the application's call: it returns, or throws ``failure``."""
        self.member = self.member._replace(waiting=None)
        self.emit(Returned(failure))
