"""Invariants of offsets, derived from the log and from the visible groups: a book that is kept beside the coordinator.

The book uses no code of the core. It computes committed and pending offsets from the records alone, in log order. Who
may commit, what is expired, and what is subscribed to follows from the views of the groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from fencepost.coordinator import CoordinatorState, consumer_view, offsets_view, view
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.embedded import SchemaError, decode_subscription
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.offset_messages import (
    ZERO_ID,
    OffsetCommitRequest,
    OffsetFetchResponseGroup,
    TxnOffsetCommitRequest,
)
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState, GroupView

from ...generate.edge_moves import units
from ...generate.simulate.broken import demand

#: group, topic, partition
Where = tuple[str, str, int]


class Entry(NamedTuple):
    """A value, and its offset in the log."""

    value: OffsetCommitValue
    place: int


@dataclass
class Book:
    """``committed`` by partition; ``pending`` by partition and producer."""

    committed: dict[Where, Entry] = field(default_factory=dict)
    pending: dict[tuple[Where, int], Entry] = field(default_factory=dict)

    @property
    def unstable(self) -> set[Where]:
        return {where for where, _ in self.pending}

    def of(self, group_id: str) -> set[Where]:
        return {where for where in (*self.committed, *self.unstable) if where[0] == group_id}


def book(log: Iterable[Record]) -> Book:
    """Return the contents of a log (O-TXN-08…10, F-REPLAY-02, F-REPLAY-03)."""
    kept = Book()
    for place, record in enumerate(log):
        key, value, producer = record.key, record.value, record.producer
        if isinstance(key, ControlKey) and producer is not None:
            for where, whose in [each for each in kept.pending if each[1] == producer.producer_id]:
                entry = kept.pending.pop((where, whose))
                known = kept.committed.get(where)
                if key.committed and (known is None or entry.place > known.place):
                    kept.committed[where] = entry
        elif isinstance(key, OffsetCommitKey):
            where = key.group, key.topic, key.partition
            if isinstance(value, OffsetCommitValue):
                if producer is None:
                    kept.committed[where] = Entry(value, place)
                else:
                    kept.pending[where, producer.producer_id] = Entry(value, place)
            else:
                kept.committed.pop(where, None)
                for pending in [each for each in kept.pending if each[0] == where]:
                    del kept.pending[pending]
    return kept


def check_store(state: CoordinatorState, kept: Book, rule: str) -> None:
    """Check that the coordinator's offsets are those of the log, and no others."""
    shown = offsets_view(state)
    committed = {(row.group_id, row.topic, row.partition): row for row in shown.committed}
    demand(
        committed.keys() == kept.committed.keys(), rule, f"{[*committed]} are committed instead of {[*kept.committed]}"
    )
    for where, row in committed.items():
        value = kept.committed[where].value
        stored = OffsetCommitValue(
            row.offset,
            leader_epoch=row.leader_epoch,
            metadata=row.metadata,
            commit_timestamp=row.commit_timestamp,
            expire_timestamp=row.expire_timestamp,
            topic_id=row.topic_id,
        )
        demand(
            stored == replace(value, expires_at_minus_one=False), rule, f"{where}: {stored}, but the log has {value}"
        )
    pending = {((row.group_id, row.topic, row.partition), row.producer_id): row.offset for row in shown.pending}
    logged = {which: entry.value.offset for which, entry in kept.pending.items()}
    demand(pending == logged, rule, f"{pending} are pending, but the log has {logged}")


def check_answer(kept: Book, asked: bool, answer: OffsetFetchResponseGroup, *, stable: bool) -> None:
    """Check that a fetch returns what was committed when it was read (INV-COMMIT-02, INV-TXN-01, O-FETCH-08).
    ``asked``: for these partitions, and not for all."""
    if answer.error_code is not ErrorCode.NONE:
        return
    rows = {
        (answer.group_id, topic.name, row.partition_index): row for topic in answer.topics for row in topic.partitions
    }
    if not asked:
        expected = {where for where in kept.committed if where[0] == answer.group_id}
        demand(rows.keys() == expected, "O-FETCH-08", f"all of {answer.group_id} are {[*rows]}, not {expected}")
    for where, row in rows.items():
        if row.error_code not in (ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT):
            continue
        unstable = stable and where in kept.unstable
        answered_unstable = row.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
        demand(
            answered_unstable == unstable,
            "O-FETCH-08",
            f"{where} is unstable: {unstable}, answered {row.error_code.name}",
        )
        entry = None if unstable else kept.committed.get(where)
        offset = -1 if entry is None else entry.value.offset
        demand(
            row.committed_offset == offset, "INV-COMMIT-02", f"{where} is at {offset}, answered {row.committed_offset}"
        )


