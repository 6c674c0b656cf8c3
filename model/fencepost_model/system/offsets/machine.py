"""Drives the model of offsets (``fencepost_model.offsets``). It computes what the coordinator does with a request, for
a consumer group that has the members, epochs and partitions of the last decision.

Every decision grants all partitions anew, so an older epoch never commits (O-COMMIT-36). A member that is granted
nothing subscribes to nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Final

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    TxnOffsetCommitRequest,
)
from fencepost.protocol.offset_records import ControlKey, ControlValue, Producer
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings

from ...consumer import ConsumerGroup, Image, Member
from ...offsets.clean import delete, expire
from ...offsets.commit import commit
from ...offsets.fetch import fetch, question
from ...offsets.rows import Row
from ...offsets.state import Offsets, replay
from ...offsets.topics import sifted
from ...switches import variant_of
from .config import OffsetsConfig
from .kept import GROUP, MISSING, TOPIC, Entry, entries, entry, numbered, place, tag
from .state import Decision, Request

TOPIC_ID: Final = bytes(15) + b"\x01"
NOBODY: Final[frozenset[str]] = frozenset()
#: Versions that name topics. A producer of this version is answered ILLEGAL_GENERATION (O-TXN-05).
COMMIT_VERSION, TXN_VERSION, FETCH_VERSION = 9, 5, 9
#: The time of all writes, and the time of expiry.
NOW, LATER = 0, 1_000_000_000


class Machine:
    """The model of offsets for a configuration. Repeated calls are computed once."""

    def __init__(self, config: OffsetsConfig) -> None:
        self.config = config
        self.settings = Settings()
        self.image = Image((Topic(TOPIC, TOPIC_ID, len(config.parts)),))
        self.group = cache(self._group)
        self.commit = cache(self._commit)
        self.fetch = cache(self._fetch)

    def _group(self, decision: Decision) -> ConsumerGroup:
        """Return the group after this decision."""
        granted = dict(zip(self.config.holders, decision.grant, strict=True))
        members = tuple(
            Member(
                name,
                names=(TOPIC,) if parts else (),
                epoch=decision.epoch,
                previous=decision.epoch - 1,
                assigned=tuple((TOPIC_ID, self.config.parts.index(part), decision.epoch) for part in sorted(parts)),
            )
            for name, parts in sorted(granted.items())
        )
        return ConsumerGroup(decision.epoch, decision.epoch, members=members)

    def _after(self, offsets: Offsets, records: Iterable[Record]) -> Offsets:
        """Return the offsets after these records, which follow all others."""
        for record in records:
            at = len(offsets.committed) + len(offsets.pending)
            offsets = numbered(replay(offsets, record, at), len(self.config.parts))
        return offsets

    def _body(self, number: int, request: Request) -> OffsetCommitRequest | TxnOffsetCommitRequest:
        name = self.config.holders[number]
        transactional = request.api == "TxnCommit"
        metadata = tag(name, request.number) if transactional else ""
        partition = OffsetCommitRequestPartition(
            request.part, committed_offset=request.offset, committed_metadata=metadata
        )
        topics = (OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),)
        if transactional:
            return TxnOffsetCommitRequest(
                GROUP,
                transactional_id=name,
                producer_id=number,
                producer_epoch=request.number,
                generation_id=request.epoch,
                member_id=name,
                topics=topics,
            )
        return OffsetCommitRequest(GROUP, generation_id_or_member_epoch=request.epoch, member_id=name, topics=topics)

    def _commit(self, decision: Decision, number: int, request: Request, offsets: Offsets) -> Offsets | str:
        """Return the offsets after a commit of either kind, or the error that refuses it (O-COMMIT-32, O-TXN-05)."""
        body = self._body(number, request)
        version = TXN_VERSION if request.api == "TxnCommit" else COMMIT_VERSION
        asked = sifted(self.image, body, version, NOBODY).asked
        group = self.group(decision)
        done = commit(self.settings, variant_of(self.config.profile), group, body, asked, version=version, now=NOW)
        return done.error.name if done.error is not None else self._after(offsets, done.records)

    def _fetch(self, decision: Decision, number: int, request: Request, offsets: Offsets) -> Entry | str:
        """Return the entry that a fetch gets, or its error: of the group, or UNSTABLE_OFFSET_COMMIT (O-FETCH-05…08)."""
        topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(request.part,))
        asked = OffsetFetchRequestGroup(
            GROUP, member_id=self.config.holders[number], member_epoch=request.epoch, topics=(topic,)
        )
        answer = fetch(
            variant_of(self.config.profile),
            self.image,
            self.group(decision),
            offsets,
            question(self.image, asked, NOBODY, FETCH_VERSION),
            stable=self.config.require_stable,
        ).entry.body
        if answer.error_code is not ErrorCode.NONE:
            return answer.error_code.name
        ((row,),) = (found.partitions for found in answer.topics)
        if row.error_code is not ErrorCode.NONE:
            return row.error_code.name
        if row.committed_offset < 0:
            return MISSING
        found = entry(row.committed_offset, row.metadata or "")
        return next(each for each in entries(offsets, request.part) if each._replace(pending=False) == found)

    def ended(self, offsets: Offsets, number: int, *, committed: bool) -> Offsets:
        """Return the offsets after the marker of the holder's transaction (O-TXN-08)."""
        return self._after(offsets, [Record(ControlKey(committed), ControlValue(0), Producer(number, 0))])

    def deleted(self, decision: Decision, offsets: Offsets, part: int) -> Offsets | None:
        """Return the offsets after the deletion of a partition's offset, or None if it is refused or there is nothing
        to delete (O-DEL-05, 06)."""
        row = Row(TOPIC, TOPIC_ID, part)
        _, records = delete(self.group(decision), None, offsets, [(row, place(part))])
        return self._after(offsets, records) if records else None

    def expired(self, decision: Decision, offsets: Offsets, part: int) -> Offsets | None:
        """Return the offsets after the expiry of a partition's offset, the only old one, or None if it does not expire
        (O-EXP-05, 10, 11)."""
        young = Offsets(
            tuple(
                (where, kept if where == place(part) else kept._replace(commit_timestamp=LATER))
                for where, kept in offsets.committed
            ),
            offsets.pending,
        )
        group, retention = self.group(decision), LATER - NOW
        records = expire(GROUP, group, None, young, now=LATER, retention=retention).records
        return self._after(offsets, records) if records else None
