"""OffsetDelete (6.5), and offsets that are deleted with their group or their topic (O-DEL-09, O-EXP-23)."""

from __future__ import annotations

from collections.abc import Iterator

from fencepost.protocol.embedded import PROTOCOL_TYPE
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request, Topic
from fencepost.protocol.logged import Partition
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState
from fencepost.quirks import varies

from ..classic.group import ClassicGroup
from ..groups import topics_of
from ..kernel import operations
from ..kernel.state import not_serving
from ..kernel.step import Step
from ..kernel.stored_offsets import ByPartition, GroupOffsets
from ..kernel.topics import TopicImage
from .offset_appliers import offset_tombstones, write_offset_records
from .validation import Results, merged


def delete(step: Step, request: Request, body: OffsetDeleteRequest) -> None:
    """Delete offsets of topics that the group does not subscribe to (O-DEL-05, O-DEL-06)."""
    if body.group_id in request.denied:
        step.reply(request.id, OffsetDeleteResponse(ErrorCode.GROUP_AUTHORIZATION_FAILED))  # O-DEL-01
        return
    refused, asked = _admit(request, step.topics, body)
    error = _refusal(step, body.group_id)
    if error is not None:
        step.reply(request.id, OffsetDeleteResponse(error))
        return
    subscribed = topics_of(step.memory.groups[body.group_id])
    offsets = step.offsets.now.of(body.group_id)
    rows: list[tuple[str, bytes, Results]] = []
    gone: list[Partition] = []
    for topic in asked:
        kept = topic.name in subscribed
        result = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if kept else ErrorCode.NONE
        rows.append((topic.name, ZERO_ID, [(index, result) for index in topic.partition_indexes]))
        if not kept:
            partitions = ((topic.name, index) for index in topic.partition_indexes)
            gone += (each for each in partitions if each in offsets.committed or each in offsets.unstable)
    write_offset_records(step, offset_tombstones(body.group_id, gone))
    answer = tuple(_row(name, results) for name, _, results in (merged([*refused, *rows], False) if refused else rows))
    operations.done(step, request, reply=OffsetDeleteResponse(ErrorCode.NONE, answer))


def _refusal(step: Step, group_id: str) -> ErrorCode | None:
    """Why the whole request is refused (O-DEL-02…04)."""
    if not step.state.running:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    error = not_serving(step.state)
    if error is not None:
        return error
    group = step.memory.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if isinstance(group, ClassicGroup) and group.state is not GroupState.EMPTY and group.protocol_type != PROTOCOL_TYPE:
        return ErrorCode.NON_EMPTY_GROUP
    return None


def _admit(
    request: Request, image: TopicImage, body: OffsetDeleteRequest
) -> tuple[list[tuple[str, bytes, Results]], list[OffsetDeleteRequestTopic]]:
    """The rows that are refused before the coordinator is involved, and the rest (O-DEL-01)."""
    refused: list[tuple[str, bytes, Results]] = []
    asked = []
    for topic in body.topics:
        denied = topic.name in request.denied_topics
        known = None if denied else image.by_name.get(topic.name)
        there = [] if known is None else [index for index in topic.partition_indexes if 0 <= index < known.partitions]
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED if denied else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        missing = [(index, error) for index in topic.partition_indexes if index not in there]
        if missing or known is None:
            refused.append((topic.name, ZERO_ID, missing))
        if there:
            asked.append(OffsetDeleteRequestTopic(name=topic.name, partition_indexes=tuple(there)))
    return merged(refused, False), asked


def _row(name: str, results: Results) -> OffsetCommitResponseTopic:
    rows = tuple([OffsetCommitResponsePartition(index, error) for index, error in results])
    return OffsetCommitResponseTopic(name=name, partitions=rows)


def delete_all(step: Step, group_id: str) -> None:
    """Delete all offsets of a group, also those that are pending in transactions (O-DEL-09, F-ORD-13)."""
    write_offset_records(step, offset_tombstones(group_id, step.offsets.now.of(group_id).partitions()))


def topics_deleted(step: Step, before: TopicImage, after: TopicImage) -> None:
    """Delete the offsets of topics that no longer exist, in a separate write. An offset gets one tombstone for each
    place where it is stored (O-EXP-23)."""
    deleted = [topic for topic_id, topic in sorted(before.by_id.items()) if topic_id not in after.by_id]
    if deleted:
        records: list[Record] = []
        for name, offsets in sorted(step.offsets.now.groups.items()):
            records += offset_tombstones(name, of_deleted(step, offsets, deleted))
        write_offset_records(step, records)
        operations.timer_done(step)  # also if nothing was written: it waits for earlier writes (F-RT-16)


@varies
def of_deleted(step: Step, offsets: GroupOffsets, deleted: list[Topic]) -> list[Partition]:
    """The partitions of a group whose offset is of one of these topics, by name, and by id if one is stored (O-EXP-23).
    A partition with a committed and a pending offset is there twice."""
    ids = {(topic.name, topic.topic_id) for topic in deleted} | {(topic.name, ZERO_ID) for topic in deleted}
    return sorted(
        partition
        for stored in stores(offsets)
        for partition, each in stored.items()
        if (partition[0], each.value.topic_id) in ids
    )


def stores(offsets: GroupOffsets) -> Iterator[ByPartition]:
    """The committed offsets, and the pending ones of each producer."""
    yield offsets.committed
    yield from offsets.pending.values()
