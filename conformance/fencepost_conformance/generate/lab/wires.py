"""The network of the laboratory: each message is an object that the user can lose, delay or repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from fencepost.member.events import Answered, CoordinatorFound, LookupFailed, MemberEvent, RequestLost, Send
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Reply
from fencepost.protocol.messages import JoinGroupResponse, RequestBody, ResponseBody

from ..simulate.host import AnyHost
from ..simulate.network import Network
from ..simulate.programs import QUIET
from ..simulate.world import World
from .journal import COORDINATOR, Fate, Journal, Kind, Message, Row
from .quiet import is_routine
from .start import ActionError

#: how long after a loss the client notices that its connection is broken
_NOTICED_MS: Final = 500


class Witness(World, Protocol):
    """The session that the network belongs to. ``delay_ms``: how long a message travels."""

    journal: Journal
    delay_ms: int


class Wires(Network):
    """A network that makes no faults itself. Messages between two ends arrive in order, unless the user delays one."""

    def __init__(self, lab: Witness) -> None:
        super().__init__(lab, QUIET)
        self._lab = lab
        self._last: dict[tuple[str, str], int] = {}
        self._handled: dict[int, Message] = {}  #: unanswered requests, by the coordinator's number
        self._answering: Message | None = None  #: the request that is being answered
        self._copies: set[int] = set()  #: the coordinator's numbers of repeated requests
        self._senders: dict[int, AnyHost] = {}  #: of messages that may still be repeated, by message number
        self._sent: dict[int, tuple[int, int]] = {}  #: process and request id of each request, by message number

    def delay(self) -> int:
        return self._lab.delay_ms

    # --- requests ---

    def send(self, host: AnyHost, command: Send) -> None:
        message = self._put(host.plan.name, COORDINATOR, command.body)
        self._senders[message.number] = host
        self._sent[message.number] = message.process, _ = host.process, command.request_id
        self._lab.journal.wire.append((self._lab.now, message.number))
        self._deliver_request(message, command.body)

    def _deliver_request(self, message: Message, body: RequestBody) -> None:
        host, (process, number) = self._senders[message.number], self._sent[message.number]

        def arrive() -> None:
            if self._still_due(message, arrive):
                message.fate, message.step = Fate.ARRIVED, len(self._lab.journal.steps)
                self._handled[self._requests + 1] = message
                if message.copy:
                    self._copies.add(self._requests + 1)
                self._lab.journal.rows.append(Row(self._lab.now, Kind.MESSAGE, message.sender, message=message.number))
                self._arrive(host, process, number, body)

        self._lab.later(message.due_ms - self._lab.now, arrive)

    # --- answers ---

    def answer(self, replies: Sequence[Reply]) -> None:
        """Send the answers of the coordinator's last step; that of a repeated request is dropped."""
        for reply in replies:
            self._answering = self._handled.pop(reply.request_id, None)
            if reply.request_id not in self._copies:
                super().answer([reply])

    def _answer(self, host: AnyHost, process: int, answer: Answered, life: tuple[int, int] | None) -> None:
        message = self._put(COORDINATOR, host.plan.name, answer.body)
        if self._answering is not None:
            message.step, message.asked = self._answering.step, self._answering.number
        self._senders[message.number] = host
        self._sent[message.number] = process, answer.request_id

        def arrive() -> None:
            if not self._still_due(message, arrive):
                return
            heard = process == host.process and host.running
            message.fate = Fate.ARRIVED if heard else Fate.IGNORED
            quiet = heard and is_routine(answer.body)
            row = Row(self._lab.now, Kind.MESSAGE, COORDINATOR, message=message.number, step=message.step, quiet=quiet)
            self._lab.journal.rows.append(row)
            if heard:
                self._lab.journal.wire.append((self._lab.now, message.number))
            if heard and isinstance(answer.body, JoinGroupResponse) and life is not None:
                host.life = life
            host.receive(process, replace(answer, at_ms=self._lab.now))

        self._lab.later(message.due_ms - self._lab.now, arrive)

    # --- services without a lane ---

    def find_coordinator(self, host: AnyHost) -> None:
        process, lab = host.process, self._lab

        def answer() -> None:
            found: MemberEvent = LookupFailed(lab.now, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            if lab.broker.active:
                found = CoordinatorFound(lab.now, node=lab.broker.leader_epoch)
            host.receive(process, found)

        lab.later(2 * self.delay(), answer)

    # --- what the user does to messages ---

    def lose(self, number: int | None) -> Message:
        """Lose a message; its client notices the broken connection a moment later."""
        message = self._flying(number)
        message.fate = Fate.LOST
        host, (process, request_id) = self._senders[message.number], self._sent[message.number]
        lab = self._lab
        lab.journal.rows.append(Row(lab.now, Kind.MESSAGE, message.sender, message=message.number))
        if not message.copy:
            lab.later(_NOTICED_MS, lambda: host.receive(process, RequestLost(lab.now, request_id=request_id)))
        return message

    def put_off(self, number: int | None, ms: int) -> Message:
        """Let a message arrive later."""
        message = self._flying(number)
        message.due_ms, message.moved = message.due_ms + ms, True
        return message

    def repeat(self, number: int | None) -> Message:
        """Let a request arrive a second time, as a client that sends it again on a new connection would."""
        message = self._flying(number)
        if message.receiver != COORDINATOR:
            raise ActionError(f"message {message.number} is an answer; only a request can be repeated")
        again = self._put(message.sender, COORDINATOR, message.body)
        again.copy, again.due_ms = True, message.due_ms + self.delay()
        self._senders[again.number] = self._senders[message.number]
        self._sent[again.number] = self._sent[message.number]
        again.process = message.process
        self._lab.journal.wire.append((self._lab.now, again.number))
        self._deliver_request(again, message.body)  # type: ignore[arg-type]  # it goes to the coordinator
        return again

    def _flying(self, number: int | None) -> Message:
        flying = self._lab.journal.flying
        if number is None:
            if not flying:
                raise ActionError("no message is on its way; step until one is sent")
            return flying[0]
        for message in flying:
            if message.number == number:
                return message
        numbers = ", ".join(str(each.number) for each in flying) or "none"
        raise ActionError(f"no message {number} is on its way (on their way: {numbers})")

    def _put(self, sender: str, receiver: str, body: RequestBody | ResponseBody) -> Message:
        lab, ends = self._lab, (sender, receiver)
        due = max(lab.now + self.delay(), self._last.get(ends, 0))
        self._last[ends] = due
        message = Message(len(lab.journal.messages) + 1, sender, receiver, body, lab.now, due)
        lab.journal.messages.append(message)
        return message

    def _still_due(self, message: Message, again: object) -> bool:
        """Whether the message arrives now. If the user has delayed it, it is scheduled once more."""
        if message.fate is not Fate.FLYING:
            return False
        if message.due_ms > self._lab.now:
            self._lab.later(message.due_ms - self._lab.now, again)  # type: ignore[arg-type]
            return False
        return True
