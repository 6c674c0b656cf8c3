"""Promises to who commits and fetches offsets, each broken by a fault of Kafka's."""

from __future__ import annotations

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Load, Unload
from fencepost.protocol.messages import ListGroupsRequest, ListGroupsResponse
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey
from fencepost.protocol.offset_view import OffsetsView

from .judge import reached
from .story import Step, Story


def a_commit_of_nothing_leaves_nothing(story: Story) -> str | None:
    """O-COMMIT-39, O-COMMIT-21: who comes with a generation to a group of which nothing is in the log is told that
    there is none."""
    refused: set[str] = set()
    judged = False
    for place, body, answer in story.asked(OffsetCommitRequest):
        if not isinstance(answer, OffsetCommitResponse):
            continue
        errors = {row.error_code for topic in answer.topics for row in topic.partitions}
        if body.group_id in refused and body.generation_id_or_member_epoch >= 0:
            judged = True
            if ErrorCode.UNKNOWN_MEMBER_ID in errors and not _own(story.before(place), body.group_id):
                return (
                    f"nothing of {body.group_id} is in the log, and it is answered as a group that is (event {place})"
                )
        if errors == {ErrorCode.OFFSET_METADATA_TOO_LARGE}:
            refused.add(body.group_id)
    reached(judged, "nobody comes with a generation after a commit of which no partition was accepted")
    return None


def _own(step: Step, group: str) -> bool:
    """Whether the log has anything of the group."""
    return any(not isinstance(record.key, ControlKey) and record.key.group == group for record in step.log)


def no_fetch_is_a_fault(story: Story) -> str | None:
    """O-FETCH-05: no fetch of offsets is answered UNKNOWN_SERVER_ERROR. Judged where one names an epoch and nobody."""
    judged = False
    for place, body, answer in story.asked(OffsetFetchRequest):
        if not isinstance(answer, OffsetFetchResponse):
            continue
        judged |= any(group.member_id is None and group.member_epoch >= 0 for group in body.groups)
        if any(group.error_code is ErrorCode.UNKNOWN_SERVER_ERROR for group in answer.groups):
            return f"a fetch of offsets is answered UNKNOWN_SERVER_ERROR (event {place})"
    reached(judged, "no fetch with an epoch and without a member id is answered")
    return None


def offsets_are_loaded_as_they_were(story: Story) -> str | None:
    """INV-REPLAY-01, F-REC-20: what is loaded of the whole log is what was in memory when the partition was lost."""
    held: OffsetsView | None = None
    lost: OffsetsView | None = None
    judged = False
    for place, step in enumerate(story.steps):
        if isinstance(step.event, Unload) and step.quiet:
            lost, held = held, None
        if step.seen.offsets is not None and not isinstance(step.event, Unload):
            held = step.seen.offsets
        if isinstance(step.event, Load) and lost is not None and lost.committed:
            judged = True
            if held is None or held.committed != lost.committed:
                return f"offsets are loaded otherwise than they were in memory (event {place})"
    reached(judged, "no partition with offsets is lost and loaded")
    return None


def a_load_makes_no_group_of_nothing(story: Story) -> str | None:
    """F-REPLAY-04: a group that has neither a record of its own nor an offset is not there after a load."""
    held: OffsetsView | None = None
    loaded = False
    judged = False
    for place, step in enumerate(story.steps):
        if isinstance(step.event, Unload):
            held = None
        elif step.seen.offsets is not None:
            held = step.seen.offsets
        loaded |= isinstance(step.event, Load) and any(isinstance(each.key, ControlKey) for each in step.log)
        if not loaded or not isinstance(step.body, ListGroupsRequest):
            continue
        rows = () if held is None else (*held.committed, *held.pending)
        there = {row.group_id for row in rows}
        there |= {r.key.group for r in step.log if not isinstance(r.key, OffsetCommitKey | ControlKey)}
        for reply in step.seen.replies:
            if isinstance(reply.body, ListGroupsResponse):
                judged = True
                for row in reply.body.groups:
                    if row.group_id not in there:
                        return f"{row.group_id} is listed after a load, and nothing is left of it (event {place})"
    reached(judged, "no ListGroups is answered after a log with the end of a transaction was loaded")
    return None
