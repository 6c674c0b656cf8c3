"""Records of offsets are written and applied (11.5): the same for the live coordinator and for one that loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fencepost.protocol.logged import Commits, Partition, PlainCommit, StoredOffset
from fencepost.protocol.offset_records import ControlKey, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..classic.group import ClassicGroup
from ..kernel.replay_context import Replay
from ..kernel.step import Step
from ..kernel.stored_offsets import OffsetDraft, OffsetStore

#: The keys of the records that this module applies.
KEYS: Final[tuple[type, ...]] = (OffsetCommitKey, ControlKey)


def apply(replay: Replay, record: Record) -> None:
    """Apply one record of a log. A group may be known only by its offsets (F-REPLAY-04)."""
    change(replay.offsets, record, replay.place)
    if record.value is not None:
        name = record.key.group
        if name not in replay.known and name not in replay.drafts and type(record.key) is OffsetCommitKey:
            meet_ownerless(replay, name)


def apply_commits(replay: Replay, log: Sequence[Record], place: int, end: int) -> int:
    """Apply the plain commits from this place of a log on, up to the first other record or to below ``end``; return the
    place of that. The result is the same as with ``apply``, but faster: most records of a log are plain commits."""
    offsets, seen = replay.offsets, set[str]()
    name, committed = None, None
    while place < end:
        record = log[place]
        key, value = record.key, record.value
        if type(key) is not OffsetCommitKey or record.producer is not None or not isinstance(value, OffsetCommitValue):
            break
        if committed is None or key.group != name:
            name = key.group
            committed = offsets.committed(name)
            if name not in seen:
                seen.add(name)
                if name not in replay.known and name not in replay.drafts:
                    meet_ownerless(replay, name)
        committed[key.topic, key.partition] = StoredOffset(value, place)
        place += 1
    return place


def apply_run(replay: Replay, run: Commits) -> None:
    """Apply consecutive plain commits, of which those that count are already known."""
    for name, committed in run.groups.items():
        if name not in replay.known and name not in replay.drafts:
            meet_ownerless(replay, name)
        replay.offsets.put_all(name, committed)


def change(offsets: OffsetDraft, record: Record, place: int) -> None:
    """Apply one record, at this place of the log: an offset is committed, pending or deleted (F-REPLAY-02,
    F-REPLAY-03), or a transaction ends (F-REPLAY-05)."""
    key, value, producer = record.key, record.value, record.producer
    if type(key) is OffsetCommitKey:
        if not isinstance(value, OffsetCommitValue):
            offsets.remove(key)
        elif producer is None:
            offsets.put(key.group, (key.topic, key.partition), StoredOffset(value, place))  # F-REPLAY-02
        else:
            offset = StoredOffset(value, place)
            offsets.put_pending(producer.producer_id, key.group, (key.topic, key.partition), offset)  # F-REPLAY-03
    elif type(key) is ControlKey and producer is not None:
        offsets.end(producer.producer_id, committed=key.committed)  # F-REPLAY-05


@varies
def meet_ownerless(replay: Replay, group_id: str) -> None:
    """An offset of an unknown group. The group's own records may still follow; if they do not, it is a simple group
    once all records are applied (F-REPLAY-04, F-REPLAY-06)."""
    replay.ownerless[group_id] = None


def settled(replay: Replay) -> OffsetStore:
    """The offsets after all records are applied. A name that has offsets but no group records becomes a simple group
    (F-REPLAY-04)."""
    store = replay.offsets.freeze()
    for name in replay.ownerless:
        if name in store.groups and not replay.has(name):
            replay.put(name, simple_group(name, replay.new_incarnation()))  # F-REPLAY-04
    return store


def simple_group(name: str, incarnation: int) -> ClassicGroup:
    """A group that only holds offsets and has no records itself (G-VOC-01, O-COMMIT-37)."""
    return ClassicGroup(name, incarnation)


@varies
def begin_simple_group(step: Step, group_id: str) -> None:
    """A simple group exists from its first offset on, not before (O-COMMIT-20, O-COMMIT-39)."""


def write_offset_records(step: Step, records: Sequence[Record]) -> None:
    """Append records of offsets and apply them (F-RT-04). Offsets of a group that does not exist create a simple group,
    which is removed again if the append fails (O-COMMIT-20, O-COMMIT-40, F-REPLAY-04)."""
    if not records:
        return
    draft, end = OffsetDraft(step.offsets.now), step.log.end
    for place, record in enumerate(records, end):
        change(draft, record, place)
        name = record.key.group
        if record.value is not None and name not in step.memory.groups and type(record.key) is OffsetCommitKey:
            step.change_map(name, simple_group(name, step.memory.new_incarnation()))
    step.offsets.now = draft.freeze()
    step.log.records += records


def write_plain_commit(step: Step, commit: PlainCommit) -> None:
    """The same for the records of a plain commit, without creating them."""
    if not commit:
        return
    name = commit.group
    draft = OffsetDraft(step.offsets.now)
    committed = draft.committed(name)
    for place, (partition, value) in enumerate(commit.rows, step.log.end):
        committed[partition] = StoredOffset(value, place)
    if name not in step.memory.groups:
        step.change_map(name, simple_group(name, step.memory.new_incarnation()))
    step.offsets.now = draft.freeze()
    step.log.commit = commit


def offset_tombstones(group_id: str, partitions: Iterable[Partition]) -> list[Record]:
    """The records that remove everything stored for these partitions."""
    return [Record(OffsetCommitKey(group_id, topic, partition), None) for topic, partition in partitions]
