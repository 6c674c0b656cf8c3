"""Errors of a commit whose member has not changed since (K-OFF-12, K-OFF-13, N-CMT-03)."""

from __future__ import annotations

import pytest

from fencepost.member import ClassicMemberState
from fencepost.member.consumer.state import ConsumerState
from fencepost.member.events import CommitRefused
from fencepost.protocol.errors import ErrorCode

from .consumer_driver import ConsumerDriver
from .driver import T0, Driver


def stable() -> Driver:
    driver = Driver()
    driver.settle(T0)
    assert driver.member.state is ClassicMemberState.STABLE
    return driver


def test_a_rebalance_is_joined_by_the_next_poll() -> None:
    driver = stable()
    before = driver.member.generation
    driver.do(CommitRefused(driver.now, ErrorCode.REBALANCE_IN_PROGRESS))
    assert driver.member.generation == before
    assert driver.member.rejoin_needed
    assert driver.member.rejoin_reason == "offset commit failed since group is already rebalancing"


@pytest.mark.parametrize(
    ("error", "kept"), [(ErrorCode.UNKNOWN_MEMBER_ID, False), (ErrorCode.ILLEGAL_GENERATION, True)]
)
def test_an_unknown_member_is_out_of_the_group(error: ErrorCode, kept: bool) -> None:
    driver = stable()
    member_id = driver.member.generation.member_id
    driver.do(CommitRefused(driver.now, error))
    assert driver.member.state is ClassicMemberState.UNJOINED
    assert driver.member.generation.member_id == (member_id if kept else "")
    assert driver.member.rejoin_reason == f"encountered {error.name} from OFFSET_COMMIT response"


def test_only_heartbeats_change_a_member_of_a_consumer_group() -> None:
    driver = ConsumerDriver()
    driver.do(CommitRefused(driver.now, ErrorCode.UNKNOWN_MEMBER_ID))
    after = driver.member
    driver.do(CommitRefused(driver.now, ErrorCode.UNKNOWN_MEMBER_ID))
    assert driver.member == after
    assert (after.epoch, after.state) == (0, ConsumerState.UNSUBSCRIBED)
