"""Requests that no test of a single rule covers: partitions that do not exist, and groups of other partitions that the
client may not see."""

from __future__ import annotations

import pytest

from fencepost.coordinator.consumer.assignors import ASSIGNORS, AssignorError, GroupSpec, MemberSpec
from fencepost.protocol.consumer_view import SubscriptionType
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Unload

from .consumer_scene import ConsumerScene
from .scene import GROUP

TOPIC = bytes(15) + b"\x01"


@pytest.mark.parametrize("number", [2, -1])
def test_a_partition_that_does_not_exist_is_an_error_of_the_assignor(number: int) -> None:
    """An upgrade takes over the leader's assignment by name, and the topic may have been recreated with fewer
    partitions."""
    holder = MemberSpec(None, None, frozenset({TOPIC}), {TOPIC: frozenset({0, number})})
    group = GroupSpec({"m": holder}, SubscriptionType.HETEROGENEOUS, {TOPIC: 2})
    with pytest.raises(AssignorError):
        ASSIGNORS["uniform"](group)


def test_describe_rights_are_checked_before_the_coordinator_is() -> None:
    """M-DESC-01, C-ADM-06."""
    scene = ConsumerScene()
    scene.feed(Unload(scene.now, leader_epoch=None))
    rows = scene.described(1, "open", GROUP, "", denied=frozenset({GROUP}))
    assert [(row.group_id, row.error_code) for row in rows] == [
        (GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ("open", ErrorCode.NOT_COORDINATOR),
        ("", ErrorCode.INVALID_GROUP_ID),
    ]
    without = ConsumerScene(consumer_protocol_enabled=False)
    assert {row.error_code for row in without.described(1, "open", GROUP, denied=frozenset({GROUP}))} == {
        ErrorCode.UNSUPPORTED_VERSION
    }
