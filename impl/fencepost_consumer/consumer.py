"""A whole consumer: a member of either protocol and a reader that exchange messages.

``step(consumer, event)`` takes the events of both and returns the commands of both, except those for each other: a
member's ``Commit`` and a reader's ``PassToMember``. Requests of both use one connection; the member's have even ids,
the reader's odd ones.

A poll is the member's pass and then the reader's. It ends with ``PollReturned``, or with ``Returned`` and a failure if
the member throws. ``Unsubscribe`` ends with ``Returned``, ``Close`` with ``CallReturned``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from enum import Enum
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.consumer.step import consumer_step
from fencepost.member.events import (
    Answered,
    Call,
    Close,
    CloseOption,
    Command,
    Commit,
    CommitFinished,
    CommitResult,
    CoordinatorFound,
    CoordinatorLost,
    EnforceRebalance,
    Failure,
    FindCoordinator,
    Listener,
    ListenerDone,
    LookupFailed,
    MemberEvent,
    MemberTimerFired,
    MetadataChanged,
    Poll,
    PollPart,
    RequestLost,
    Returned,
    Send,
    Subscribe,
    SubscribePattern,
    SubscribeRegex,
    Unsubscribe,
)
from fencepost.member.state import Member
from fencepost.member.step import step as member_step
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from fencepost.protocol.settings import BadSettings
from fencepost_consumer.events import (
    Arrived,
    AssignmentAdopted,
    CallReturned,
    CommitOnClose,
    CommitWanted,
    MembershipChanged,
    NeverArrived,
    PassToMember,
    PollReturned,
    ReaderCommand,
    ReaderEvent,
    RunCallbacks,
    SendToLeader,
)
from fencepost_consumer.membership import membership_of
from fencepost_consumer.settings import Client
from fencepost_consumer.state import Mode, Reader, SentCommit, SentLookup
from fencepost_consumer.step import step as reader_step

ConsumerEvent: TypeAlias = MemberEvent | ReaderEvent
ConsumerCommand: TypeAlias = Command | ReaderCommand


class Stage(Enum):
    """The call that the member has not finished."""

    POLL = "poll"
    COMMIT = "close, which commits first"
    UNSUBSCRIBE = "unsubscribe"
    CLOSE = "close"


class Consumer(NamedTuple):
    """A member and its reader. Create it with ``consumer_of(member, reader)``; change it only with ``step``."""

    member: Member | ConsumerMember
    reader: Reader
    stage: Stage | None = None
    option: CloseOption = CloseOption.DEFAULT  #: of the close in progress


def consumer_of(member: Member | ConsumerMember, reader: Reader) -> Consumer:
    """Combine member and reader. Raises ``BadSettings`` if their settings do not match."""
    ours, theirs = reader.settings, member.settings
    alike = ("group_id", "group_instance_id", "auto_commit", "profile")
    differ = [each for each in alike if getattr(ours, each) != getattr(theirs, each)]
    if differ:
        raise BadSettings(f"member and reader must have the same settings; these differ: {', '.join(differ)}")
    if isinstance(member, ConsumerMember) != (ours.client is Client.CONSUMER):
        raise BadSettings(
            f"a {type(member).__name__} does not fit ReaderSettings.client {ours.client.value!r}: "
            "Client.CONSUMER needs a ConsumerMember, other clients need a Member"
        )
    return Consumer(member, reader)


def step(consumer: Consumer, event: ConsumerEvent, jitter: float = 1.0) -> tuple[Consumer, tuple[ConsumerCommand, ...]]:
    """Handle one event. Raises what the step functions of member and reader raise; then nothing has changed."""
    pair: _ClassicPair | _BackgroundPair
    if isinstance(consumer.member, ConsumerMember):
        pair = _BackgroundPair(consumer.member, consumer, event.at_ms, jitter)
    else:
        pair = _ClassicPair(consumer.member, consumer, event.at_ms, jitter)
    pair.take(event)
    return Consumer(pair.member, pair.reader, pair.stage, pair.option), tuple(pair.ordered())


M = TypeVar("M", Member, ConsumerMember)


class _Pair(ABC, Generic[M]):
    """Working copy of a member and its reader. The subclasses have what differs between the two protocols: the order
    of work in a poll and in a close, and when an assignment is adopted."""

    def __init__(self, member: M, consumer: Consumer, now: int, jitter: float) -> None:
        self.member: M = member
        _, self.reader, self.stage, self.option = consumer
        self.now = now
        self.jitter = jitter
        self.commands: list[ConsumerCommand] = []
        self.committed = False  #: the member's commit ended in the same step

    def take(self, event: ConsumerEvent) -> None:
        """Pass an event to the member, the reader, or both."""
        match event:
            case Poll():
                self._poll(event)
            case Unsubscribe() | Close():
                self._leave(event)
            case Subscribe() | SubscribePattern() | SubscribeRegex():
                self._read(event)  # rejects a second way of subscribing (K-SUB-01)
                self._join(event)
            case Answered(request_id=number, body=body) if number % 2:
                if not isinstance(body, OffsetCommitResponse | OffsetFetchResponse):
                    raise IllegalEvent(f"{type(body).__name__} does not answer a request about offsets")
                self._read(Arrived(self.now, request_id=number // 2, body=body))
            case RequestLost(request_id=number) if number % 2:
                self._read(NeverArrived(self.now, request_id=number // 2))
            case Answered(request_id=number) | RequestLost(request_id=number):
                self._join(replace(event, request_id=number // 2))
            case Arrived(request_id=number) | NeverArrived(request_id=number):
                self._read(replace(event, request_id=number // 2))
            case CoordinatorFound() | CoordinatorLost() | LookupFailed():
                self._coordinator(event)
            case EnforceRebalance() | ListenerDone() | MemberTimerFired() | MetadataChanged():
                self._join(event)
            case _:
                self._read(event)  # type: ignore[arg-type]  # the reader rejects all other events

    def ordered(self) -> list[ConsumerCommand]:
        """Return the commands in the order in which they are carried out."""
        return self.commands

    # --- what the protocols do differently ---

    @abstractmethod
    def _poll_in_group(self, event: Poll) -> None:
        """Poll the member, then the reader."""

    @abstractmethod
    def _member_polled(self, failure: Failure | None, *, again: bool) -> None:
        """Continue a poll after the member's part."""

    @abstractmethod
    def _step_member(self, event: MemberEvent) -> tuple[Command, ...]:
        """Let the member handle an event; return its commands."""

    @abstractmethod
    def _adoption(self, before: M, commands: tuple[Command, ...]) -> AssignmentAdopted | None:
        """Return what the reader learns about an assignment that the member has taken over in this step."""

    def _close(self, event: Close) -> None:
        self.stage = Stage.CLOSE
        self._join(event)

    def _unsubscribed(self) -> None:
        """Handle that the member has dropped its subscription."""

    def _has_left(self) -> bool:
        """Return whether earlier requests fail with the connection although the coordinator is unknown already
        (K-ERR-13)."""
        return False

    # --- calls of both ---

    def _poll(self, event: Poll) -> None:
        if self.reader.mode.automatic:
            self._poll_in_group(event)
        else:
            self._read(event)

    def _thrown(self) -> bool:
        """Return whether the reader has ended the poll."""
        return any(isinstance(each, PollReturned) for each in self.commands)

    def _leave(self, event: Unsubscribe | Close) -> None:
        if self.reader.mode is Mode.MANUAL and isinstance(event, Unsubscribe):
            self._read(event)
            self.commands.append(Returned())
            return
        if isinstance(event, Close):
            self._close(event)
            return
        self.stage = Stage.UNSUBSCRIBE
        self._join(event)

    def _returned(self, failure: Failure | None, *, again: bool) -> None:
        """Handle the end of the member's part of a call; then the reader's part runs (K-POLL-01, K-LEAVE-04)."""
        stage, self.stage = self.stage, None
        match stage:
            case Stage.POLL:
                self._member_polled(failure, again=again)
            case Stage.CLOSE:  # a listener that throws ends the close here (K-LEAVE-04)
                self._read(Close(self.now, timeout_ms=None if failure is None else 0))
            case Stage.UNSUBSCRIBE if failure is None and self.reader.mode.automatic:
                self._read(Unsubscribe(self.now))
        if failure is not None or stage is Stage.UNSUBSCRIBE:
            self.commands.append(Returned(failure))

    def _coordinator(self, event: CoordinatorFound | CoordinatorLost | LookupFailed) -> None:
        """Pass on a coordinator event. One look-up serves both, but a failure goes only to those that look it up."""
        if isinstance(event, CoordinatorLost) or self.member.coordinator.node is None:
            looks = not isinstance(event, LookupFailed) or self.member.coordinator.looking_up
            if looks:
                self._join(event)
        if not isinstance(event, LookupFailed) or self.reader.coordinator.looking_up:
            self._read(event)

    # --- the halves ---

    def _join(self, event: MemberEvent) -> None:
        before = self.member
        commands = self._step_member(event)
        adoption = self._adoption(before, commands)
        if adoption is not None:  # K-CB-13: before the assignment is replaced
            self._read(adoption)
        view = membership_of(self.member)
        if view != self.reader.membership:
            self._read(MembershipChanged(self.now, view))
        if before.subscription.subscribed and not self.member.subscription.subscribed:
            self._unsubscribed()
        for command in commands:
            match command:
                case Commit(commit_id=number) if self.reader.close_by_ms is not None:  # the close has committed first
                    self._join(CommitFinished(self.now, commit_id=number, result=CommitResult.DONE))
                case Commit(commit_id=number, partitions=partitions):
                    closing = self.member.closed
                    self._read(CommitWanted(self.now, commit_id=number, partitions=partitions, closing=closing))
                case Returned(failure=failure, again=again):
                    self._returned(failure, again=again)
                case Send(request_id=number):
                    self.commands.append(replace(command, request_id=2 * number))
                case FindCoordinator() if self.reader.coordinator.looking_up:
                    pass
                case _:
                    self.commands.append(command)
        theirs = self.reader.coordinator.node is not None
        if isinstance(event, RequestLost) and self._has_left():  # on the earlier connection, which was still in use
            self._read(CoordinatorLost(self.now))
        elif theirs and before.coordinator.node is not None and self.member.coordinator.node is None:
            moved = isinstance(event, Answered)
            self._read(CoordinatorLost(self.now, moved=moved))  # they have one connection (K-ERR-13)

    def _read(self, event: ReaderEvent) -> None:
        before = self.reader
        self.reader, commands = reader_step(self.reader, event, self.jitter)
        lost = before.coordinator.node is not None and self.reader.coordinator.node is None
        moved = event.moved if isinstance(event, CoordinatorLost) else isinstance(event, Arrived)
        if lost and self.stage is Stage.COMMIT:  # the member must know that before it leaves
            if not self.member.coordinator.looking_up:
                self.commands += [each for each in commands if isinstance(each, FindCoordinator)]
            commands = tuple(each for each in commands if not isinstance(each, FindCoordinator))
            self._join(CoordinatorLost(self.now, moved=moved))
            lost = False
        for command in commands:
            match command:
                case PassToMember(event=member_event):
                    self.committed |= isinstance(member_event, CommitFinished)
                    self._join(member_event)
                case Send(request_id=number) | SendToLeader(request_id=number):
                    self.commands.append(replace(command, request_id=2 * number + 1))
                case FindCoordinator() if self.member.coordinator.looking_up:
                    pass
                case CallReturned() if self.stage is Stage.COMMIT:
                    self.stage = Stage.CLOSE
                    self._join(Close(self.now, self.option))
                case _:
                    self.commands.append(command)
        if lost:
            self._join(CoordinatorLost(self.now, moved=moved))
        elif isinstance(event, NeverArrived) and _to_coordinator(before, event.request_id) and self._has_left():
            self._join(CoordinatorLost(self.now))


