"""A consumer group as it can be seen from outside."""

from __future__ import annotations

from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView, ResolvedRegex

from ..kernel.rules import Rules
from ..kernel.state import CoordinatorState
from .group import ConsumerGroup, ConsumerMember
from .records import holding_rows, share_rows


def view(state: CoordinatorState, group: ConsumerGroup) -> ConsumerGroupView:
    """The group in the newest state, replicated or not."""
    return ConsumerGroupView(
        group_id=group.group_id,
        state=group.state,
        group_epoch=group.epoch,
        metadata_hash=group.metadata_hash,
        assignment_epoch=group.assignment_epoch,
        assignment_timestamp=group.assignment_timestamp,
        subscription_type=group.subscription_type,
        members=tuple(_member(state, group.members[member_id]) for member_id in sorted(group.members)),
        static_members=tuple(sorted(group.static_members.items())),
        target=tuple((member_id, share_rows(group.target[member_id])) for member_id in sorted(group.target)),
        partition_epochs=tuple(
            (topic_id, partition, epochs[partition])
            for topic_id, epochs in sorted(group.partition_epochs.items())
            for partition in sorted(epochs)
        ),
        regexes=tuple(
            ResolvedRegex(regex, tuple(sorted(found.topics)), version=found.version, timestamp=found.timestamp)
            for regex, found in sorted(group.resolved.items())
        ),
        refresh_deadline=None if group.refresh is None else (group.refresh.deadline, group.refresh.epoch),
        legacy_metadata=_has_partition_metadata(state.rules, group),
    )


def _has_partition_metadata(rules: Rules, group: ConsumerGroup) -> bool:
    """Whether the log still has 4.0's record of the partitions of the group's topics (G-DATA-33). For 4.0 an empty one
    counts as none (V-34, V-72)."""
    return bool(group.partition_metadata) if rules.has_partition_metadata else group.partition_metadata is not None


def _member(state: CoordinatorState, member: ConsumerMember) -> ConsumerMemberView:
    return ConsumerMemberView(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout,
        subscribed_topic_names=tuple(sorted(member.topic_names)),
        subscribed_topic_regex=member.regex,
        server_assignor=member.assignor,
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned=holding_rows(state.rules, member.assigned),
        pending_revocation=holding_rows(state.rules, member.revoking),
        classic=member.classic,
    )
