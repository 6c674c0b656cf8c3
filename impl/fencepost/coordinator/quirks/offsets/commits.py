"""Deviations of Kafka in committing offsets."""

from __future__ import annotations

from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import Producer
from fencepost.quirks import quirk

from ...classic import sync
from ...classic.group import ClassicGroup, GroupDraft, find_incarnation
from ...consumer.group import ConsumerMember
from ...kernel.errors import Rejected
from ...kernel.step import Step
from ...offsets import access, commit, validation
from ...offsets.replay import simple_group


@quirk("fault_refused_commit_leaves_group", of=access.begin_simple_group)
def begins_at_once(step: Step, group_id: str) -> None:
    """Kafka creates the simple group when it checks the committer. If no partition is accepted then, there is a group
    without a record, until the next run of the offset expiry (O-COMMIT-39)."""
    step.memory.appear(simple_group(group_id, step.memory.new_incarnation()))


@quirk("fault_refused_commit_leaves_group", of=sync.not_assigned)
def acts_on_what_is_gone(step: Step, group_id: str, incarnation: int) -> GroupDraft | None:
    """Members have joined a group without a record; its first record, their assignment, is not appended, and the group
    is removed. Kafka still lets it prepare a rebalance, whose timer is set by the group's name (O-COMMIT-43)."""
    group = step.memory.undone.get(incarnation)
    if isinstance(group, ClassicGroup):
        return GroupDraft(group)
    return find_incarnation(step, group_id, incarnation)


@quirk("old_no_assignment_epochs", of=validation.with_older_epoch)
def refuses_older_epochs(step: Step, member: ConsumerMember, epoch: int) -> validation.Older | None:
    """Before 4.3 an older epoch is refused, whatever is committed (O-COMMIT-36)."""
    raise Rejected(validation.stale(member))


@quirk("old_no_topic_ids", of=commit.id_to_store)
def stores_no_ids(step: Step, topic_id: bytes, expires: int, producer: Producer | None) -> bytes:
    """4.0 stores no topic ids (V-02)."""
    return ZERO_ID


@quirk("old_transactions_without_topic_ids", of=commit.id_to_store)
def stores_no_ids_in_transactions(step: Step, topic_id: bytes, expires: int, producer: Producer | None) -> bytes:
    """Before 4.4 offsets of transactions have no topic ids (V-129, O-TXN-12)."""
    return keeps_id(step, topic_id, expires, producer) if producer is None else ZERO_ID


@quirk("fault_expiring_offset_keeps_topic_id", of=commit.id_to_store)
def keeps_id(step: Step, topic_id: bytes, expires: int, producer: Producer | None) -> bytes:
    """Kafka keeps the id in memory; after a reload, which reads the record, it is gone (O-COMMIT-14, F-REC-20)."""
    return topic_id
