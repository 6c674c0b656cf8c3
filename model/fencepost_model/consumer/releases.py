"""What Kafka releases do differently with consumer groups (the table in ``switches``)."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.protocol.consumer_records import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    TopicMetadata,
)
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic

from .derive import votes
from .group_step import GroupStep
from .heartbeat import elects_another
from .refusal import Refused
from .state import Member, Target
from .target import GroupSpec, uniform_fails


def no_target_for_new_instance(
    otherwise: Callable[[GroupStep, Member], Target], t: GroupStep, updated: Member
) -> Target:
    """Return an empty target for an instance id that is new (M-HB-07)."""
    if updated.instance is not None and t.group.held_by(updated.instance) is None:
        t.rule("M-HB-07")
        return ()
    return otherwise(t, updated)


def fail_on_absent_partition(
    otherwise: Callable[[GroupStep, GroupSpec], dict[str, Target]], t: GroupStep, group_spec: GroupSpec
) -> dict[str, Target]:
    """Fail on a partition of the last target that its topic does not have (A-UHET-06). Raises Refused."""
    if uniform_fails(group_spec):
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "A-UHET-06")
    return otherwise(t, group_spec)


def read_ties_twice(
    otherwise: Callable[[GroupStep, tuple[Member, ...]], bool], t: GroupStep, voters: tuple[Member, ...]
) -> bool:
    """Read a tie before the request from one map, and after it from another, which may name another winner
    (M-HB-15)."""
    before, after = (votes(t.variant, t.settings, each) for each in (t.group.members, voters))
    return elects_another(t, before, after) if before == after and len(after) > 1 else otherwise(t, voters)


def ignore_votes(
    otherwise: Callable[[GroupStep, tuple[Member, ...]], bool], t: GroupStep, voters: tuple[Member, ...]
) -> bool:
    """Begin no epoch, whatever the members vote for (V-121)."""
    return False


# ---- the metadata of topics in 4.0, in a record of their own instead of a hash (V-34) --------------------------------


def write_partition_metadata(
    otherwise: Callable[[GroupStep, tuple[Topic, ...], bool], None], t: GroupStep, topics: tuple[Topic, ...], new: bool
) -> None:
    """Write the metadata before the epoch if they changed (F-ORD-06, F-ORD-07) or the group is new (X-UP-10)."""
    rows = _metadata(topics)
    if new or rows != t.group.metadata:
        t.write(ConsumerGroupPartitionMetadataKey(t.group_id), ConsumerGroupPartitionMetadataValue(rows))


def has_partition_metadata(
    otherwise: Callable[[GroupStep, tuple[Topic, ...]], bool], t: GroupStep, topics: tuple[Topic, ...]
) -> bool:
    """Return whether these are the stored metadata (M-HB-04)."""
    return _metadata(topics) == t.group.metadata


def stored_partitions(otherwise: Callable[[GroupStep], dict[bytes, int]], t: GroupStep) -> dict[bytes, int]:
    """Return the topics of the last check, in this request or stored (V-136)."""
    rows = t.group.metadata
    for record in t.records:
        if isinstance(record.value, ConsumerGroupPartitionMetadataValue):
            rows = record.value.topics
    return {row.topic_id: row.num_partitions for row in rows}


def _metadata(topics: tuple[Topic, ...]) -> tuple[TopicMetadata, ...]:
    return tuple([TopicMetadata(t.topic_id, t.name, t.partitions) for t in topics])
