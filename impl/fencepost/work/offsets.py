"""Commits and fetches of a worker: retriable errors are retried, final ones are raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Final

from fencepost.member.events import CommitRefused
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from fencepost.protocol.partitions import TopicPartition

from .link import Link, Unsupported
from .problems import CommitFailed
from .settings import WorkerSettings

_LANE: Final = "offsets"
_TIMEOUT_S: Final = 30.0
_BACKOFF_S: Final = 0.05
#: After these errors another coordinator is asked (K-OFF-10).
_ELSEWHERE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
#: Retriable errors: the epoch has changed and the member will learn of it (N-CMT-02), a rebalance is in progress
#: (K-OFF-11), an open transaction delays the offset (O-FETCH-08), the coordinator is loading.
_AGAIN: Final = (
    *_ELSEWHERE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.REQUEST_TIMED_OUT,
)
#: Errors that lose the share (K-OFF-12, K-OFF-13); with the last one, the group itself is gone (O-COMMIT-21).
_FENCED: Final = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
)


class Fenced(Exception):
    """The coordinator rejects the commit because of the member's identity."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(f"the coordinator rejects the commit: {error.name}")
        self.error = error


def refused(now: int, error: ErrorCode) -> CommitRefused:
    """Return the event that reports the error to the member."""
    return CommitRefused(now, error)


async def commit(
    link: Link,
    settings: WorkerSettings,
    who: Callable[[], tuple[str, int]],
    offsets: Mapping[TopicPartition, int],
    metadata: str,
) -> None:
    """Commit until the coordinator accepts or finally rejects it. ``who``: returns the current member id and generation
    or epoch; it raises if there is no member any longer. Raises ``Fenced``, ``CommitFailed``, ``TimeoutError``."""
    topics = tuple(
        OffsetCommitRequestTopic(
            name=name,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    each.partition, committed_offset=offsets[each], committed_metadata=metadata
                )
                for each in several
            ),
        )
        for name, several in groupby(sorted(offsets), key=lambda each: each.topic)
    )
    async with asyncio.timeout(_TIMEOUT_S):
        while True:
            member_id, epoch = who()
            body = OffsetCommitRequest(
                settings.group_id,
                generation_id_or_member_epoch=epoch,
                member_id=member_id,
                group_instance_id=settings.instance_id,
                topics=topics,
            )
            error = await _committed(link, body, settings.request_timeout_ms / 1_000)
            if error is ErrorCode.NONE:
                return
            if error in _FENCED and who() == (member_id, epoch):
                raise Fenced(error)
            if error not in _AGAIN and error not in _FENCED:
                raise CommitFailed(error)
            await asyncio.sleep(_BACKOFF_S)


async def _committed(link: Link, body: OffsetCommitRequest, within_s: float) -> ErrorCode:
    """Return the first error of any partition; a broken connection or a missing response counts as retriable."""
    try:
        async with asyncio.timeout(within_s):
            answer = await link.ask(body.group_id, body, _LANE)
    except Unsupported as unsupported:
        raise CommitFailed(ErrorCode.UNSUPPORTED_VERSION) from unsupported
    except (OSError, TimeoutError):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert isinstance(answer, OffsetCommitResponse)
    errors = (row.error_code for topic in answer.topics for row in topic.partitions)
    return next((error for error in errors if error is not ErrorCode.NONE), ErrorCode.NONE)


async def committed(
    link: Link, settings: WorkerSettings, partitions: frozenset[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the stable committed offsets of these partitions. Raises ``CommitFailed``, ``TimeoutError``."""
    topics = tuple(
        OffsetFetchRequestTopic(name=name, partition_indexes=tuple(each.partition for each in several))
        for name, several in groupby(sorted(partitions), key=lambda each: each.topic)
    )
    body = OffsetFetchRequest((OffsetFetchRequestGroup(settings.group_id, topics=topics),), require_stable=True)
    async with asyncio.timeout(_TIMEOUT_S):
        while True:
            try:
                async with asyncio.timeout(settings.request_timeout_ms / 1_000):
                    answer = await link.ask(settings.group_id, body, _LANE)
            except Unsupported as unsupported:
                raise CommitFailed(ErrorCode.UNSUPPORTED_VERSION) from unsupported
            except (OSError, TimeoutError):
                await asyncio.sleep(_BACKOFF_S)
                continue
            assert isinstance(answer, OffsetFetchResponse)
            (group,) = answer.groups
            rows = [
                (TopicPartition(topic.name, row.partition_index), row)
                for topic in group.topics
                for row in topic.partitions
            ]
            errors = {group.error_code, *(row.error_code for _, row in rows)} - {ErrorCode.NONE}
            if not errors:
                return {partition: row.committed_offset for partition, row in rows if row.committed_offset >= 0}
            if final := errors - {*_AGAIN}:
                raise CommitFailed(min(final))
            await asyncio.sleep(_BACKOFF_S)