def group_error(
    state: CoordinatorState, body: OffsetCommitRequest | TxnOffsetCommitRequest, version: int, ids: Mapping[str, bytes]
) -> ErrorCode | None:
    """Return why a whole commit is rejected, by the visible group (6.2, O-TXN-03…05)."""
    plain = isinstance(body, OffsetCommitRequest)
    epoch = body.generation_id_or_member_epoch if isinstance(body, OffsetCommitRequest) else body.generation_id
    nobody = epoch < 0 and not body.member_id and body.group_instance_id is None
    group, other = view(state, body.group_id), consumer_view(state, body.group_id)
    if group is None and other is None:
        missing = ErrorCode.GROUP_ID_NOT_FOUND if version >= (9 if plain else 6) else ErrorCode.ILLEGAL_GENERATION
        return missing if epoch >= 0 else None
    if other is None:
        assert group is not None
        return _classic_error(group, body, epoch, plain=plain, nobody=nobody)
    if (epoch < 0 and not other.members) or (not plain and nobody and epoch == -1):
        return None
    member = next((each for each in other.members if each.member_id == body.member_id), None)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if plain and member.classic is None and version < 9:
        return ErrorCode.UNSUPPORTED_VERSION
    named = plain or version >= 6
    stale = ErrorCode.STALE_MEMBER_EPOCH if named and member.classic is None else ErrorCode.ILLEGAL_GENERATION
    if epoch >= member.member_epoch:
        return None if epoch == member.member_epoch else stale
    since = {
        (row.topic_id, number): at
        for rows in (member.pending_revocation, member.assigned)
        for row in rows
        for number, at in zip(row.partitions, row.assignment_epochs or (), strict=False)
    }
    for topic in body.topics:
        topic_id = topic.topic_id if topic.topic_id != ZERO_ID else ids.get(topic.name, ZERO_ID)
        for each in topic.partitions:
            too_long = units(each.committed_metadata or "") > state.settings.offset_metadata_max_bytes
            if not too_long and epoch < since.get((topic_id, each.partition_index), epoch + 1):
                return stale
    return None


def _classic_error(
    group: GroupView,
    body: OffsetCommitRequest | TxnOffsetCommitRequest,
    epoch: int,
    *,
    plain: bool,
    nobody: bool,
) -> ErrorCode | None:
    empty = group.state is GroupState.EMPTY
    if (epoch < 0 and empty) or (nobody and not plain):
        return None
    if nobody:
        return ErrorCode.UNKNOWN_MEMBER_ID
    mapped = dict(group.static_members)
    if body.group_instance_id is not None:
        if body.group_instance_id not in mapped:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if mapped[body.group_instance_id] != body.member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    if body.member_id not in {each.member_id for each in group.members}:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.REBALANCE_IN_PROGRESS if plain and group.state is GroupState.COMPLETING_REBALANCE else None


def too_old(
    state: CoordinatorState, kept: Book, now: int, emptied: Mapping[str, int], begun: Mapping[str, GroupView]
) -> tuple[set[Where], set[str]]:
    """Return what an expiry of all offsets must remove: offsets, and groups (6.6). ``emptied``: when a classic group
    became Empty, for those that did; ``begun``: classic groups at the beginning of their generation (G-DATA-10)."""
    gone: set[Where] = set()
    groups: set[str] = set()
    for name in state.groups:
        group, other = view(state, name), consumer_view(state, name)
        mine = {where: entry for where, entry in kept.committed.items() if where[0] == name}
        old = {
            where
            for where, entry in mine.items()
            if where not in kept.unstable
            and _may_go(group, other, where[1], begun.get(name))
            and _is_old(state, entry.value, now, emptied.get(name) if group is not None else None)
        }
        gone |= old
        empty = not other.members if other is not None else group is not None and group.state is GroupState.EMPTY
        if empty and len(old) == len(mine) and not any(where[0] == name for where in kept.unstable):
            groups.add(name)
    return gone, groups


def _is_old(state: CoordinatorState, value: OffsetCommitValue, now: int, emptied: int | None) -> bool:
    if value.expire_timestamp != -1:
        return now >= value.expire_timestamp
    since = value.commit_timestamp if emptied is None else emptied
    return now - since >= state.settings.offsets_retention_ms


def _may_go(group: GroupView | None, other: ConsumerGroupView | None, topic: str, begun: GroupView | None) -> bool:
    """O-EXP-02…06, O-EXP-10."""
    if other is not None:
        return not subscribes(other, topic)
    assert group is not None
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    stable = group.state is GroupState.STABLE and group.protocol_type == "consumer"
    return stable and begun is not None and not reads(begun, topic)


def subscribes(group: ConsumerGroupView, topic: str) -> bool:
    """Whether a member of a consumer group names the topic (O-DEL-07)."""
    return any(topic in each.subscribed_topic_names for each in group.members)


def reads(group: GroupView, topic: str) -> bool:
    """Whether a classic group of consumers subscribes to the topic, or that is unknown (O-DEL-07)."""
    try:
        offers = [each for member in group.members for each in member.protocols if each.name == group.protocol_name]
        return any(topic in decode_subscription(each.metadata).topics for each in offers)
    except SchemaError:
        return True
