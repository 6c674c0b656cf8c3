"""A program with one member: steps the member, carries out its commands, and plays its application."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeAlias, TypeVar

from fencepost.member import ClassicMemberState, Member, MemberSettings, step
from fencepost.member.consumer import ConsumerMember
from fencepost.member.events import (
    Answered,
    CancelMemberTimer,
    Close,
    CloseOption,
    Command,
    Commit,
    CommitFinished,
    CommitResult,
    Disconnect,
    FindCoordinator,
    Listener,
    ListenerDone,
    MemberEvent,
    MemberTimer,
    MemberTimerFired,
    Poll,
    RequestLost,
    RequestMetadata,
    Returned,
    Send,
    SetMemberTimer,
    Subscribe,
    Unsubscribe,
)
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatRequest, JoinGroupResponse, RequestBody

from .broken import demand
from .member_rules import MemberRules
from .plan import HostPlan


class Wires(Protocol):
    """The network between a host and the brokers."""

    def send(self, host: AnyHost, command: Send) -> None: ...
    def find_coordinator(self, host: AnyHost) -> None: ...
    def fetch_metadata(self, host: AnyHost) -> None: ...


class Surroundings(Protocol):
    """The part of the simulation that a host needs."""

    now: int

    @property
    def network(self) -> Wires: ...
    def later(self, delay_ms: int, what: Callable[[], None]) -> None: ...
    def adopted(self, host: AnyHost) -> None: ...
    def rival(self, host: AnyHost) -> bool: ...
    def note(self, text: str) -> None: ...
    def jitter(self) -> float: ...


#: Errors of a program whose instance id another process has taken; the program ends (C-STATIC-13).
FENCED = (ErrorCode.FENCED_INSTANCE_ID,)

M = TypeVar("M", Member, ConsumerMember)


class MemberHost(ABC, Generic[M]):
    """A program with one member. ``process`` counts restarts; messages for an earlier process are dropped. ``life``:
    the life of the group when the last JoinGroup was answered."""

    def __init__(self, plan: HostPlan, world: Surroundings) -> None:
        self.plan = plan
        self.process = 0
        self.member: M = self.fresh()
        self.running = False
        self.life = (0, 0)
        self.given_up: str | None = None
        self.coming_back = False  #: it has ended and will restart
        self.listener_fails = False
        self.listener_delay_ms = plan.listener_ms
        self.processing_ms = 0  #: how long the program processes the records of a poll
        self.busy_until = 0  #: before that it does not poll
        self._world = world
        self._timers: dict[MemberTimer, int] = {}
        self._inbox: list[MemberEvent] = []  #: read by the next poll
        self._subscribed = False
        self._fed_ms = 0  #: start of the current poll interval

    # --- where the two protocols differ ---

    @abstractmethod
    def fresh(self) -> M:
        """Return the member of a new process, with a new history."""

    @abstractmethod
    def step(self, event: MemberEvent) -> tuple[M, tuple[Command, ...]]: ...

    @abstractmethod
    def check(self, before: M, event: MemberEvent, commands: tuple[Command, ...]) -> None:
        """Raise ``Broken`` if a property of members does not hold."""

    @property
    @abstractmethod
    def reads(self) -> bool:
        """Whether it reads the socket while the program does not poll."""

    @property
    @abstractmethod
    def works(self) -> bool:
        """Whether it has records to process."""

    def ends(self, error: ErrorCode | None) -> bool:
        """Whether an error thrown by a call ends this process."""
        return error in FENCED

    def comes_back(self) -> bool:
        """Whether the program then restarts."""
        return False

    # --- the application ---

    def start(self) -> None:
        """Start a new process."""
        self.process += 1
        self.member = self.fresh()
        self._timers.clear()
        self._inbox.clear()
        self.busy_until = 0
        self.running, self.coming_back = True, False
        self._world.network.fetch_metadata(self)
        self.subscribe(self.plan.topics)
        self._poll_again(self.process)

    def crash(self) -> None:
        self.running = False
        self._world.note(f"{self.plan.name} crashes")

    def _start_again(self) -> None:
        if not self.running and self.given_up is None:
            self.start()

    def subscribe(self, topics: frozenset[str]) -> None:
        if self.idle:
            self._subscribed = True
            self.handle(Subscribe(self._world.now, topics))

    def unsubscribe(self) -> None:
        if self.idle:
            self._subscribed = False
            self.handle(Unsubscribe(self._world.now))

    def close(self, option: CloseOption) -> None:
        if self.idle:
            self.handle(Close(self._world.now, option))

    def call(self, event: MemberEvent) -> None:
        if self.idle:
            self.handle(event)

    def stall(self, duration_ms: int) -> None:
        self.busy_until = max(self.busy_until, self._world.now + duration_ms)

    @property
    def idle(self) -> bool:
        """Whether the application may call."""
        return self.running and self.member.waiting is None and not self.member.closed

    @property
    def takes_part(self) -> bool:
        """Whether the program should end up with its share of the partitions."""
        return self.running and self._subscribed and not self.member.closed

    def poll(self) -> None:
        if not self.idle or self._world.now < self.busy_until:
            return
        while self._inbox and self.idle:
            self.handle(self._inbox.pop(0))
        if self.idle:
            self.handle(Poll(self._world.now))
            if self.works:
                self.stall(self.processing_ms)

    def _poll_again(self, process: int) -> None:
        if process == self.process and self.running:
            self.poll()
            self._world.later(self.plan.poll_every_ms, lambda: self._poll_again(process))

    # --- the network and the clock ---

    def receive(self, process: int, event: MemberEvent) -> None:
        """Receive a message for a process of this host."""
        if process != self.process or not self.running:
            return
        reads = self.reads or (self.idle and self._world.now >= self.busy_until)
        if not reads and isinstance(event, Answered):
            self._inbox.append(event)  # the socket is not read now
            return
        self.handle(event)
        self.poll()

    def _fire(self, process: int, timer: MemberTimer, deadline: int) -> None:
        if process == self.process and self.running and self._timers.get(timer) == deadline:
            del self._timers[timer]
            self.handle(MemberTimerFired(self._world.now, timer))
            if timer is MemberTimer.RETRY:
                self.poll()

    def _listener_done(self, process: int) -> None:
        if process == self.process and self.running and self.member.waiting is not None:
            error = "the listener throws" if self.listener_fails else None
            self.listener_fails = False
            self.handle(ListenerDone(self._world.now, error))
            self.poll()

    # --- the member ---

    def handle(self, event: MemberEvent) -> None:
        before = self.member
        if self.polls(event):
            self._fed_ms = self._world.now
        self.member, commands = self.step(event)
        dull = isinstance(event, Poll) and all(isinstance(each, Returned | SetMemberTimer) for each in commands)
        if not dull:
            self._world.note(f"{self.plan.name} {_short(event)} → {self.member.state.value}")
        self.check(before, event, commands)
        if self.member.assignment - before.assignment:
            self._world.adopted(self)
        for command in commands:
            self._carry_out(command)

    def polls(self, event: MemberEvent) -> bool:
        """Whether the event restarts the member's poll interval (K-HB-03, N-TR-09)."""
        return isinstance(event, Poll)

    @property
    def leaves(self) -> bool:
        """Whether the member is about to leave, so that the poll interval no longer matters (N-TR-09)."""
        return False

    def _check_stall(self, body: RequestBody) -> None:
        """K-HB-03, N-TR-09: a member that has not polled for longer than the poll interval leaves the group."""
        silent = self._world.now - self._fed_ms
        stays = isinstance(body, HeartbeatRequest) or (
            isinstance(body, ConsumerGroupHeartbeatRequest) and body.member_epoch >= 0 and not self.leaves
        )
        demand(
            not stays or silent <= self.plan.settings.max_poll_interval_ms,
            "K-HB-03" if isinstance(body, HeartbeatRequest) else "N-TR-09",
            f"{self.plan.name} heartbeats although its program has not polled for {silent} ms",
        )

    def _carry_out(self, command: Command) -> None:
        world, process = self._world, self.process
        match command:
            case Send(body=body):
                self._check_stall(body)
                world.network.send(self, command)
                lost = RequestLost(world.now + command.timeout_ms, request_id=command.request_id)
                world.later(command.timeout_ms, lambda: self.receive(process, lost))
            case FindCoordinator():
                world.network.find_coordinator(self)
            case RequestMetadata():
                world.network.fetch_metadata(self)
            case Commit(commit_id=commit_id):
                done = CommitFinished(world.now, commit_id=commit_id, result=CommitResult.DONE)
                world.later(self.plan.commit_ms, lambda: self.receive(process, done))
            case Listener():
                world.later(self.listener_delay_ms, lambda: self._listener_done(process))
            case SetMemberTimer(timer=timer, delay_ms=delay):
                deadline = world.now + delay
                self._timers[timer] = deadline
                world.later(delay, lambda: self._fire(process, timer, deadline))
            case CancelMemberTimer(timer=timer):
                self._timers.pop(timer, None)
            case Returned(failure=failure) if failure is not None and not self.member.closed:
                world.note(f"{self.plan.name} throws {failure.kind.value} {failure.error and failure.error.name}")
                if self.ends(failure.error):
                    self.crash()
                    if self.comes_back():
                        self.coming_back = True
                        world.later(1_000, self._start_again)
                    else:
                        self.given_up = "fenced by a second process"  # this is right: the program ends (C-STATIC-13)
                elif not self._subscribed:
                    # The listener threw, so the member has given up its partitions without leaving (K-LEAVE-04). A
                    # program that continues must unsubscribe again.
                    self._world.later(0, self.unsubscribe)
            case Returned() if self.member.closed:
                self.running = False
            case Disconnect() | Returned():
                pass


