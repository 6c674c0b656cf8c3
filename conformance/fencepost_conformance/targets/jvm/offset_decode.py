"""Decodes the harness's observations of offsets: answers and stored offsets."""

from __future__ import annotations

from typing import Any

from fencepost.protocol.offset_messages import (
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from fencepost.protocol.offset_view import OffsetsView, OffsetView

from .error_codes import error_of
from .text_form import text_to_id

_NO_PRODUCER = -1


def committed(rows: list[Any]) -> tuple[OffsetCommitResponseTopic, ...]:
    """Return the topics of an answer to a commit or a deletion."""
    return tuple(
        [
            OffsetCommitResponseTopic(
                name=name,
                topic_id=text_to_id(topic),
                partitions=tuple([OffsetCommitResponsePartition(index, error_of(code)) for index, code in partitions]),
            )
            for name, topic, partitions in rows
        ]
    )


def fetched(rows: list[Any]) -> tuple[OffsetFetchResponseGroup, ...]:
    """Return the groups of an answer to a fetch."""
    return tuple(
        [
            OffsetFetchResponseGroup(
                group,
                topics=tuple([_topic(name, topic, partitions) for name, topic, partitions in topics]),
                error_code=error_of(error),
            )
            for group, error, topics in rows
        ]
    )


def _topic(name: str, topic: str, partitions: list[Any]) -> OffsetFetchResponseTopic:
    return OffsetFetchResponseTopic(
        name=name,
        topic_id=text_to_id(topic),
        partitions=tuple(
            [
                OffsetFetchResponsePartition(
                    index,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    metadata=metadata,
                    error_code=error_of(code),
                )
                for index, offset, epoch, metadata, code in partitions
            ]
        ),
    )


def offsets_view(offsets: list[Any]) -> OffsetsView:
    """Return all stored offsets."""
    rows, open_ = offsets
    views = [_stored(row) for row in rows]
    where = _where
    return OffsetsView(
        committed=tuple(sorted([view for view in views if view.producer_id is None], key=where)),
        pending=tuple(sorted([view for view in views if view.producer_id is not None], key=where)),
        open_transactions=tuple(sorted([(group, topic, index, producer) for group, topic, index, producer in open_])),
    )


def _where(view: OffsetView) -> tuple[str, str, int, int]:
    return view.group_id, view.topic, view.partition, view.producer_id or 0


def _stored(row: list[Any]) -> OffsetView:
    group, topic, index, offset, epoch, metadata, committed_at, expires_at, topic_id, place, producer = row
    return OffsetView(
        group,
        topic,
        index,
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=committed_at,
        expire_timestamp=expires_at,
        topic_id=text_to_id(topic_id),
        record_offset=place,
        producer_id=None if producer == _NO_PRODUCER else producer,
    )
