"""The timers of a KIP-848 member, from what its model does (rule book, 8.9 and 8.10).

The model has no clock: its caller says when a timer has run out. This module says which timers run after a step, and
with what delay those run that the step has set. The caller keeps a ``Timers`` beside the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode

from ...machines import IN_GROUP, PREPARE_LEAVING
from ..inputs import CoordinatorFound, HeartbeatDue, PollExpired
from ..outputs import Send
from .inputs import ClientInput, CommitDue, CommitEnded, Disconnected, Heard
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
#: After these the next heartbeat goes at once (N-ERR-01, N-ERR-02).
_AT_ONCE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
)


@dataclass(frozen=True, slots=True)
class Delays:
    """In ms, as the member is configured; the interval of heartbeats is the coordinator's to say. ``late_count``:
    answers from before a leave count, as they do to Kafka's client (N-HB-11)."""

    max_poll_interval: int
    retry_backoff: int
    retry_backoff_max: int
    late_count: bool

    def backoff(self, failures: int) -> int:
        """Exponential, without jitter (N-HB-07)."""
        return int(min(self.retry_backoff * 2 ** min(failures, 30), self.retry_backoff_max))


class Timers(NamedTuple):
    """``begun``: timers that were set and have not run out, with the delay if the last step set them, else None; some
    stand still. ``interval``: of heartbeats, as the coordinator said last. ``failures``: of heartbeats, since the last
    good answer; ``lookups``: of look-ups of the coordinator; ``looking``: one is under way."""

    begun: tuple[tuple[str, int | None], ...] = ()
    interval: int = 0
    failures: int = 0
    lookups: int = 0
    looking: bool = False

    def running(self, state: ClientState) -> dict[str, int | None]:
        """Those that run in this state: of heartbeats and polls only while the coordinator is known (N-TR-13)."""
        beats = state.coordinator and state.flying is None and state.state in (*IN_GROUP, PREPARE_LEAVING)
        matters = {
            HEARTBEAT: beats,  # N-HB-06
            BACKOFF: beats,
            POLL: state.coordinator and state.state in IN_GROUP,
            LOOKUP: not state.coordinator and not self.looking,
        }
        return {name: delay for name, delay in self.begun if matters.get(name, True)}

    def looks_again(self) -> Timers:
        """The back-off of look-ups is over, and one begins."""
        return self._replace(begun=tuple(row for row in self.begun if row[0] != LOOKUP), looking=True)


@dataclass
class _Work:
    """The timers while one step is dealt with."""

    delays: Delays
    begun: dict[str, int | None]
    interval: int
    failures: int

    def failed(self) -> None:
        """N-HB-07."""
        self.begun.pop(HEARTBEAT, None)
        self.begun[BACKOFF] = self.delays.backoff(self.failures)
        self.failures += 1

    def skip(self) -> None:
        """N-ERR-01, N-ERR-02."""
        self.begun.pop(HEARTBEAT, None)
        self.begun.pop(BACKOFF, None)
        self.failures = 0

    def good(self, interval: int) -> None:
        """N-HB-07."""
        if interval != self.interval:
            self.interval = self.begun[HEARTBEAT] = interval
        self.begun[BACKOFF] = self.delays.backoff(0)
        self.failures = 0


def after(delays: Delays, timers: Timers, before: ClientState, step: ClientInput, successor: ClientSuccessor) -> Timers:
    """The timers after a step of the model from ``before``."""
    now = successor.state
    out = _RUN_OUT.get(type(step), ())
    work = _Work(delays, {name: None for name, _ in timers.begun if name not in out}, timers.interval, timers.failures)
    _hear(work, before, step)
    if "N-POLL-01" in successor.rules:
        work.begun[POLL] = delays.max_poll_interval
    for output in successor.outputs:
        if isinstance(output, Send) and isinstance(output.body, ConsumerGroupHeartbeatRequest):
            work.begun[HEARTBEAT] = work.interval  # N-HB-07: it counts from here
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


def _hear(work: _Work, before: ClientState, step: ClientInput) -> None:
    """What an answer or its loss does to the timers of heartbeats."""
    late_counts = work.delays.late_count
    lost = isinstance(step, Disconnected) and before.coordinator
    if isinstance(step, Heard) and step.body is None:
        lost = before.flying is not None or bool(before.late)  # else it is the leave of N-TR-09 alone
    if lost:
        _lose(work, before.flying is not None, len(before.late) if late_counts else 0)
        return
    if not isinstance(step, Heard) or step.body is None or step.request in before.ignored:
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


def _lose(work: _Work, flying: bool, late: int) -> None:
    """The connection is lost with all that was sent (N-ERR-06)."""
    for _ in range(flying + late):
        work.failed()
