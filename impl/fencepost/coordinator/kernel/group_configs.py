"""The settings that a group may override, within the bounds of the broker (M-CFG-01)."""

from __future__ import annotations

from typing import Final

from fencepost.protocol.events import GroupConfig

from .step import Step

_NONE: Final = GroupConfig()


def consumer_session_timeout(step: Step, group_id: str) -> int:
    """How long a member of the group may be silent, in ms (G-CFG-10, G-CFG-28)."""
    settings = step.settings
    value = step.configs.get(group_id, _NONE).consumer_session_timeout_ms
    low, high = settings.group_consumer_min_session_timeout_ms, settings.group_consumer_max_session_timeout_ms
    return _configured(step, value, settings.group_consumer_session_timeout_ms, low, high)


def consumer_heartbeat_interval(step: Step, group_id: str) -> int:
    """The interval between heartbeats of a member, in ms (G-CFG-11, G-CFG-28)."""
    settings = step.settings
    value = step.configs.get(group_id, _NONE).consumer_heartbeat_interval_ms
    low, high = settings.group_consumer_min_heartbeat_interval_ms, settings.group_consumer_max_heartbeat_interval_ms
    return _configured(step, value, settings.group_consumer_heartbeat_interval_ms, low, high)


def consumer_assignment_interval(step: Step, group_id: str) -> int:
    """The least time between two targets of the group, in ms (G-CFG-30)."""
    settings = step.settings
    value = step.configs.get(group_id, _NONE).consumer_assignment_interval_ms
    low, high = settings.group_consumer_min_assignment_interval_ms, settings.group_consumer_max_assignment_interval_ms
    return _configured(step, value, settings.group_consumer_assignment_interval_ms, low, high)


def _configured(step: Step, value: int | None, usual: int, low: int, high: int) -> int:
    """The value of the group, or the nearest one that the broker allows; that of the broker if the group has none
    (M-CFG-01, G-CFG-28). The latter never changes while a coordinator exists, so its start value is the current one
    (V-128)."""
    if value is None:
        return usual
    return min(max(value, low), high) if step.rules.group_configs_clamped else value
