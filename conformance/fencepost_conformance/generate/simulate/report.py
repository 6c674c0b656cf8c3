"""The result of a simulation, and the lines that print it."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Event, Request, TimerFired

from ...traces.observation import Observation
from .broken import Broken
from .plan import Plan


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a plan. ``broken``: the first broken property; ``last``: the log lines before it.

    ``settled_ms``: how long the slowest group took to settle once the environment was quiet."""

    plan: Plan
    events: int
    member_steps: int
    generations: int
    settled_ms: int
    broken: Broken | None = None
    last: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"seed {self.plan.seed}: {self.events} events, {self.member_steps} member steps"
        if self.broken is None:
            return f"{head}, settled after {self.settled_ms} ms"
        schedule = "\n".join(map(str, self.plan.disruptions)) or "  (only faults of the network)"
        lines = "\n".join(self.last)
        return f"{head}\nbroken: {self.broken}\nschedule:\n{schedule}\nlast events:\n{lines}"


def line_of(event: Event, seen: Observation) -> str:
    """Return one line that shows a coordinator's event and its effects."""
    groups = ", ".join(
        f"{name} {group.state.value} {group.generation_id}" if group is not None else f"{name} gone"
        for name, group in seen.groups.items()
    )
    groups += ", ".join(
        f"{name} {group.state.value} {group.assignment_epoch}/{group.group_epoch}" if group is not None else name
        for name, group in seen.consumer_groups.items()
    )
    what = type(event.body).__name__ if isinstance(event, Request) else type(event).__name__
    if isinstance(event, TimerFired):
        what = f"timer {event.key.kind.value} {event.key.member_id or event.key.operation or ''}"
    elif isinstance(event, Request):
        what = f"{what} #{event.id} of {getattr(event.body, 'member_id', '')!r} ({event.client_id})"
    answers = ", ".join(
        f"#{reply.request_id} {getattr(reply.body, 'error_code', ErrorCode.NONE).name}" for reply in seen.replies
    )
    return f"coordinator: {what} → {groups or 'same'}" + (f"; answers {answers}" if answers else "")
