"""OffsetFetch (6.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Request
from fencepost.protocol.logged import StoredOffset
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)

from ..kernel import operations
from ..kernel.errors import Rejected, operation_error
from ..kernel.operations import FailedByTimeout
from ..kernel.replies import fetch_error_response
from ..kernel.state import not_serving
from ..kernel.step import Step
from ..kernel.stored_offsets import NONE, GroupOffsets
from . import validation
from .validation import resolved

#: From this version on topics are named by their ids (G-WIRE-06).
TOPIC_IDS_SINCE = 10
_LATE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT)


class _Asked(NamedTuple):
    """The request for one group: topics by name, with their ids if known, or None for all. ``refused``: the rows that
    are decided before the coordinator is involved."""

    topics: tuple[OffsetFetchRequestTopic, ...] | None
    refused: tuple[OffsetFetchResponseTopic, ...]


class _Read(NamedTuple):
    """The answer for one group. ``waits``: it is sent when earlier writes are replicated (O-FETCH-08)."""

    asked: OffsetFetchRequestGroup
    answer: OffsetFetchResponseGroup
    waits: bool = False


@dataclass(frozen=True, slots=True)
class StableRead(FailedByTimeout):
    """Offsets were read that are not replicated yet (O-FETCH-08)."""

    reads: tuple[_Read, ...]

    def failed(self, step: Step, request: Request | None, error: ErrorCode) -> None:
        """The offsets that were read are not in the log, or the result is unknown (O-FETCH-09)."""
        assert request is not None
        answered = ErrorCode.NOT_COORDINATOR if error in _LATE else operation_error(error)  # O-FETCH-09
        groups = tuple(
            fetch_error_response(read.asked, request.version, answered) if read.waits else read.answer
            for read in self.reads
        )
        step.reply(request.id, OffsetFetchResponse(groups))


def fetch(step: Step, request: Request, body: OffsetFetchRequest) -> None:
    """Return the committed offsets: those of the last replicated state at once (O-FETCH-07), or those of the newest
    state after all earlier writes (O-FETCH-08). It does not count as a sign of life of a member (O-FETCH-12)."""
    read = tuple(_group(step, request, each, body.require_stable) for each in body.groups)
    reply = OffsetFetchResponse(tuple(each.answer for each in read))
    if any(each.waits for each in read):
        operations.done(step, request, reply=reply, callback=StableRead(read))
    else:
        step.reply(request.id, reply)


def _group(step: Step, request: Request, asked: OffsetFetchRequestGroup, stable: bool) -> _Read:
    version, state = request.version, step.state
    if asked.group_id in request.denied:
        return _Read(asked, fetch_error_response(asked, version, ErrorCode.GROUP_AUTHORIZATION_FAILED))  # O-FETCH-01
    wanted = _admitted(step, request, asked)
    if not state.running:  # O-FETCH-02
        return _Read(asked, _not_running(asked, wanted, version))
    error = not_serving(state)
    if error is not None:
        return _Read(asked, fetch_error_response(asked, version, error))  # O-FETCH-10
    try:
        offsets = _readable(step, asked, stable)
    except Rejected as refused:
        return _Read(asked, fetch_error_response(asked, version, refused.error))
    by_id = version >= TOPIC_IDS_SINCE
    if wanted.topics is None:
        topics = _all(step, request, offsets, stable=stable, by_id=by_id)
    else:
        topics = tuple(_rows(offsets, topic, stable=stable, by_id=by_id) for topic in wanted.topics) + wanted.refused
    return _Read(asked, OffsetFetchResponseGroup(asked.group_id, topics=topics), stable)


def _not_running(asked: OffsetFetchRequestGroup, wanted: _Asked, version: int) -> OffsetFetchResponseGroup:
    """The answer of a coordinator that is not running, where every other error is thrown. In the version that has
    errors only at partitions it looks like a normal answer, so the rows decided before are added (O-FETCH-14)."""
    down = ErrorCode.COORDINATOR_NOT_AVAILABLE
    answer = fetch_error_response(OffsetFetchRequestGroup(asked.group_id, topics=wanted.topics), version, down)
    if answer.error_code is not ErrorCode.NONE:
        return answer
    return OffsetFetchResponseGroup(asked.group_id, topics=answer.topics + wanted.refused)


def _admitted(step: Step, request: Request, asked: OffsetFetchRequestGroup) -> _Asked:
    """O-FETCH-13, O-FETCH-14."""
    if asked.topics is None:
        return _Asked(None, ())
    by_id = request.version >= TOPIC_IDS_SINCE
    topics, refused = [], []
    for topic in asked.topics:
        name = topic.name
        if by_id:
            known = resolved(step.topics, "", topic.topic_id, by_id=True)
            if known is None:
                refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID, by_id=True))
                continue
            name = known.name
        if name in request.denied_topics:
            refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED, by_id=by_id))
            continue
        topic_id = topic.topic_id if by_id else ZERO_ID
        topics.append(OffsetFetchRequestTopic(name=name, topic_id=topic_id, partition_indexes=topic.partition_indexes))
    return _Asked(tuple(topics), tuple(refused))


def _refused(topic: OffsetFetchRequestTopic, error: ErrorCode, *, by_id: bool) -> OffsetFetchResponseTopic:
    rows = [OffsetFetchResponsePartition(index, error_code=error) for index in topic.partition_indexes]
    return _topic(topic.name, topic.topic_id, rows, by_id=by_id)


def _readable(step: Step, asked: OffsetFetchRequestGroup, stable: bool) -> GroupOffsets:
    """The offsets of a group that may be read. If the group does not exist, no offsets are committed, but pending
    offsets under its name still count (O-FETCH-03). Raises ``Rejected``."""
    name = asked.group_id
    group = step.memory.groups.get(name) if stable else operations.committed_group(step, name)
    if group is None:
        return NONE._replace(unstable=step.offsets.now.of(name).unstable) if stable else NONE
    validation.may_read(step, group, asked.member_id, asked.member_epoch)
    return (step.offsets.now if stable else step.offsets.committed).of(name)


def _rows(
    offsets: GroupOffsets, topic: OffsetFetchRequestTopic, *, stable: bool, by_id: bool
) -> OffsetFetchResponseTopic:
    rows = []
    for index in topic.partition_indexes:
        partition = topic.name, index
        if stable and partition in offsets.unstable:
            rows.append(OffsetFetchResponsePartition(index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            rows.append(_row(index, offsets.committed.get(partition), topic.topic_id))
    return _topic(topic.name, topic.topic_id, rows, by_id=by_id)


def _all(
    step: Step, request: Request, offsets: GroupOffsets, *, stable: bool, by_id: bool
) -> tuple[OffsetFetchResponseTopic, ...]:
    """All committed offsets, sorted, without topics that the caller may not describe (O-FETCH-01, O-FETCH-08) or that
    have no id to name them by (O-FETCH-13)."""
    found: dict[str, list[OffsetFetchResponsePartition]] = {}
    for name, index in sorted(offsets.committed):
        if name in request.denied_topics or (by_id and name not in step.topics.by_name):
            continue
        if stable and (name, index) in offsets.unstable:
            row = OffsetFetchResponsePartition(index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        else:
            row = _row(index, offsets.committed[name, index], ZERO_ID)
        found.setdefault(name, []).append(row)
    known = step.topics.by_name
    return tuple(
        _topic(name, known[name].topic_id if by_id else ZERO_ID, rows, by_id=by_id) for name, rows in found.items()
    )


def _row(index: int, stored: StoredOffset | None, topic_id: bytes) -> OffsetFetchResponsePartition:
    """An empty row if nothing is committed, or for a topic of another id; 4.0 stores no ids, and returns the offset
    (O-FETCH-06, V-04)."""
    if stored is None or _of_another(stored.value.topic_id, topic_id):
        return OffsetFetchResponsePartition(index)
    value = stored.value
    return OffsetFetchResponsePartition(
        index, committed_offset=value.offset, committed_leader_epoch=value.leader_epoch, metadata=value.metadata
    )


def _of_another(stored: bytes, asked: bytes) -> bool:
    """Whether the offset belongs to an earlier topic of this name."""
    return ZERO_ID not in (stored, asked) and stored != asked


def _topic(
    name: str, topic_id: bytes, rows: Iterable[OffsetFetchResponsePartition], *, by_id: bool
) -> OffsetFetchResponseTopic:
    if by_id:
        return OffsetFetchResponseTopic(topic_id=topic_id, partitions=tuple(rows))
    return OffsetFetchResponseTopic(name=name, partitions=tuple(rows))