class Host(MemberHost[Member]):
    """A program with a classic member."""

    def fresh(self) -> Member:
        settings = self.plan.settings
        assert isinstance(settings, MemberSettings)
        self._rules = MemberRules(self.plan.name)
        return Member(settings)

    def polls(self, event: MemberEvent) -> bool:
        """Whether the poll interval restarts. A poll that has joined continues and counts again."""
        joined = isinstance(event, Answered) and isinstance(event.body, JoinGroupResponse)
        return joined or super().polls(event)

    def step(self, event: MemberEvent) -> tuple[Member, tuple[Command, ...]]:
        return step(self.member, event, self._world.jitter())

    def check(self, before: Member, event: MemberEvent, commands: tuple[Command, ...]) -> None:
        self._rules.observe(before, self.member, event, commands)

    @property
    def reads(self) -> bool:
        return self.member.state.in_generation

    @property
    def works(self) -> bool:
        return self.member.state is ClassicMemberState.STABLE and bool(self.member.assignment)


AnyHost: TypeAlias = MemberHost[Member] | MemberHost[ConsumerMember]


def _short(event: MemberEvent) -> str:
    match event:
        case Answered(request_id=number, body=body):
            error = getattr(body, "error_code", None)
            return f"#{number} {type(body).__name__} {error.name if error is not None else ''}"
        case MemberTimerFired(timer=timer):
            return f"timer {timer.value}"
        case ListenerDone(error=error):
            return "listener returns" if error is None else "listener throws"
        case _:
            return type(event).__name__
