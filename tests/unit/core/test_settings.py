"""Settings that no coordinator can run with fail where they are made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencepost.protocol.settings import BadSettings, MigrationPolicy, Settings
from fencepost_conformance.traces import lines as ln
from fencepost_conformance.traces.convert import settings_of

CONSUMER = "group_consumer_"
BAD: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"group_min_session_timeout_ms": 9, "group_max_session_timeout_ms": 8},
        "must be <= group_max_session_timeout_ms (got 9 and 8)",
    ),
    ({"group_min_session_timeout_ms": -1}, "must be >= 0 (got -1)"),
    ({"group_initial_rebalance_delay_ms": -1}, "must be >= 0 (got -1)"),
    ({"group_max_size": 0}, "must be >= 1"),
    ({"group_consumer_max_size": 0}, "must be >= 1"),
    ({"offsets_commit_timeout_ms": 0}, "must be >= 1"),
    ({"group_consumer_session_timeout_ms": 44_999}, "group_consumer_min_session_timeout_ms must be <="),
    ({"group_consumer_session_timeout_ms": 60_001}, "(got 60001 and 60000)"),
    ({"group_consumer_min_session_timeout_ms": 60_001}, "<= group_consumer_max_session_timeout_ms"),
    ({"group_consumer_heartbeat_interval_ms": 4_999}, "(got 5000 and 4999)"),
    ({"group_consumer_heartbeat_interval_ms": 15_001}, "(got 15001 and 15000)"),
    (
        {f"{CONSUMER}heartbeat_interval_ms": 45_000, f"{CONSUMER}max_heartbeat_interval_ms": 50_000},
        "must be less than group_consumer_session_timeout_ms (got 45000 and 45000)",
    ),
    ({"group_consumer_assignment_interval_ms": 15_001}, "(got 15001 and 15000)"),
    ({"group_consumer_min_assignment_interval_ms": 1_001}, "(got 1001 and 1000)"),
    ({"group_consumer_assignors": ()}, "must name at least one of uniform, range (got none)"),
    ({"group_consumer_assignors": ["range"]}, "must be tuple, not list"),
    ({"group_consumer_assignors": (b"range",)}, "[0] must be str, not bytes"),
    ({"group_max_size": "10"}, "Settings.group_max_size must be int, not str ('10')"),
    ({"group_max_size": True}, "must be int, not bool"),
    ({"group_max_size": 2**31}, "must be an integer of 32 bits"),
    ({"consumer_protocol_enabled": 1}, "must be bool, not int"),
    ({"group_consumer_migration_policy": "upgrade"}, "must be MigrationPolicy, not str"),
)


@pytest.mark.parametrize(("fields", "words"), BAD, ids=[words for _, words in BAD])
def test_a_contradiction_is_reported(fields: dict[str, Any], words: str) -> None:
    for make in (lambda: Settings(**fields), lambda: replace(Settings(), **fields)):
        with pytest.raises(BadSettings) as refused:
            make()
        assert words in str(refused.value)


def test_unusual_settings_without_contradiction_are_accepted() -> None:
    Settings(group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=1, group_max_session_timeout_ms=1)
    Settings(group_consumer_assignors=("range", "range"), group_consumer_migration_policy=MigrationPolicy.DISABLED)
    Settings(group_consumer_assignment_interval_ms=0, group_consumer_max_assignment_interval_ms=0)


def test_a_trace_with_contradictory_settings_is_rejected_with_the_reason() -> None:
    header = ln.HeaderLine.model_construct(settings={"group_consumer_assignors": ["sticky"]}, assumed=())
    with pytest.raises(
        ValueError, match=r"^group_consumer_assignors must contain only uniform, range \(got 'sticky'\)"
    ):
        settings_of(header)
