"""The promises about answers to heartbeats of KIP-848 (rule book, 12.2)."""

from __future__ import annotations

from typing import Any, Final

from .promise import Promise
from .views import HeartbeatView

_NONE: Final = "NONE"


def _epoch_is_stored(seen: HeartbeatView) -> str:
    if seen.error != _NONE or seen.sent < 0 or seen.epoch == seen.stored:
        return ""
    return f"is answered epoch {seen.epoch}, but the group has {seen.stored}"


def _changed_assignment_is_answered(seen: HeartbeatView) -> str:
    if seen.error != _NONE or seen.sent < 0 or seen.has_assignment or seen.assigned is None:
        return ""
    before, after = seen.assigned
    return f"had {before}, has {after}, but its answer has no assignment" if before != after else ""


def _error_changes_nothing(seen: HeartbeatView) -> str:
    return f"is rejected with {seen.error}, but changed the group" if seen.error != _NONE and seen.changed else ""


HEARTBEATS: Final[tuple[Promise[Any], ...]] = (
    Promise(
        "INV-KIP-10",
        "A heartbeat that succeeds is answered with the member's epoch as it is stored.",
        HeartbeatView,
        _epoch_is_stored,
        {"consumer": ("EveryAnsweredEpochIsReplicated",)},
    ),
    Promise(
        "INV-KIP-15",
        "If the answer to a heartbeat has no assignment, the heartbeat did not change what the member is assigned.",
        HeartbeatView,
        _changed_assignment_is_answered,
        {"consumer": ("EveryChangedAssignmentIsAnswered",)},
    ),
    Promise(
        "INV-KIP-17",
        "A heartbeat that is answered with an error changes nothing in the log.",
        HeartbeatView,
        _error_changes_nothing,
    ),
)
