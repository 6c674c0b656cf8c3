"""The promises about answers: to JoinGroup, SyncGroup, and heartbeats of KIP-848 (rule book, 12.1 and 12.2)."""

from __future__ import annotations

from typing import Any, Final

from .promise import Promise
from .views import HeartbeatView, JoinAnswerView, SyncAnswerView

_NONE: Final = "NONE"


def _names_a_member(seen: JoinAnswerView) -> str:
    if seen.group is None:
        return "there is no group"
    ids = {member.member_id for member in seen.group.members}
    return "" if seen.member_id in ids else f"the members are {sorted(ids)}"


def _lists_all_members(seen: JoinAnswerView) -> str:
    ids = {member.member_id for member in seen.group.members} if seen.group else set()
    return (
        "" if seen.listed in (set(), ids) else f"the answer lists {sorted(seen.listed)}, the members are {sorted(ids)}"
    )


def _has_the_generation(seen: SyncAnswerView) -> str:
    if seen.group is None:
        return "there is no group"
    same = seen.generation == seen.group.generation
    return "" if same else f"generation {seen.generation} succeeds in generation {seen.group.generation}"


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


ANSWERS: Final[tuple[Promise[Any], ...]] = (
    Promise(
        "INV-JOIN-02",
        "The members list in an answer to JoinGroup has all members of the group and no others.",
        JoinAnswerView,
        _lists_all_members,
    ),
    Promise(
        "INV-JOIN-03",
        "A JoinGroup that succeeds is answered with the id of a member of the group.",
        JoinAnswerView,
        _names_a_member,
    ),
    Promise(
        "INV-SYNC-03",
        "A SyncGroup succeeds only with the current generation.",
        SyncAnswerView,
        _has_the_generation,
        restated={"classic": ("AStaleSyncChangesNothing",)},
    ),
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
        restated={"consumer": ("AStaleHeartbeatChangesNothing",), "mixed": ("AStaleSyncChangesNothing",)},
    ),
)
