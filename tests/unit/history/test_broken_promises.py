"""The history states promises record by record, in its own form; on whole groups it agrees with the catalogue."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Set
from dataclasses import replace
from typing import Final

import pytest

from fencepost.protocol.consumer_messages import TopicPartitions
from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.records import Record
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_model.machines import C_STABLE, C_UNREVOKED
from fencepost_model.promises import GroupStep, GroupView, MemberView, broken_promises

from .logs import rows_of

TOPIC: Final = b"T" * 16
#: The promises about consumer groups that a log shows.
SHOWN: Final = {"INV-KIP-01", "INV-KIP-02", "INV-KIP-03", "INV-KIP-04", "INV-KIP-05", "INV-KIP-07"}


def member(
    number: int, epoch: int, assigned: set[int], revoking: Set[int] = frozenset(), state: str = C_STABLE
) -> MemberView:
    return MemberView(f"m{number}", epoch, assigned, revoking, state=state)


def group(
    *members: MemberView, epoch: int = 5, assigned: int = 5, target: dict[str, set[int]] | None = None
) -> GroupView:
    """Return a group; each member has the target that it is assigned, unless ``target`` says otherwise."""
    return GroupView(epoch, assigned, members, target or {each.member_id: {*each.assigned} for each in members})


ONE: Final = member(1, 5, {0})
TWO: Final = member(2, 5, {1})
WHOLE: Final = group(ONE, TWO)


def numbers(partitions: Collection[Hashable]) -> tuple[int, ...]:
    return tuple(each for each in partitions if isinstance(each, int))


def records(view: GroupView) -> Iterable[Record]:
    """Yield the records of a group, in the order in which a coordinator writes them."""
    for each in view.members:
        yield Record(
            ConsumerGroupMemberMetadataKey("g", each.member_id),
            ConsumerGroupMemberMetadataValue(
                instance_id=None, rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("t",),
                subscribed_topic_regex="", rebalance_timeout_ms=9, server_assignor=None,
            ),
        )  # fmt: skip
    yield Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(view.epoch, metadata_hash=1))
    for name, target in view.target.items():
        partitions = (TopicPartitions(TOPIC, numbers(target)),)
        yield Record(
            ConsumerGroupTargetAssignmentMemberKey("g", name), ConsumerGroupTargetAssignmentMemberValue(partitions)
        )
    yield Record(
        ConsumerGroupTargetAssignmentMetadataKey("g"), ConsumerGroupTargetAssignmentMetadataValue(view.assignment_epoch)
    )
    for each in view.members:
        yield Record(
            ConsumerGroupCurrentMemberAssignmentKey("g", each.member_id),
            ConsumerGroupCurrentMemberAssignmentValue(
                each.epoch,
                previous_member_epoch=each.epoch,
                state=MemberState[each.state].value,
                assigned_partitions=(AssignedPartitions(TOPIC, numbers(each.assigned)),),
                partitions_pending_revocation=(AssignedPartitions(TOPIC, numbers(each.revoking)),),
            ),
        )


def breaches(*views: GroupView) -> set[str]:
    """Return the rules that the history of a log with these groups, one after the other, reports as broken."""
    rows = rows_of([record for view in views for record in records(view)], 1_700_000_000_000, 0)
    return {event.rule for event in history_of(rows, keep_events=True).groups[0].events if event.rule}


@pytest.mark.parametrize(
    ("view", "broken"),
    [
        (WHOLE, set()),
        (group(ONE, member(2, 4, set(), {1}, C_UNREVOKED)), set()),
        (group(ONE, member(2, 5, {0}), target={"m1": {0}, "m2": {1}}), {"INV-KIP-01"}),
        (group(ONE, member(2, 4, set(), {0}, C_UNREVOKED)), {"INV-KIP-01"}),
        (group(member(1, 4, {0}, {0}, C_UNREVOKED)), {"INV-KIP-02"}),
        (group(ONE, TWO, epoch=4), {"INV-KIP-03"}),
        (group(ONE, member(2, 6, {1})), {"INV-KIP-03"}),
        (group(ONE, TWO, target={"m1": {0, 1}, "m2": {1}}), {"INV-KIP-05"}),
        (group(ONE, member(2, 4, set(), {1})), {"INV-KIP-07"}),
        (group(ONE, member(2, 4, {1}, state=C_UNREVOKED)), {"INV-KIP-07"}),
    ],
)
def test_history_and_catalogue_agree_on_a_group(view: GroupView, broken: set[str]) -> None:
    assert {promise for promise, _ in broken_promises(view)} & SHOWN == broken
    assert breaches(view) == broken


@pytest.mark.parametrize(
    ("after", "broken"),
    [
        (WHOLE, set()),
        (replace(WHOLE, epoch=6), set()),
        (group(ONE, TWO, epoch=4, assigned=4), {"INV-KIP-04"}),
        (group(member(1, 4, {0}), TWO), {"INV-KIP-04"}),
        (group(member(1, -2, {0}), TWO), set()),
    ],
)
def test_history_and_catalogue_agree_on_a_step(after: GroupView, broken: set[str]) -> None:
    assert {promise for promise, _ in broken_promises(GroupStep(WHOLE, after))} == broken
    assert breaches(WHOLE, after) & {"INV-KIP-04"} == broken
