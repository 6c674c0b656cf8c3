"""Deviations of Kafka in classic groups."""

from __future__ import annotations

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.quirks import Next, quirk

from ..classic import membership, static
from ..classic.group import GroupDraft
from ..kernel import operations
from ..kernel.errors import InternalError
from ..kernel.state import Operation
from ..kernel.step import Step
from .readable import read_topics

# Capacity and the join phase


@quirk("fault_bad_subscription_is_thrown", "fault_duplicate_protocol_accepted", of=membership.adopt)
def reads_subscriptions(call_next: Next[None], step: Step, group: GroupDraft) -> None:
    """Kafka reads the topics that the members of a new generation subscribe to. Impossible lengths raise an exception
    that is not caught: the generation is used up, and its members are never answered (C-ST-27, G-DATA-10). The same
    happens if a member does not have the protocol, which others list often enough to make up for it (C-JOIN-72)."""
    before = group.subscriptions
    call_next(step, group)
    name = group.protocol_name
    if group.protocol_type == PROTOCOL_TYPE:
        offered = {member.member_id: member.metadata(name) for member in group.members.values()}
        try:
            read_topics(step.choices, group.group_id, offered, lengths_throw=step.rules.bad_lengths_are_thrown)
        except InternalError:
            group.subscriptions = before  # keep nothing of the new subscriptions
            raise


# SyncGroup, and requests that wait for one


# Groups and replacements that a failed append undoes


@quirk("fault_timeout_undoes_memory", of=static.end_with_group)
def puts_old_id_back(
    _: Next[None], step: Step, done: static.MemberReplaced, number: int, operation: Operation, error: ErrorCode
) -> None:
    """Kafka restores the old id before the partition is lost (C-STATIC-06). If the member is in a later round by then,
    its SyncGroup is answered FENCED_INSTANCE_ID, which stops a client that no other has replaced (F-UNLOAD-01)."""
    operations.fail(step, number, operation, error)


@quirk("fault_second_replacement_mixes_undo", of=static.restore_protocols)
def counts_off_another(call_next: Next[None], step: Step, group: GroupDraft, done: static.MemberReplaced) -> None:
    """The protocols of a member that is gone, or was restored before, are subtracted once more and the old ones added:
    from then on the counts are wrong (C-STATIC-18)."""
    member = group.members.get(done.new_id)
    if member is None or member.restored:
        group.count(done.new_protocols, -1)
        group.count(done.old_protocols, 1)
    call_next(step, group, done)
