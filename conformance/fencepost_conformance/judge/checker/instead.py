"""Whether other settings would explain a refusal.

If the trace does not show a setting of the broker, the checker assumes Kafka's default. A wrong assumption must not be
reported as a fault of the broker. So after a refusal the checker tries other values of these settings, as far as the
trace suggests any: how long joins waited, which session timeouts were accepted, which heartbeat interval the answers
contain, at how many members a group was full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse
from fencepost.protocol.settings import Settings

from ...traces.lines import Setting
from ...traces.wire.settings import changed, fitting, spelled
from .history import History, Op, member_ids

#: Returns the line of the first impossible event with these settings (after the header); None: the group is accepted.
Check = Callable[[Settings], int | None]

#: For settings whose value a trace cannot suggest: common values.
_SESSIONS: Final = (10_000, 6_000, 30_000, 60_000, 1_000, 120_000, 300_000)
_INTERVALS: Final = (0, 5_000, 15_000)
_RETENTIONS: Final = tuple(minutes * 60_000 for minutes in (1_440, 60, 30, 10, 5, 2, 1, 43_200, 525_600))
_CHECKS: Final = (60_000, 5_000, 1_000, 3_600_000)
#: Joins wait a little longer than the delay, so the waits are rounded down to this step.
_STEP_MS: Final = 100
#: The largest size of a full group that is tried.
_FULL: Final = 20
#: The most assumptions that are changed together.
_TOGETHER: Final = 2


@dataclass(frozen=True, slots=True)
class Instead:
    """Settings that would explain a refusal: with ``settings`` (fields and values) the group is accepted, or, with a
    ``line``, refused only there."""

    settings: tuple[tuple[str, Setting], ...]
    line: int | None = None

    def __str__(self) -> str:
        text = " and ".join(spelled(field, value) for field, value in self.settings)
        upto = "" if self.line is None else f" up to line {self.line}"
        return f"would be accepted{upto} with {text}, which the trace does not show; give it with --setting"


def instead(history: History, line: int, settings: Settings, assumed: Iterable[str], check: Check) -> Instead | None:
    """Other values of the ``assumed`` settings (fields) that explain the refusal at ``line``, or move it to a later
    line; None if there are none."""
    free = frozenset(assumed)
    tried = {field: list(_candidates(field, history, settings)) for field in free}
    best: dict[str, Setting] = {}
    furthest = line
    for _ in range(_TOGETHER):
        better: Mapping[str, Setting] | None = None
        for field, values in tried.items():
            for value in [] if field in best else values:
                changes = {**best, field: value}
                try:
                    refused = check(changed(settings, fitting(settings, changes, free)))
                except ValueError:  # no broker can have these together
                    continue
                if refused is None:
                    return Instead(tuple(changes.items()))
                if refused > furthest:
                    furthest, better = refused, changes
        if better is None:
            break
        best = dict(better)
    return Instead(tuple(best.items()), furthest) if best else None


def _candidates(field: str, history: History, settings: Settings) -> Iterable[Setting]:
    """The other values to try for a setting, the likeliest first."""
    ops = [event.op for event in history.events if event.answered]
    found: Iterable[Setting]
    match field:
        case "group_initial_rebalance_delay_ms":
            found = _delays(history)
        case "group_min_session_timeout_ms":
            found = [*_sessions(ops, let_in=True, pick=min), *(ms + 1 for ms in _sessions(ops, let_in=False, pick=max))]
        case "group_max_session_timeout_ms":
            found = [*_sessions(ops, let_in=True, pick=max), *(ms - 1 for ms in _sessions(ops, let_in=False, pick=min))]
        case "group_max_size" | "group_consumer_max_size":
            full = any(getattr(op.answer, "error_code", None) is ErrorCode.GROUP_MAX_SIZE_REACHED for op in ops)
            found = range(1, min(len(member_ids(op.answer for op in ops)), _FULL) + 1) if full else ()
        case "group_consumer_heartbeat_interval_ms":
            beats = [op.answer for op in ops if isinstance(op.answer, ConsumerGroupHeartbeatResponse)]
            found = [answer.heartbeat_interval_ms for answer in beats if answer.heartbeat_interval_ms]
        case "group_consumer_session_timeout_ms":
            found = _SESSIONS
        case "offsets_retention_ms":
            found = _RETENTIONS
        case "offsets_retention_check_interval_ms":
            found = _CHECKS
        case "group_consumer_assignment_interval_ms":
            found = _INTERVALS
        case "group_consumer_assignors":
            found = _assignors(ops, settings)
        case _:
            found = ()
    usual = getattr(settings, field)
    return [value for value in dict.fromkeys(found) if value != usual]


def _delays(history: History) -> list[Setting]:
    """The shortest and longest wait of the joins that were answered with a generation, rounded down."""
    waits = [
        event.at_ms - event.op.sent_ms
        for event in history.events
        if event.answered and isinstance(event.op.answer, JoinGroupResponse) and event.op.answer.generation_id >= 0
    ]
    return [*(wait - wait % _STEP_MS for wait in (min(waits), max(waits))), 0] if waits else []


def _sessions(ops: Iterable[Op], *, let_in: bool, pick: Callable[[list[int]], int]) -> list[int]:
    """The shortest or longest session timeout that was accepted, or that was rejected."""
    found = [
        op.body.session_timeout_ms
        for op in ops
        if isinstance(op.body, JoinGroupRequest) and isinstance(op.answer, JoinGroupResponse)
        if (op.answer.error_code is not ErrorCode.INVALID_SESSION_TIMEOUT) is let_in
    ]
    return [pick(found)] if found else []


def _assignors(ops: Iterable[Op], settings: Settings) -> list[Setting]:
    """The assignors without those that the broker rejected, plus those that it accepted; in both orders."""
    named: dict[str, bool] = {}
    for op in ops:
        if isinstance(op.body, ConsumerGroupHeartbeatRequest) and op.body.server_assignor is not None:
            named[op.body.server_assignor] = (
                getattr(op.answer, "error_code", None) is not ErrorCode.UNSUPPORTED_ASSIGNOR
            )
    usual = settings.group_consumer_assignors
    right = tuple(dict.fromkeys([*(name for name in usual if named.get(name, True)), *(n for n in named if named[n])]))
    return [each for each in (right, right[::-1]) if each]
