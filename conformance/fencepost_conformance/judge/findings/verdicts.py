"""The verdict on a played trace: its judge's answer, if the target really played the intended trace."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.errors import IMPOSSIBLE, ErrorCode
from fencepost.protocol.events import Appended, Event

from ...traces.files import EventTrace
from .catalogue import Finding
from .judge import Judged, NotReached, Verdict
from .played_trace import PlayedTrace

#: what a target reports for an event that is impossible there; not its fault
#: errors of a coordinator that will not or cannot do what is asked; they prove nothing
_UNWILLING: Final = {
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNSUPPORTED_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def verdict(finding: Finding, trace: EventTrace, played: PlayedTrace) -> Judged:
    """Judge a played trace. A rule that holds counts only if the target played the whole trace, apart from events that
    only the bug makes possible, and if its answers are those of a working coordinator."""
    for place, step in enumerate(played.steps):
        if step.seen.error in IMPOSSIBLE:
            return Judged(Verdict.DIFFERENT, f"event {place} cannot be played: {step.seen.error}")
    try:
        broken = finding.judge(played)
    except NotReached as reason:
        return Judged(Verdict.DIFFERENT, str(reason))
    if broken is not None:
        return Judged(Verdict.PRESENT, broken)
    unplayed = _unplayed(finding, played) or _unwilling(finding, trace, played)
    return Judged(Verdict.GONE) if unplayed is None else Judged(Verdict.DIFFERENT, unplayed)


def _unplayed(finding: Finding, played: PlayedTrace) -> str | None:
    for place, event in played.dropped:
        # a missing replication does not matter: there was nothing to replicate
        if place not in finding.needless and not isinstance(event, Appended):
            return f"event {place} of the trace is impossible here: {_words(event)}"
    return None


def _words(event: Event) -> str:
    key = getattr(event, "key", None)
    about = "" if key is None else f" {key.kind.value} {key.group_id}"
    return type(event).__name__ + about


def _unwilling(finding: Finding, trace: EventTrace, played: PlayedTrace) -> str | None:
    recorded = {
        (reply.request_id, getattr(reply.body, "error_code", None))
        for seen in trace.observations
        for reply in (seen.replies if seen is not None else ())
    }
    numbers = {number for number, (place, _) in played.requests.items() if played.steps[place].origin is not None}
    if not numbers & played.answers.keys():
        return "no request is answered"
    for number in numbers & played.answers.keys():
        error = getattr(played.answers[number][1], "error_code", None)
        if error in _UNWILLING - finding.errors_if_fixed and (number, error) not in recorded:
            return f"request {number} is answered {ErrorCode(error).name}"
    return None
