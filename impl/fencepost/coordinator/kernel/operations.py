"""What happens to a request when its handler is done. ``completion`` explains the design."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, TimerKey, TimerKind
from fencepost.protocol.messages import ResponseBody

from .replies import error_response
from .state import Callback, Operation
from .step import Step


def done(step: Step, request: Request, *, reply: ResponseBody | None = None, callback: Callback | None = None) -> None:
    """The handler of a request is done: answer the request, leave it to the group, or let it wait for the log.

    ``reply`` waits for the request's own records and all before (F-RT-24, F-RT-25), so the answer of a request that
    writes nothing waits for what was written before it (F-RT-07). Without ``reply``, the group answers: at once
    (F-RT-20, F-RT-22), when the rebalance allows it, or by ``callback`` (F-RT-21, F-RT-23).
    """
    if not step.log.all_replicated:
        answered = reply is None and step.requests.answered(request.id)
        _wait(step, request.id, Operation(request, step.log.end, reply, callback, answered))  # F-RT-07
    elif reply is not None:
        step.reply(request.id, reply)  # F-RT-16


def waits(step: Step, request: Request, callback: Callback, reply: ResponseBody | None = None) -> bool:
    """Let the request wait for the log, then run its callback. False if there is nothing to wait for."""
    if step.log.all_replicated:
        return False
    _wait(step, request.id, Operation(request, step.log.end, reply, callback, False))
    return True


def timer_done(step: Step, callback: Callback | None = None) -> None:
    """The same for a timer or task, which is a write operation too (F-RT-17) but needs no answer."""
    if not step.log.all_replicated:
        _wait(step, -(step.state.handled + 1), Operation(None, step.log.end, None, callback, True))


def _wait(step: Step, number: int, operation: Operation) -> None:
    step.requests.open(number, operation)
    step.timers.set(timer(number), step.settings.offsets_commit_timeout_ms)  # G-CFG-25


def broke(step: Step, request: Request) -> None:
    """The handler failed inside (C-JOIN-38c, C-JOIN-72, F-RT-10): its changes stay, its records are dropped."""
    step.log.records.clear()
    if not step.requests.answered(request.id):
        step.reply(request.id, error_response(request, ErrorCode.UNKNOWN_SERVER_ERROR))
        step.mark_answered(request.id)


def timer(number: int) -> TimerKey:
    """The key of the timer that ends the operation of this number."""
    return TimerKey(TimerKind.OPERATION, operation=number)
