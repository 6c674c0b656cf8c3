"""Promises about offsets, stated only in terms of a log and of answers (INV-COMMIT-01...04, INV-TXN-01, INV-REPLAY-01).

Nothing here uses the rules by which the model steps. The committed offset follows from the log: it is that of the last
record of its partition that counts. ``Promises`` follows the steps and reports which promise one breaks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Appended, AppendFailed, Event, Load, Request, TimerFired, TimerKind
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkerRequest,
    WriteTxnMarkerResponse,
)
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ..classic.coordinator_state import ACTIVE, CoordinatorState, Step
from ..classic.state import Group
from ..consumer.derive import group_topics
from ..consumer.state import ConsumerGroup
from ..machines import EMPTY, PREPARING, STABLE
from .state import Place, Stored

_NOWHERE = 1 << 62


class Broken(NamedTuple):
    """A broken promise, by its id, with an explanation."""

    promise: str
    how: str


def worth(log: Sequence[Record], place: Place) -> int | None:
    """Return the place in the log of the record with the committed offset, or None if nothing is committed.

    A record counts if its transaction, if any, has been committed, and no tombstone of the place follows it. The last
    record that counts holds, however late its transaction ended (O-TXN-08, O-TXN-10).
    """
    dies = -1
    ends: dict[int, bool] = {}
    found = None
    for at in range(len(log) - 1, -1, -1):
        record = log[at]
        key, producer = record.key, record.producer
        if isinstance(key, ControlKey) and producer is not None:
            ends[producer.producer_id] = key.committed
        elif isinstance(key, OffsetCommitKey) and Place(key.group, key.topic, key.partition) == place:
            if record.value is None:
                dies = at
                break
            if found is None and (producer is None or ends.get(producer.producer_id, False)):
                found = at
    return found if found is not None and found > dies else None


def pending(log: Sequence[Record]) -> set[tuple[Place, int]]:
    """Return the places, each with a producer, that open transactions hold."""
    held: set[tuple[Place, int]] = set()
    for record in log:
        key = record.key
        if isinstance(key, ControlKey) and record.producer is not None:
            held = {row for row in held if row[1] != record.producer.producer_id}
        elif isinstance(key, OffsetCommitKey):
            place = Place(key.group, key.topic, key.partition)
            if record.value is None:
                held = {row for row in held if row[0] != place}
            elif record.producer is not None:
                held.add((place, record.producer.producer_id))
    return held


def compacted(log: Sequence[Record]) -> list[tuple[int, Record]]:
    """Return the offset records that a log cleaner may leave, each with its place in the log: for each key the last
    record that counts, tombstones, and all records of open transactions."""
    places = {Place(r.key.group, r.key.topic, r.key.partition) for r in log if isinstance(r.key, OffsetCommitKey)}
    kept = {at for place in places if (at := worth(log, place)) is not None}
    held = {producer for _, producer in pending(log)}
    for at, record in enumerate(log):
        of_open = record.producer is not None and record.producer.producer_id in held
        if record.value is None or of_open or isinstance(record.key, ControlKey):
            kept.add(at)
    return [(at, log[at]) for at in sorted(kept)]


class Promises:
    """Follows the steps of one coordinator. ``log``: the records that it has written and loaded."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.log: list[Record] = []
        self.replicated = 0
        self._asked: dict[int, RequestBody] = {}
        self._wrote: dict[int, int] = {}  #: request to the end of the log after its records
        self._last = 0  #: records of the previous step

    def feed(self, event: Event, before: CoordinatorState, step: Step) -> list[Broken]:
        """Return the promises that a step breaks. ``before``: the state before it."""
        broken: list[Broken] = []
        if isinstance(event, AppendFailed) and before.written is not None:
            del self.log[len(self.log) - self._last :]
        if isinstance(event, Load) and step.state.phase == ACTIVE and before.phase != ACTIVE:
            self.log, self.replicated = list(event.records), len(event.records)
        if isinstance(event, Appended) and before.phase == ACTIVE:
            self.replicated = max(self.replicated, event.offset)
        if isinstance(event, Request):
            self._asked[event.id] = event.body
        self.log.extend(step.outcome.records)
        self._last = len(step.outcome.records)
        if isinstance(event, Request) and step.outcome.records:
            self._wrote[event.id] = len(self.log)
            broken += self._accepted(event, before)
        if isinstance(event, TimerFired) and event.key.kind is TimerKind.EXPIRY:
            broken += self._expired(event, before, step)
        for reply in step.outcome.replies:
            broken += self._answered(reply.request_id, self._asked.pop(reply.request_id, None), reply.body, step.state)
        if step.state.phase == ACTIVE:
            broken += self._stored(step.state)
        return broken

    # ---- promises -------------------------------------------------------------------------------------------------

    def _stored(self, state: CoordinatorState) -> list[Broken]:
        """Check INV-REPLAY-01: memory is what the log gives, live and loaded alike."""
        places = {place for place, _ in state.offsets.committed}
        places |= {
            Place(r.key.group, r.key.topic, r.key.partition) for r in self.log if isinstance(r.key, OffsetCommitKey)
        }
        have = {place: entry.at for place, entry in state.offsets.committed}
        broken = [
            Broken("INV-REPLAY-01", f"{place} is that of record {have.get(place)}, not of {worth(self.log, place)}")
            for place in sorted(places)
            if have.get(place) != worth(self.log, place)
        ]
        held = {(place, producer) for place, producer, _ in state.offsets.pending}
        if held != pending(self.log):
            broken.append(Broken("INV-REPLAY-01", f"pending is {sorted(held)}, not {sorted(pending(self.log))}"))
        return broken

    def _answered(
        self, request: int, asked: RequestBody | None, body: ResponseBody, state: CoordinatorState
    ) -> list[Broken]:
        if isinstance(asked, OffsetFetchRequest) and isinstance(body, OffsetFetchResponse):
            return self._read(asked, body)
        ok = isinstance(body, WriteTxnMarkerResponse) and body.error_code is ErrorCode.NONE
        if isinstance(body, OffsetCommitResponse | TxnOffsetCommitResponse):
            ok = any(row.error_code is ErrorCode.NONE for topic in body.topics for row in topic.partitions)
        broken = []
        if ok and self._wrote.get(request, _NOWHERE) > self.replicated:
            broken.append(Broken("INV-COMMIT-03", f"{request} is acknowledged and not replicated"))
        if ok and isinstance(asked, WriteTxnMarkerRequest):
            end = self._wrote.get(request, 0)
            left = [row for row in state.offsets.pending if row[1] == asked.producer_id and row[2].at < end]
            if left:
                broken.append(Broken("INV-TXN-01", f"the transaction has ended, and {left} is pending"))
        return broken

    def _read(self, asked: OffsetFetchRequest, body: OffsetFetchResponse) -> list[Broken]:
        """Check INV-COMMIT-02 and INV-TXN-01. A read that waits may see any state between its request and its answer.
        The offset that it returns must come from a record that counts now, or counted then."""
        seen = self.log if asked.require_stable else self.log[: self.replicated]
        broken = []
        for group in body.groups:
            for topic in group.topics:
                for row in topic.partitions if topic.name else ():
                    if row.error_code is not ErrorCode.NONE or row.committed_offset == -1:
                        continue
                    place = Place(group.group_id, topic.name, row.partition_index)
                    values = [self.log[at].value for at in self._ever(seen, place, waits=asked.require_stable)]
                    if row.committed_offset not in {v.offset for v in values if isinstance(v, OffsetCommitValue)}:
                        promise = "INV-TXN-01" if self._uncommitted(place, row.committed_offset) else "INV-COMMIT-02"
                        broken.append(Broken(promise, f"{place} is read as {row.committed_offset}"))
        return broken

    def _uncommitted(self, place: Place, offset: int) -> bool:
        """Return whether an open or aborted transaction has that offset there."""
        return any(
            record.producer is not None
            and isinstance(record.value, OffsetCommitValue)
            and record.value.offset == offset
            and record.key == OffsetCommitKey(*place)
            for record in self.log
        )

    def _ever(self, log: Sequence[Record], place: Place, *, waits: bool) -> list[int]:
        """Return the committed records of the place at the end of this log or, for a read that waited, at any time
        since its request."""
        ends = range(len(log), -1, -1) if waits else [len(log)]
        return sorted({at for end in ends if (at := worth(log[:end], place)) is not None})

    def _accepted(self, event: Request, before: CoordinatorState) -> list[Broken]:
        """Check INV-COMMIT-01 and INV-KIP-11 for an accepted commit."""
        body = event.body
        if not isinstance(body, OffsetCommitRequest):
            return []
        group = before.any_group(body.group_id)
        epoch = body.generation_id_or_member_epoch
        if group is None or (isinstance(group, Group) and group.state == EMPTY) or not group.members:
            allowed = epoch < 0
        elif isinstance(group, Group):
            ids = [member.member_id for member in group.members]
            allowed = epoch == group.generation and body.member_id in ids and group.state in (STABLE, PREPARING)
        else:
            allowed = _may(group, body.member_id, epoch, self.log[len(self.log) - self._last :], before)
        return [] if allowed else [Broken("INV-COMMIT-01", f"{body.member_id!r} of epoch {epoch} has committed")]

    def _expired(self, event: TimerFired, before: CoordinatorState, step: Step) -> list[Broken]:
        """Check INV-COMMIT-04 and LIV-10 for an expiry run."""
        broken = []
        held = {place for place, _ in pending(self.log[: len(self.log) - self._last])}
        stored: Mapping[Place, Stored] = dict(before.offsets.committed)
        for record in step.outcome.records:
            key = record.key
            if not isinstance(key, OffsetCommitKey):
                continue
            place = Place(key.group, key.topic, key.partition)
            entry, group = stored.get(place), before.any_group(key.group)
            if place in held:
                broken.append(Broken("INV-COMMIT-04", f"{place} has an open transaction and expires"))
            if isinstance(group, ConsumerGroup) and key.topic in group_topics(group.members, group.regexes):
                broken.append(Broken("INV-COMMIT-04", f"{place} is subscribed to and expires"))
            if entry is None:
                broken.append(Broken("INV-COMMIT-04", f"{place} expires, and nothing is there"))
            elif event.at_ms < self._until(entry, group):
                broken.append(Broken("INV-COMMIT-04", f"{place} expires too early"))
        return broken

    def _until(self, entry: Stored, group: Group | ConsumerGroup | None) -> int:
        if entry.expire_timestamp != -1:
            return entry.expire_timestamp
        since = entry.commit_timestamp
        if isinstance(group, Group) and group.state == EMPTY and group.protocol_type is not None:
            since = group.timestamp if group.timestamp != -1 else since
        return since + self.settings.offsets_retention_ms


def _may(group: ConsumerGroup, member_id: str, epoch: int, records: Sequence[Record], before: CoordinatorState) -> bool:
    """Return whether the member may commit: with its epoch, or an older one since which it has all partitions of the
    commit (INV-KIP-11)."""
    member = group.member(member_id)
    if member is None or epoch > member.epoch:
        return False
    if epoch == member.epoch:
        return True
    ids = {topic.name: topic.topic_id for topic in before.consumer.image.topics}
    since = {(topic, number): given for topic, number, given in (*member.assigned, *member.revoking)}
    written = [record.key for record in records if isinstance(record.key, OffsetCommitKey)]
    return all(since.get((ids.get(key.topic, b""), key.partition), _NOWHERE) <= epoch for key in written)
