"""Errors of a commit whose member has not changed since (K-OFF-12, K-OFF-13, N-CMT-03)."""

from __future__ import annotations

import pytest

from fencepost.member import MemberState
from fencepost.member.consumer.state import ConsumerState
from fencepost.member.events import CommitRefused
from fencepost.protocol.errors import ErrorCode

from .consumer_desk import ConsumerDesk
from .desk import T0, Desk


def stable() -> Desk:
    desk = Desk()
    desk.settle(T0)
    assert desk.member.state is MemberState.STABLE
    return desk


def test_a_rebalance_is_joined_by_the_next_poll() -> None:
    desk = stable()
    before = desk.member.generation
    desk.do(CommitRefused(desk.now, ErrorCode.REBALANCE_IN_PROGRESS))
    assert desk.member.generation == before
    assert desk.member.rejoin_needed
    assert desk.member.rejoin_reason == "offset commit failed since group is already rebalancing"


@pytest.mark.parametrize(
    ("error", "kept"), [(ErrorCode.UNKNOWN_MEMBER_ID, False), (ErrorCode.ILLEGAL_GENERATION, True)]
)
def test_an_unknown_member_is_out_of_the_group(error: ErrorCode, kept: bool) -> None:
    desk = stable()
    member_id = desk.member.generation.member_id
    desk.do(CommitRefused(desk.now, error))
    assert desk.member.state is MemberState.UNJOINED
    assert desk.member.generation.member_id == (member_id if kept else "")
    assert desk.member.rejoin_reason == f"encountered {error.name} from OFFSET_COMMIT response"


def test_only_heartbeats_change_a_member_of_a_consumer_group() -> None:
    desk = ConsumerDesk()
    desk.do(CommitRefused(desk.now, ErrorCode.UNKNOWN_MEMBER_ID))
    after = desk.member
    desk.do(CommitRefused(desk.now, ErrorCode.UNKNOWN_MEMBER_ID))
    assert desk.member == after
    assert (after.epoch, after.state) == (0, ConsumerState.UNSUBSCRIBED)
