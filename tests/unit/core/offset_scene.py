"""A scene for offsets: short commits and fetches, and plain views of the stored offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fencepost import coordinator
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as o
from fencepost.protocol import offset_records as r
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import TimerFired, TimerKey, TimerKind
from fencepost.protocol.offset_view import OffsetView
from fencepost.protocol.records import Record

from .mixed_scene import MixedScene
from .scene import GROUP

#: (topic, partition): offset
Positions = Mapping[tuple[str, int], int]
Errors = dict[tuple[str | bytes, int], ErrorCode]
PRODUCER = 7
NONE = ErrorCode.NONE


def asked(positions: Positions, metadata: str | None = None, **ids: bytes) -> tuple[o.OffsetCommitRequestTopic, ...]:
    """Return the topics of a commit, by name, or by the id that is given for the name."""
    topics: dict[str, list[o.OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in positions.items():
        row = o.OffsetCommitRequestPartition(partition, committed_offset=offset, committed_metadata=metadata)
        topics.setdefault(topic, []).append(row)
    return tuple(
        o.OffsetCommitRequestTopic(topic_id=ids[name], partitions=tuple(rows))
        if name in ids
        else o.OffsetCommitRequestTopic(name=name, partitions=tuple(rows))
        for name, rows in topics.items()
    )


def errors(topics: Iterable[o.OffsetCommitResponseTopic]) -> Errors:
    """Return the error of each partition; topics by name or id."""
    return {
        (topic.name or topic.topic_id, row.partition_index): row.error_code
        for topic in topics
        for row in topic.partitions
    }


class OffsetScene(MixedScene):
    def commit(
        self,
        positions: Positions,
        epoch: int = -1,
        member: str = "",
        *,
        group: str = GROUP,
        instance: str | None = None,
        version: int = 9,
        metadata: str | None = None,
        retention: int = -1,
        ids: Mapping[str, bytes] | None = None,
        **more: object,
    ) -> Errors | None:
        """Commit offsets; return the error of each partition, or None if the answer waits for the log."""
        body = o.OffsetCommitRequest(
            group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=instance,
            retention_time_ms=retention,
            topics=asked(positions, metadata, **(ids or {})),
        )
        return self.errors_of(self.ask(body, version, **more))  # type: ignore[arg-type]

    def transact(
        self,
        positions: Positions,
        epoch: int = -1,
        member: str = "",
        *,
        producer: int = PRODUCER,
        group: str = GROUP,
        instance: str | None = None,
        version: int = 5,
        metadata: str | None = None,
        ids: Mapping[str, bytes] | None = None,
        **more: object,
    ) -> Errors | None:
        """Commit offsets within a transaction; return as ``commit``."""
        body = o.TxnOffsetCommitRequest(
            group,
            transactional_id="tx",
            producer_id=producer,
            producer_epoch=0,
            generation_id=epoch,
            member_id=member,
            group_instance_id=instance,
            topics=asked(positions, metadata, **(ids or {})),
        )
        return self.errors_of(self.ask(body, version, **more))  # type: ignore[arg-type]

    def errors_of(self, request_id: int) -> Errors | None:
        """Return the errors in the answer of a commit, or None if there is no answer yet."""
        answer = self.answers.get(request_id)
        if answer is None:
            return None
        assert isinstance(answer, o.OffsetCommitResponse | o.TxnOffsetCommitResponse)
        return errors(answer.topics)

    def end(self, *, committed: bool = True, producer: int = PRODUCER) -> ErrorCode | None:
        """End the transaction of a producer."""
        body = o.WriteTxnMarkerRequest(producer_id=producer, producer_epoch=0, coordinator_epoch=0, committed=committed)
        answer = self.answers.get(self.ask(body, 2))
        assert answer is None or isinstance(answer, o.WriteTxnMarkerResponse)
        return None if answer is None else answer.error_code

    def asks(
        self,
        wanted: Mapping[str, Iterable[int]] | None = None,
        *,
        group: str = GROUP,
        member: str | None = None,
        epoch: int = -1,
        stable: bool = False,
        version: int = 9,
        ids: Mapping[str, bytes] | None = None,
        **more: object,
    ) -> o.OffsetFetchResponseGroup | None:
        """Fetch offsets of one group; return the answer, or None if it waits for the log."""
        known = ids or {}
        topics = None
        if wanted is not None:
            topics = tuple(
                o.OffsetFetchRequestTopic(
                    name="" if name in known else name,
                    topic_id=known.get(name, o.ZERO_ID),
                    partition_indexes=tuple(indexes),
                )
                for name, indexes in wanted.items()
            )
        wants = o.OffsetFetchRequestGroup(group, member_id=member, member_epoch=epoch, topics=topics)
        answer = self.answers.get(self.ask(o.OffsetFetchRequest((wants,), require_stable=stable), version, **more))  # type: ignore[arg-type]
        if answer is None:
            return None
        assert isinstance(answer, o.OffsetFetchResponse)
        return answer.groups[0]

    def read(self, wanted: Mapping[str, Iterable[int]] | None = None, **more: object) -> dict[tuple[str, int], object]:
        """Fetch offsets; return the offset, or the error, of each partition in the answer."""
        answer = self.asks(wanted, **more)  # type: ignore[arg-type]
        assert answer is not None
        assert answer.error_code is NONE, answer
        return {
            (topic.name, row.partition_index): row.committed_offset if row.error_code is NONE else row.error_code
            for topic in answer.topics
            for row in topic.partitions
        }

    def fetch_error(self, wanted: Mapping[str, Iterable[int]] | None = None, **more: object) -> ErrorCode:
        """Fetch offsets; return the group's error in the answer."""
        answer = self.asks(wanted, **more)  # type: ignore[arg-type]
        assert answer is not None
        return answer.error_code

    def delete(
        self, wanted: Mapping[str, Iterable[int]], *, group: str = GROUP, **more: object
    ) -> ErrorCode | Errors | None:
        """Delete offsets; return the group's error, or the error of each partition."""
        topics = tuple(o.OffsetDeleteRequestTopic(name=n, partition_indexes=tuple(p)) for n, p in wanted.items())
        answer = self.answers.get(self.ask(o.OffsetDeleteRequest(group, topics), 0, **more))  # type: ignore[arg-type]
        if answer is None:
            return None
        assert isinstance(answer, o.OffsetDeleteResponse)
        return errors(answer.topics) if answer.error_code is NONE else answer.error_code

    def delete_group(self, group: str = GROUP) -> ErrorCode:
        answer = self.answers[self.ask(m.DeleteGroupsRequest((group,)))]
        assert isinstance(answer, m.DeleteGroupsResponse)
        return answer.results[0].error_code

    def expire(self, after: int) -> None:
        """Run the check for expired offsets after so many ms; other timers are late."""
        key = TimerKey(TimerKind.EXPIRY)
        self.now = max(self.now + after, self.timers[key])
        del self.timers[key]
        self.feed(TimerFired(self.now, key))

    def stored(self, group: str = GROUP) -> dict[tuple[str, int], int]:
        """Return the committed offsets of a group in the newest state."""
        return {(row.topic, row.partition): row.offset for row in self.views() if row.group_id == group}

    def views(self) -> tuple[OffsetView, ...]:
        return coordinator.offsets_view(self.state).committed

    def pending(self, group: str = GROUP) -> dict[tuple[str, int, int], int]:
        """Return the pending offsets of a group by topic, partition and producer."""
        rows = coordinator.offsets_view(self.state).pending
        return {(row.topic, row.partition, row.producer_id or 0): row.offset for row in rows if row.group_id == group}


def gone(records: Iterable[Record]) -> list[tuple[str, str, int]]:
    """Return the partitions of the tombstones among these records."""
    return [
        (record.key.group, record.key.topic, record.key.partition)
        for record in records
        if isinstance(record.key, r.OffsetCommitKey) and record.value is None
    ]


def without_places(state: coordinator.CoordinatorState) -> object:
    """Return all offsets of a state, without the places of their records in the log."""
    view = coordinator.offsets_view(state)
    return replace(
        view,
        committed=tuple(replace(row, record_offset=-1) for row in view.committed),
        pending=tuple(replace(row, record_offset=-1) for row in view.pending),
    )
