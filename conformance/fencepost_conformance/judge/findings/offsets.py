"""Rules of commits and fetches of offsets, each broken by a Kafka bug."""

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
from .played_trace import PlayedTrace, Step


def rejected_commit_creates_no_group(played: PlayedTrace) -> str | None:
    """O-COMMIT-39, O-COMMIT-21: a request with a generation to a group that is not in the log is answered that the
    group does not exist."""
    refused: set[str] = set()
    judged = False
    for place, body, answer in played.asked(OffsetCommitRequest):
        if not isinstance(answer, OffsetCommitResponse):
            continue
        errors = {row.error_code for topic in answer.topics for row in topic.partitions}
        if body.group_id in refused and body.generation_id_or_member_epoch >= 0:
            judged = True
            if ErrorCode.UNKNOWN_MEMBER_ID in errors and not _own(played.before(place), body.group_id):
                return f"{body.group_id} is not in the log, but is answered as an existing group (event {place})"
        if errors == {ErrorCode.OFFSET_METADATA_TOO_LARGE}:
            refused.add(body.group_id)
    reached(judged, "no request names a generation after a commit whose partitions were all rejected")
    return None


def _own(step: Step, group: str) -> bool:
    """Whether the log has any record of the group."""
    return any(not isinstance(record.key, ControlKey) and record.key.group == group for record in step.log)


def no_fetch_is_answered_unknown_server_error(played: PlayedTrace) -> str | None:
    """O-FETCH-05: an offset fetch with an epoch but without a member id is not answered UNKNOWN_SERVER_ERROR."""
    judged = False
    for place, body, answer in played.asked(OffsetFetchRequest):
        if not isinstance(answer, OffsetFetchResponse):
            continue
        judged |= any(group.member_id is None and group.member_epoch >= 0 for group in body.groups)
        if any(group.error_code is ErrorCode.UNKNOWN_SERVER_ERROR for group in answer.groups):
            return f"a fetch of offsets is answered UNKNOWN_SERVER_ERROR (event {place})"
    reached(judged, "no fetch with an epoch and without a member id is answered")
    return None


def load_restores_offsets(played: PlayedTrace) -> str | None:
    """INV-REPLAY-01, F-REC-20: a load of the whole log restores the offsets that were in memory."""
    held: OffsetsView | None = None
    lost: OffsetsView | None = None
    judged = False
    for place, step in enumerate(played.steps):
        if isinstance(step.event, Unload) and step.quiet:
            lost, held = held, None
        if step.seen.offsets is not None and not isinstance(step.event, Unload):
            held = step.seen.offsets
        if isinstance(step.event, Load) and lost is not None and lost.committed:
            judged = True
            if held is None or held.committed != lost.committed:
                return f"the loaded offsets differ from those in memory (event {place})"
    reached(judged, "no partition with offsets is lost and loaded")
    return None


def load_creates_no_group_without_records(played: PlayedTrace) -> str | None:
    """F-REPLAY-04: after a load, a group without a record or an offset does not exist."""
    held: OffsetsView | None = None
    loaded = False
    judged = False
    for place, step in enumerate(played.steps):
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
                        return f"{row.group_id} is listed after a load, but nothing is left of it (event {place})"
    reached(judged, "no ListGroups is answered after a log with the end of a transaction was loaded")
    return None