class _ClassicPair(_Pair[Member]):
    """A classic member and its reader: they work one after the other (K-POLL-01)."""

    def _poll_in_group(self, event: Poll) -> None:
        self._read(RunCallbacks(self.now))  # K-POLL-01, step 2
        if not self._thrown():
            self.stage = Stage.POLL
            self._join(event)

    def _member_polled(self, failure: Failure | None, *, again: bool) -> None:
        """Let the reader poll. If the commit that the member waited for has ended meanwhile, the poll loop makes
        another pass."""
        if failure is not None:
            return
        if self.committed:
            self.committed, self.stage = False, Stage.POLL
            self._join(Poll(self.now, PollPart.RESUMED))
        else:
            self._read(Poll(self.now))

    def _step_member(self, event: MemberEvent) -> tuple[Command, ...]:
        self.member, commands = member_step(self.member, event, self.jitter)
        return commands

    def _adoption(self, before: Member, commands: tuple[Command, ...]) -> AssignmentAdopted | None:
        return AssignmentAdopted(self.now) if _assigns(commands) else None


#: Order in which the new consumer's background sends requests (N-POLL-02).
_SENT_FIRST = (OffsetCommitRequest, OffsetFetchRequest, ConsumerGroupHeartbeatRequest)


class _BackgroundPair(_Pair[ConsumerMember]):
    """A consumer group's member and its reader: both work in the background of the new consumer (N-POLL-01)."""

    def ordered(self) -> list[ConsumerCommand]:
        """Return the commands, with the requests to the coordinator in the order of the background. Other commands keep
        their places."""
        sends = [each for each in self.commands if isinstance(each, Send)]
        sends.sort(key=lambda each: next(at for at, kind in enumerate(_SENT_FIRST) if isinstance(each.body, kind)))
        ordered = iter(sends)
        return [next(ordered) if isinstance(each, Send) else each for each in self.commands]

    def _poll_in_group(self, event: Poll) -> None:
        """Run one pass of the poll loop, up to its queued tasks (N-POLL-01)."""
        self._read(Poll(self.now, PollPart.BEGIN))
        if not self._thrown() and self.reader.polled is None:  # else it uses the last event
            self._join(Poll(self.now, PollPart.BACKGROUND))
        if not self._thrown():
            self._read(Poll(self.now, PollPart.BACKGROUND))
        if self._thrown():
            return
        self.stage = Stage.POLL
        self._join(Poll(self.now, PollPart.BACKGROUND_EVENTS))
        if self.stage is Stage.POLL:  # a listener runs, and so does the background
            self._read(Poll(self.now, PollPart.BACKGROUND_EVENTS))

    def _member_polled(self, failure: Failure | None, *, again: bool) -> None:
        """Finish the pass. The poll continues while it has nothing to return and the background has queued more."""
        if failure is not None:
            self._read(Poll(self.now, PollPart.BROKEN))
            return
        self._read(Poll(self.now, PollPart.END))
        if PollReturned() in self.commands and again:
            self.commands.remove(PollReturned())
            self._poll_in_group(Poll(self.now))

    def _step_member(self, event: MemberEvent) -> tuple[Command, ...]:
        self.member, commands = consumer_step(self.member, event, self.jitter)
        return commands

    def _adoption(self, before: ConsumerMember, commands: tuple[Command, ...]) -> AssignmentAdopted | None:
        """The assignment is adopted when the reconciliation ends, and replaced when the listener is called."""
        adopted, replaced = self.member.current not in (None, before.current), _assigns(commands)
        if not adopted and not replaced:
            return None
        listens = self.member.settings.listener
        return AssignmentAdopted(self.now, replaced=replaced or not listens, adopted=adopted)

    def _close(self, event: Close) -> None:
        """Commit before the member leaves (N-CLOSE-01)."""
        self.stage, self.option = Stage.COMMIT, event.option
        self._read(CommitOnClose(self.now, event.timeout_ms))

    def _unsubscribed(self) -> None:
        """Unsubscribe the reader, even if the call still waits, or throws (N-TR-07)."""
        if self.stage is Stage.UNSUBSCRIBE:
            self._read(Unsubscribe(self.now))

    def _has_left(self) -> bool:
        return self.reader.coordinator.node is None


def _assigns(commands: tuple[Command, ...]) -> bool:
    """Return whether the listener is called with an assignment."""
    return any(isinstance(each, Listener) and each.call is Call.ASSIGNED for each in commands)


def _to_coordinator(reader: Reader, request_id: int) -> bool:
    return isinstance(reader.sent.get(request_id), SentCommit | SentLookup)
