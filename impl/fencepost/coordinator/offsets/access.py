"""Writing records of offsets in a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fencepost.protocol.logged import Partition, PlainCommit, StoredOffset
from fencepost.protocol.offset_records import OffsetCommitKey
from fencepost.protocol.records import Record
from fencepost.quirks import varies

from ..kernel.step import Step
from ..kernel.stored_offsets import OffsetDraft
from . import offset_appliers


@varies
def begin_simple_group(step: Step, group_id: str) -> None:
    """A simple group exists from its first offset on, not before (O-COMMIT-20, O-COMMIT-39)."""


def write(step: Step, records: Sequence[Record]) -> None:
    """Append records of offsets and apply them (F-RT-04). Offsets of a group that does not exist create a simple group,
    which is removed again if the append fails (O-COMMIT-20, O-COMMIT-40, F-REPLAY-04)."""
    if not records:
        return
    draft, end = OffsetDraft(step.offsets.now), step.log.end
    for place, record in enumerate(records, end):
        offset_appliers.change(draft, record, place)
        name = record.key.group
        if record.value is not None and name not in step.memory.groups and type(record.key) is OffsetCommitKey:
            step.change_map(name, offset_appliers.simple_group(name, step.memory.new_incarnation()))
    step.offsets.now = draft.freeze()
    step.log.records += records


def write_commit(step: Step, commit: PlainCommit) -> None:
    """The same for the records of a plain commit, without creating them."""
    if not commit:
        return
    name = commit.group
    draft = OffsetDraft(step.offsets.now)
    committed = draft.committed(name)
    for place, (partition, value) in enumerate(commit.rows, step.log.end):
        committed[partition] = StoredOffset(value, place)
    if name not in step.memory.groups:
        step.change_map(name, offset_appliers.simple_group(name, step.memory.new_incarnation()))
    step.offsets.now = draft.freeze()
    step.log.commit = commit


def tombstones(group_id: str, partitions: Iterable[Partition]) -> list[Record]:
    """The records that remove everything stored for these partitions."""
    return [Record(OffsetCommitKey(group_id, topic, partition), None) for topic, partition in partitions]
