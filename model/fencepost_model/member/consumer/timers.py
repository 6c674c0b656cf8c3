"""The timers of a KIP-848 member, derived from the actions of its model (rule book, 8.9 and 8.10).

The model has no clock: its caller says when a timer has expired. This module computes which timers run after a step,
and the delay of those that the step has set. The caller keeps a ``Timers`` beside the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode

from ...machines import IN_GROUP, PREPARE_LEAVING
from ..inputs import CoordinatorFound, HeartbeatDue, PollExpired
from ..outputs import Send
from .inputs import ClientInput, CommitDue, CommitEnded, Disconnected, HeartbeatAnswered
from .model import ClientSuccessor
from .state import ClientState

HEARTBEAT: Final = "heartbeat"
BACKOFF: Final = "backoff"
POLL: Final = "poll"
RETRY: Final = "retry"
LOOKUP: Final = "lookup"
_RUN_OUT: Final[dict[type, tuple[str, ...]]] = {
    HeartbeatDue: (HEARTBEAT, BACKOFF),
    PollExpired: (POLL,),
    CommitDue: (RETRY,),
}
#: After these errors the next heartbeat is sent at once (N-ERR-01, N-ERR-02).
_AT_ONCE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
)


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays in ms, as the member is configured; the coordinator sets the heartbeat interval. ``late_count``: answers
    from before a leave count, as in Kafka's client (N-HB-11)."""

    max_poll_interval: int
    retry_backoff: int
    retry_backoff_max: int
    late_count: bool

    def backoff(self, failures: int) -> int:
        """Return the delay after so many failures: exponential, without jitter (N-HB-07)."""
        return int(min(self.retry_backoff * 2 ** min(failures, 30), self.retry_backoff_max))


class Timers(NamedTuple):
    """The timers of a member.

    - ``begun``: timers that were set and have not expired, with the delay if the last step set them, else None. Some do
      not run.
    - ``interval``: of heartbeats, as the coordinator said last.
    - ``failures``: of heartbeats, since the last good answer; ``lookups``: of coordinator look-ups.
    - ``looking``: a look-up is running.
    """

    begun: tuple[tuple[str, int | None], ...] = ()
    interval: int = 0
    failures: int = 0
    lookups: int = 0
    looking: bool = False

    def running(self, state: ClientState) -> dict[str, int | None]:
        """Return the timers that run in this state. Those of heartbeats and polls run only while the coordinator is
        known (N-TR-13)."""
        may_heartbeat = state.coordinator and state.in_flight is None and state.state in (*IN_GROUP, PREPARE_LEAVING)
        matters = {
            HEARTBEAT: may_heartbeat,  # N-HB-06
            BACKOFF: may_heartbeat,
            POLL: state.coordinator and state.state in IN_GROUP,
            LOOKUP: not state.coordinator and not self.looking,
        }
        return {name: delay for name, delay in self.begun if matters.get(name, True)}

    def looks_again(self) -> Timers:
        """Begin a look-up after its back-off."""
        return self._replace(begun=tuple(row for row in self.begun if row[0] != LOOKUP), looking=True)


@dataclass
class _Work:
    """The timers while one step is handled."""

    delays: Delays
    begun: dict[str, int | None]
    interval: int
    failures: int

    def failed(self) -> None:
        """Back off after a failed heartbeat (N-HB-07)."""
        self.begun.pop(HEARTBEAT, None)
        self.begun[BACKOFF] = self.delays.backoff(self.failures)
        self.failures += 1

    def skip(self) -> None:
        """Send the next heartbeat without back-off (N-ERR-01, N-ERR-02)."""
        self.begun.pop(HEARTBEAT, None)
        self.begun.pop(BACKOFF, None)
        self.failures = 0

    def good(self, interval: int) -> None:
        """Restart after a good answer, which may bring another interval (N-HB-07)."""
        if interval != self.interval:
            self.interval = self.begun[HEARTBEAT] = interval
        self.begun[BACKOFF] = self.delays.backoff(0)
        self.failures = 0


def after(delays: Delays, timers: Timers, before: ClientState, step: ClientInput, successor: ClientSuccessor) -> Timers:
    """Return the timers after a step of the model from ``before``."""
    now = successor.state
    out = _RUN_OUT.get(type(step), ())
    work = _Work(delays, {name: None for name, _ in timers.begun if name not in out}, timers.interval, timers.failures)
    _after_answer(work, before, step)
    if "N-POLL-01" in successor.rules:
        work.begun[POLL] = delays.max_poll_interval
    for output in successor.outputs:
        if isinstance(output, Send) and isinstance(output.body, ConsumerGroupHeartbeatRequest):
            work.begun[HEARTBEAT] = work.interval  # the interval starts here (N-HB-07)
            if output.request in now.ignored:
                work.skip()  # N-TR-09
    if isinstance(step, CommitEnded) and now.work is not None and now.work.stage == "retry":
        work.begun[RETRY] = delays.retry_backoff  # N-REC-04
    lookups, looking = timers.lookups, timers.looking
    if isinstance(step, CoordinatorFound):
        looking = False
        found = step.error is ErrorCode.NONE
        work.begun[LOOKUP] = delays.backoff(0 if found else lookups)  # K-FIND-01
        lookups = 0 if found else lookups + 1
    if before.coordinator and not now.coordinator:
        lookups, looking = 0, False
    if now.closed and (not before.closed or before.close_commit is not None) and now.close_commit is None:
        work.begun.pop(RETRY, None)  # N-CLOSE-01
        work.begun.pop(LOOKUP, None)
    if not now.coordinator and not now.closed and LOOKUP not in work.begun:
        looking = True
    return Timers(tuple(work.begun.items()), work.interval, work.failures, lookups, looking)


def _after_answer(work: _Work, before: ClientState, step: ClientInput) -> None:
    """Apply an answer or its loss to the heartbeat timers."""
    late_counts = work.delays.late_count
    lost = isinstance(step, Disconnected) and before.coordinator
    if isinstance(step, HeartbeatAnswered) and step.body is None:
        lost = before.in_flight is not None or bool(before.late)  # else only the leave of N-TR-09
    if lost:
        _lose(work, before.in_flight is not None, len(before.late) if late_counts else 0)
        return
    if not isinstance(step, HeartbeatAnswered) or step.body is None or step.request in before.ignored:
        return
    if step.request in before.late and not late_counts:
        return
    error = step.body.error_code
    if error is ErrorCode.NONE:
        work.good(step.body.heartbeat_interval_ms)
        return
    work.failed()
    if error in _AT_ONCE:
        work.skip()


def _lose(work: _Work, in_flight: bool, late: int) -> None:
    """Lose the connection with all requests in flight (N-ERR-06)."""
    for _ in range(in_flight + late):
        work.failed()
