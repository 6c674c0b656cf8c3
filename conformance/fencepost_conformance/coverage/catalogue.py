"""Everything that a trace can reach, by name, each with a fixed place in the bitmap; and reasons for what it cannot."""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import VERSIONS
from fencepost.protocol.view import GroupState

from .rules import RULES, UNREACHED_RULES

_STATES = tuple(state.value for state in GroupState)
_TRANSITIONS = {
    "Empty": ("PreparingRebalance", "Dead"),
    "PreparingRebalance": ("Empty", "CompletingRebalance", "Dead"),
    "CompletingRebalance": ("PreparingRebalance", "Stable", "Dead"),
    "Stable": ("PreparingRebalance", "Dead"),
}  # C-ST-10…16

_COMMON = ("NONE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "GROUP_AUTHORIZATION_FAILED")
_MAPPED = ("COORDINATOR_NOT_AVAILABLE", "UNKNOWN_SERVER_ERROR", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")
_ERRORS: dict[str, tuple[str, ...]] = {
    "JoinGroup": (
        *_COMMON, *_MAPPED, "INVALID_GROUP_ID", "INVALID_SESSION_TIMEOUT", "UNKNOWN_MEMBER_ID", "MEMBER_ID_REQUIRED",
        "INCONSISTENT_GROUP_PROTOCOL", "FENCED_INSTANCE_ID", "GROUP_MAX_SIZE_REACHED",
    ),
    "SyncGroup": (
        *_COMMON, *_MAPPED, "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "ILLEGAL_GENERATION",
        "INCONSISTENT_GROUP_PROTOCOL", "REBALANCE_IN_PROGRESS",
    ),
    "Heartbeat": (
        "NONE", "NOT_COORDINATOR", "GROUP_AUTHORIZATION_FAILED", "COORDINATOR_NOT_AVAILABLE", "INVALID_GROUP_ID",
        "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
    ),
    "LeaveGroup": (*_COMMON, *_MAPPED, "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"),
    "DescribeGroups": (*_COMMON, "GROUP_ID_NOT_FOUND"),
    "ListGroups": ("NONE", "COORDINATOR_LOAD_IN_PROGRESS"),
    "DeleteGroups": (*_COMMON, *_MAPPED, "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"),
}  # fmt: skip
_EVENTS = (
    "Request", "TimerFired", "Appended", "AppendFailed", "LoadStarted", "Load", "LoadFailed", "Unload",
)  # fmt: skip
_TIMERS = (TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION, TimerKind.OPERATION)


def _all_features() -> Iterable[str]:
    yield from (f"event {name}" for name in _EVENTS)
    yield from (f"state {name}" for name in _STATES)
    yield from (f"transition {source} → {target}" for source, targets in _TRANSITIONS.items() for target in targets)
    for api, errors in _ERRORS.items():
        yield from (f"error {api} {error}" for error in errors)
    for kind in _TIMERS:
        yield from (f"timer {kind.name} {what}" for what in ("set", "moved", "cancelled", "fired"))
    for message, (first, last) in VERSIONS.items():
        api = message.__name__.removesuffix("Request")
        if api not in _ERRORS:
            continue
        yield from (f"version {api} {version}" for version in range(first, last + 1))
    yield from (f"append fails {ErrorCode(code).name}" for code in (3, 4, 6, 7, 10, 18, 19, 20, 56))
    yield from (f"rule {rule}" for rule in sorted((*RULES, *UNREACHED_RULES)))


FEATURES: tuple[str, ...] = tuple(_all_features())
PLACE: dict[str, int] = {name: place for place, name in enumerate(FEATURES)}

#: why a feature is not reached, or need not be
REASONS: dict[str, str] = {
    "state Dead": "a group is Dead only while the partition is unloaded, when no request and no view reaches it",
    **{
        f"transition {source} → Dead": "happens inside Unload, after which the group is gone (C-ST-16)"
        for source in _TRANSITIONS
    },
    **{f"rule {rule}": reason for rule, reason in UNREACHED_RULES.items()},
}


def bitmap(reached: Iterable[str]) -> bytes:
    """The features as bits, place 0 first. Names outside the catalogue raise ``KeyError``."""
    bits = bytearray((len(FEATURES) + 7) // 8)
    for name in reached:
        place = PLACE[name]
        bits[place >> 3] |= 1 << (place & 7)
    return bytes(bits)


def places(bits: bytes) -> list[int]:
    """The places whose bit is set, in order."""
    return [place for place in range(len(FEATURES)) if bits[place >> 3] >> (place & 7) & 1]


def names(bits: bytes) -> list[str]:
    """The features of a bitmap in catalogue order."""
    return [FEATURES[place] for place in places(bits)]


def union(bitmaps: Iterable[bytes]) -> bytes:
    """What any of them reached."""
    total = 0
    for bits in bitmaps:
        total |= int.from_bytes(bits, "little")
    return total.to_bytes((len(FEATURES) + 7) // 8, "little")
