"""The timers of a classic member, derived from the actions of its model (rule book, 8.3).

The model has no clock: its caller says when a timer has expired. This module computes which timers run after a step,
and the delay of those that the step has set. The caller keeps a ``Timers`` beside the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatRequest, HeartbeatResponse, JoinGroupResponse

from ..machines import M_COMPLETING, M_STABLE
from .answers import AT_ONCE
from .inputs import Answer, CoordinatorFound, HeartbeatDue, MemberInput, Poll, PollExpired, SessionExpired
from .model import MemberSuccessor
from .outputs import Send
from .state import MemberState

HEARTBEAT: Final = "heartbeat"
SESSION: Final = "session"
POLL: Final = "poll"
RETRY: Final = "retry"
_OF_THE_THREAD: Final = (HEARTBEAT, SESSION, POLL)
_RUN_OUT: Final[dict[type, str]] = {HeartbeatDue: HEARTBEAT, SessionExpired: SESSION, PollExpired: POLL}


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays in ms, as the member is configured."""

    heartbeat_interval: int
    session_timeout: int
    max_poll_interval: int
    retry_backoff: int
    retry_backoff_max: int

    def backoff(self, failures: int) -> int:
        """Return the delay after so many failures: exponential, without jitter (K-HB-05)."""
        return int(min(self.retry_backoff * 2 ** min(failures, 30), self.retry_backoff_max))


class Timers(NamedTuple):
    """The timers of a member. ``begun``: timers that were set and have not expired, with the delay if the last step set
    them, else None. Those of the heartbeat thread may not run. ``failures``: of heartbeats, since the last good
    answer."""

    begun: tuple[tuple[str, int | None], ...] = ()
    failures: int = 0

    def running(self, state: MemberState) -> dict[str, int | None]:
        """Return the timers that run in this state. Those of the heartbeat thread run only while it works and knows the
        coordinator (K-HB-02)."""
        if state.closed:
            return {}
        works = state.thread and state.beating and state.state in (M_COMPLETING, M_STABLE) and state.coordinator
        return {name: delay for name, delay in self.begun if works or name not in _OF_THE_THREAD}

    def without(self, timer: str) -> Timers:
        """Return the timers without that one, which has expired."""
        return self._replace(begun=tuple(row for row in self.begun if row[0] != timer))


def after(delays: Delays, timers: Timers, before: MemberState, step: MemberInput, successor: MemberSuccessor) -> Timers:
    """Return the timers after a step of the model from ``before``."""
    begun: dict[str, int | None] = {name: None for name, _ in timers.begun if name != _RUN_OUT.get(type(step))}
    failures = timers.failures
    lost = _heartbeats_lost(before, step, successor)
    for _ in range(lost):
        begun[HEARTBEAT] = delays.backoff(failures)  # K-HB-05
        failures += 1
    if isinstance(step, Answer) and isinstance(step.body, JoinGroupResponse):
        if "K-ERR-01" in successor.rules and before.thread:  # all three restart (K-HB-01)
            begun |= {
                HEARTBEAT: delays.heartbeat_interval,
                SESSION: delays.session_timeout,
                POLL: delays.max_poll_interval,
            }
    elif isinstance(step, CoordinatorFound) and step.error is ErrorCode.NONE:
        begun[SESSION] = delays.session_timeout  # K-HB-02
    elif isinstance(step, Answer) and isinstance(step.body, HeartbeatResponse) and _counts_as_good(before, step):
        begun[SESSION] = delays.session_timeout  # K-ERR-01, K-ERR-06, K-ST-15
        failures = 0
    elif isinstance(step, Answer) and before.commit and not successor.state.commit:
        begun[RETRY] = delays.retry_backoff  # a commit of join prepare that is retried (K-CB-01)
    elif isinstance(step, Poll) and before.topics:
        if before.thread and not before.failure:
            begun[POLL] = delays.max_poll_interval  # K-HB-09
        if _backs_off(before, successor.state):
            begun[RETRY] = delays.retry_backoff  # K-ERR-14
    if any(isinstance(each, Send) and isinstance(each.body, HeartbeatRequest) for each in successor.outputs):
        begun[HEARTBEAT] = delays.heartbeat_interval  # K-HB-08
    return Timers(tuple(begun.items()), failures)


def _sent_generation(before: MemberState, step: Answer) -> object:
    return next(each.generation for each in before.in_flight if each.request == step.request)


def _counts_as_good(before: MemberState, step: Answer) -> bool:
    assert isinstance(step.body, HeartbeatResponse)
    error = step.body.error_code
    about_another = before.generation != _sent_generation(before, step)
    of_the_generation = error in (
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.FENCED_INSTANCE_ID,
    )
    return error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS) or (of_the_generation and about_another)


def _heartbeats_lost(before: MemberState, step: MemberInput, successor: MemberSuccessor) -> int:
    """Return how many heartbeats have failed: the one with this answer, and all that were in flight to a lost
    coordinator."""
    heartbeats = [each.request for each in before.in_flight if each.api == "heartbeat"]
    answered = step.request if isinstance(step, Answer) and step.body is not None else None
    lost = 0
    if before.coordinator and not successor.state.coordinator:  # K-ERR-13
        lost += sum(request != answered for request in heartbeats)
    if isinstance(step, Answer) and isinstance(step.body, HeartbeatResponse) and not _counts_as_good(before, step):
        lost += step.body.error_code is not ErrorCode.FENCED_INSTANCE_ID  # that error ends the thread (K-HB-10)
    return lost


def _backs_off(before: MemberState, now: MemberState) -> bool:
    """Return whether the poll has handled a failed join that is retried later."""
    joined = before.joined
    dealt_with = joined is not None and now.joined is None
    at_once = joined is not None and joined.error in [error.name for error in AT_ONCE]
    return dealt_with and joined is not None and bool(joined.error) and joined.retriable and not at_once
