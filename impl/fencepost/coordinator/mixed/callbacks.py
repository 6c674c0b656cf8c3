"""What the log does to a classic member of a consumer group when it has what the member asked for."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind

from ..kernel.completion import AppendCallback
from ..kernel.errors import operation_error
from ..kernel.replies import refusal
from ..kernel.state import Operation
from ..kernel.step import Step


class AnsweredByOperation(AppendCallback):
    """Nobody but the operation knows of the request: if the log is late it says so, and what was written stays."""

    __slots__ = ()

    def timed_out(self, step: Step, number: int, operation: Operation) -> None:
        """The sender is told that it took too long; the callback still comes (F-RT-07)."""
        if not operation.answered:
            assert operation.request is not None
            step.reply(number, refusal(operation.request, operation_error(ErrorCode.REQUEST_TIMED_OUT)))


@dataclass(frozen=True, slots=True)
class ClassicJoined(AnsweredByOperation):
    """A JoinGroup to a consumer group; the timers of its member in ms, None if the group was downgraded (X-JOIN-20)."""

    group_id: str
    member_id: str
    session_timeout: int | None
    sync_timeout: int | None

    def replicated(self, step: Step, request: Request) -> None:
        """The member has joined: it has its session and sync timers, and is not expected to join any more (X-JOIN-20,
        X-DOWN-24)."""
        name, member_id = self.group_id, self.member_id
        step.timers.cancel(TimerKey(TimerKind.CONSUMER_JOIN, name, member_id))
        if self.session_timeout is not None and self.sync_timeout is not None:
            step.timers.set(TimerKey(TimerKind.CONSUMER_SESSION, name, member_id), self.session_timeout)
            step.timers.set(TimerKey(TimerKind.CONSUMER_SYNC, name, member_id), self.sync_timeout)
