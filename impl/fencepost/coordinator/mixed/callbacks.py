"""Effects of the log on a classic member of a consumer group, when it has the records of the member's request."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind

from ..kernel.errors import operation_error
from ..kernel.operations import AppendCallback
from ..kernel.replies import error_response
from ..kernel.state import Operation
from ..kernel.step import Step


class AnsweredByOperation(AppendCallback):
    """Only the operation knows the request: a late append is answered with an error, and the changes stay."""

    __slots__ = ()

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """Answer the sender that it took too long; the callback still runs later (F-RT-07)."""
        if not operation.answered:
            assert operation.request is not None
            step.reply(number, error_response(operation.request, operation_error(ErrorCode.REQUEST_TIMED_OUT)))


@dataclass(frozen=True, slots=True)
class ClassicJoined(AnsweredByOperation):
    """A JoinGroup to a consumer group, with the timers of its member in ms, None after a downgrade (X-JOIN-20)."""

    group_id: str
    member_id: str
    session_timeout: int | None
    sync_timeout: int | None

    def replicated(self, step: Step, request: Request) -> None:
        """The member has joined: set its session and sync timers; it no longer has to join (X-JOIN-20, X-DOWN-24)."""
        name, member_id = self.group_id, self.member_id
        step.timers.cancel(TimerKey(TimerKind.CONSUMER_JOIN, name, member_id))
        if self.session_timeout is not None and self.sync_timeout is not None:
            step.timers.set(TimerKey(TimerKind.CONSUMER_SESSION, name, member_id), self.session_timeout)
            step.timers.set(TimerKey(TimerKind.CONSUMER_SYNC, name, member_id), self.sync_timeout)
