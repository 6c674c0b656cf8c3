"""Named cases on brokers with unusual settings: a case keeps to what the broker allows, or says that the broker is
configured without what it needs. A fault is not excused by a setting that does not explain it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import MigrationPolicy, Settings
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.judge.cases.broker_settings import allowed_session_ms, not_allowed
from fencepost_conformance.judge.cases.case import Case
from fencepost_conformance.judge.cases.catalogue import chosen
from fencepost_conformance.judge.cases.peer import BrokerUnderTest
from fencepost_conformance.judge.cases.play import Ending, Played, play_all
from fencepost_server.faults import Fault, Plan

from .served import play as in_loop
from .served import running

USUAL = Settings(group_initial_rebalance_delay_ms=200)
NO_FAULTS = Plan(())


def played(cases: list[Case], settings: Settings, faults: Plan = NO_FAULTS) -> list[Played]:
    """Play cases on a server with these settings."""
    found: list[Played] = []

    async def session() -> None:
        async with running(settings=settings, faults=faults) as ready:
            broker = BrokerUnderTest(Address(ready.listen.host, ready.listen.port), INTENDED)
            found.extend(await play_all(cases, broker, 30))

    in_loop(session())
    assert len(found) == len(cases) > 0
    return found


def quick(*families: str) -> list[Case]:
    """The cases of these families that wait for no session."""
    return [case for case in chosen(families) if case.waits_s <= 4]


def test_cases_use_a_session_timeout_that_the_broker_allows() -> None:
    settings = replace(USUAL, group_min_session_timeout_ms=20_000, group_max_session_timeout_ms=25_000)
    assert {each.case.name: each.why for each in played(quick("classic", "admin"), settings) if each.why} == {}


@pytest.mark.parametrize(
    ("policy", "unsupported"),
    [
        (MigrationPolicy.UPGRADE, {"mixed.downgrade": 4}),
        (MigrationPolicy.DOWNGRADE, {"mixed.upgrade": 12}),
        (MigrationPolicy.DISABLED, {"mixed.downgrade": 5, "mixed.upgrade": 13}),
    ],
)
def test_conversions_that_the_policy_does_not_allow_are_not_supported(
    policy: MigrationPolicy, unsupported: dict[str, int]
) -> None:
    found = played(quick("mixed"), replace(USUAL, group_consumer_migration_policy=policy))
    assert {each.ending for each in found} == {Ending.PASSED, Ending.NOT_SUPPORTED}, [each.why for each in found]
    lacking = [each for each in found if each.ending is Ending.NOT_SUPPORTED]
    assert all("group.consumer.migration.policy" in each.why for each in lacking)
    topics = [each.case.name.rpartition(".")[0] for each in lacking]
    assert {topic: topics.count(topic) for topic in topics} == unsupported


def test_groups_that_are_too_large_for_the_broker_are_not_supported() -> None:
    settings = replace(USUAL, group_max_size=2, group_consumer_max_size=2)
    found = played(quick("classic", "consumer", "mixed"), settings)
    assert {each.ending for each in found} == {Ending.PASSED, Ending.NOT_SUPPORTED}, [each.why for each in found]
    lacking = {each.case.name: each.why for each in found if each.ending is Ending.NOT_SUPPORTED}
    assert {"consumer.reconcile.7", "mixed.upgrade.14"} <= {*lacking}
    assert len(lacking) <= 12
    assert all("max.size=2, and this case needs a larger group" in why for why in lacking.values())


def test_upgrades_of_groups_that_are_too_large_are_not_supported() -> None:
    found = played(chosen(["mixed.upgrade.1", "mixed.upgrade.9"]), replace(USUAL, group_consumer_max_size=1))
    assert {each.ending for each in found} <= {Ending.PASSED, Ending.NOT_SUPPORTED}, [each.why for each in found]
    assert found[1].why == "the broker has group.consumer.max.size=1, and this case needs a larger group"


@pytest.mark.parametrize(
    ("api", "code", "name"),
    [
        ("join_group", "GROUP_MAX_SIZE_REACHED", "classic.join.2"),
        ("join_group", "INVALID_SESSION_TIMEOUT", "classic.join.2"),
        ("consumer_group_heartbeat", "GROUP_MAX_SIZE_REACHED", "consumer.join.1"),
        ("consumer_group_heartbeat", "GROUP_ID_NOT_FOUND", "mixed.upgrade.1"),
    ],
)
def test_a_fault_is_not_excused_by_settings_that_do_not_explain_it(api: str, code: str, name: str) -> None:
    (found,) = played(chosen([name]), USUAL, Plan((Fault(do="error", api=api, code=code),)))
    assert found.ending in (Ending.FAILED, Ending.NOT_REACHED), found


@pytest.mark.parametrize(
    ("settings", "wanted", "used"),
    [
        ({}, 6_000, 6_000),
        ({"group.min.session.timeout.ms": "20000"}, 10_000, 20_000),
        ({"group.min.session.timeout.ms": "20000"}, 30_000, 30_000),
        ({"group.max.session.timeout.ms": "20000"}, 30_000, 20_000),
        ({"group.min.session.timeout.ms": "?"}, 10_000, 10_000),
        ({"group.min.session.timeout.ms": "20000"}, 1, 1),
    ],
)
def test_session_timeouts_are_within_the_bounds(settings: dict[str, str], wanted: int, used: int) -> None:
    assert allowed_session_ms(settings, wanted) == used


def test_a_setting_that_allows_the_case_is_no_reason() -> None:
    needs = {"group.consumer.migration.policy": ("bidirectional", "upgrade")}
    assert not_allowed({}, needs, (), 2) is None
    assert not_allowed({"group.consumer.migration.policy": "BIDIRECTIONAL"}, needs, (), 2) is None
    reason = not_allowed({"group.consumer.migration.policy": "disabled"}, needs, (), 2)
    assert reason == "the broker has group.consumer.migration.policy=disabled; this case needs bidirectional or upgrade"
