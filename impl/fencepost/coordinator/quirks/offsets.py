"""Deviations of Kafka with offsets, and with the deletion of groups.

DeleteGroups takes two operations (C-ADM-09), and a failed append, as of a deletion, affects reads (C-ADM-05).
"""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.events import Request, Topic
from fencepost.protocol.logged import Partition
from fencepost.protocol.messages import DeleteGroupsRequest
from fencepost.protocol.offset_messages import ZERO_ID
from fencepost.protocol.offset_records import Producer
from fencepost.quirks import Next, quirk

from .. import admin, reversion
from ..classic import sync
from ..classic.group import ClassicGroup, GroupDraft, find_incarnation
from ..kernel import operations
from ..kernel.persistent import exchanged
from ..kernel.replay_context import Replay
from ..kernel.state import Entry, Group
from ..kernel.step import Step
from ..kernel.stored_offsets import GroupOffsets
from ..offsets import commit, deletion, offset_appliers
from ..offsets.offset_appliers import begin_simple_group, simple_group

# Commits


@quirk("fault_refused_commit_leaves_group", of=begin_simple_group)
def begins_at_once(_: Next[None], step: Step, group_id: str) -> None:
    """Kafka creates the simple group when it checks the committer. If no partition is accepted then, there is a group
    without a record, until the next run of the offset expiry (O-COMMIT-39)."""
    step.memory.appear(simple_group(group_id, step.memory.new_incarnation()))


@quirk("fault_refused_commit_leaves_group", of=sync.not_assigned)
def acts_on_what_is_gone(_: Next[GroupDraft | None], step: Step, group_id: str, incarnation: int) -> GroupDraft | None:
    """Members have joined a group without a record; its first record, their assignment, is not appended, and the group
    is removed. Kafka still lets it prepare a rebalance, whose timer is set by the group's name (O-COMMIT-43)."""
    group = step.memory.undone.get(incarnation)
    if isinstance(group, ClassicGroup):
        return GroupDraft(group)
    return find_incarnation(step, group_id, incarnation)


@quirk("old_no_topic_ids", of=commit.id_to_store)
def stores_no_ids(_: Next[bytes], step: Step, topic_id: bytes, expires: int | None, producer: Producer | None) -> bytes:
    """4.0 stores no topic ids (V-02)."""
    return ZERO_ID


@quirk("old_transactions_without_topic_ids", of=commit.id_to_store)
def stores_no_ids_in_transactions(
    call_next: Next[bytes], step: Step, topic_id: bytes, expires: int | None, producer: Producer | None
) -> bytes:
    """Before 4.4 offsets of transactions have no topic ids (V-129, O-TXN-12)."""
    return call_next(step, topic_id, expires, producer) if producer is None else ZERO_ID


@quirk("fault_expiring_offset_keeps_topic_id", of=commit.id_to_store)
def keeps_id(_: Next[bytes], step: Step, topic_id: bytes, expires: int | None, producer: Producer | None) -> bytes:
    """Kafka keeps the id in memory; after a reload, which reads the record, it is gone (O-COMMIT-14, F-REC-20)."""
    return topic_id


# Deleted topics


@quirk("old_partitions_deleted", of=deletion.of_deleted)
def by_number(_: Next[list[Partition]], step: Step, offsets: GroupOffsets, deleted: list[Topic]) -> list[Partition]:
    """Before 4.3 an offset is deleted by the name of its topic and the number of its partition, whatever id is stored
    with it (V-57)."""
    gone = {(topic.name, number) for topic in deleted for number in range(topic.partitions)}
    return sorted(partition for stored in deletion.stores(offsets) for partition in stored if partition in gone)


# Reads


# Records


@quirk("fault_loaded_offset_makes_group", of=offset_appliers.meet_ownerless)
def makes_group(_: Next[None], work: Replay, group_id: str) -> None:
    """Kafka creates a simple group immediately. If the group's own records begin with a tombstone, which is possible in
    a compacted log, the load may fail because of it (F-REPLAY-04, F-REPLAY-06)."""
    work.put(group_id, offset_appliers.simple_group(group_id, work.new_incarnation()))


@quirk("fault_deletion_waits_twice", of=admin.delete)
def asks_share_groups_first(call_next: Next[None], step: Step, request: Request, body: DeleteGroupsRequest) -> None:
    """Kafka first asks for share groups, in a separate operation that waits for the log, and *then* deletes the groups
    that may be deleted (C-ADM-09, F-RT-16). The first operation writes nothing. If it times out, every row has the
    error, and no group is deleted later."""
    asked = any(name not in request.denied for name in body.groups_names)
    if asked and step.log.committed < step.log.end:
        operations.done(step, request, callback=operations.FailedByTimeout())
    else:
        call_next(step, request, body)


@quirk("fault_deletion_waits_twice", of=operations.replicated)
def then_deletes(call_next: Next[None], step: Step, offset: int) -> None:
    """The second operation is queued behind all others that the same high watermark has ended (C-ADM-09)."""
    due = [
        (operation.request, operation.request.body)
        for operation in step.requests.operations.values()
        if operation.offset <= offset
        and operation.request is not None
        and isinstance(operation.request.body, DeleteGroupsRequest)
        and operation.reply is None
    ]
    call_next(step, offset)
    for request, body in due:
        admin.delete_empty(step, request, body)


@quirk("fault_failed_deletion_lists_twice", of=reversion.revert_groups)
def entries_come_back_twice(call_next: Next[None], step: Step, base: int) -> None:
    """When an entry of a map is replaced, the old entry moves into the snapshot of its last moment. When an append
    fails, the entry is restored, and the snapshot keeps its own copy (C-ADM-05, F-RT-08)."""
    lost = [change for change in step.memory.changes if change.offset > base]
    groups = {
        change.group_id: step.memory.groups[change.group_id] for change in lost if change.group_id in step.memory.groups
    }
    again = _again(step)
    for change in reversed(lost):
        now = groups.pop(change.group_id, None)
        if change.before is not None:
            groups[change.group_id] = change.before
            again += tuple((base, entry) for entry in _exchanged(change.group_id, change.before, now))
    step.remains = step.remains._replace(relisted=again)
    call_next(step, base)


@quirk("fault_failed_deletion_lists_twice", of=operations.visible_rows)
def meets_twice(
    call_next: Next[tuple[operations.Row, ...]], step: Step, rows: Mapping[Entry, operations.Row]
) -> tuple[operations.Row, ...]:
    """Until the high watermark has passed, a read that iterates over the map finds such an entry twice, and once more
    for every further place of the log where that happened. It may miss entries of a snapshot whose table has grown
    larger than the table of the map itself; which ones depends on hashes (C-ADM-05)."""
    again = _again(step)
    if not again:
        return call_next(step, rows)
    return tuple(row for entry, row in rows.items() for _ in range(_copies(step, entry, again)))


def _again(step: Step) -> tuple[tuple[int, Entry], ...]:
    """The restored entries, with their places in the log, if the high watermark has not passed those."""
    return tuple((base, entry) for base, entry in step.remains.relisted if base >= step.log.committed)


def _copies(step: Step, entry: Entry, again: tuple[tuple[int, Entry], ...]) -> int:
    """How often a read shows an entry that exists as of the high watermark."""
    place, moved = _exchanged_at(step, entry)
    places = {base for base, other in again if other == entry and (place is None or base <= place)}
    least, most = (0, len(places | {place})) if moved else (1, len(places) + 1)
    return most if least == most else step.choices.shown(entry[0], least=least, most=most)


def _exchanged_at(step: Step, entry: Entry) -> tuple[int | None, bool]:
    """Where in the log the entry was replaced since, or the group whose map contains it; None if both are the newest.
    Also whether it was the entry: a converted group keeps its members as they are, and a later group of that name has
    a new map."""
    name, member_id = entry
    changes = [change for change in step.memory.changes if change.group_id == name]
    for place, change in enumerate(changes):
        after = changes[place + 1].before if place + 1 < len(changes) else step.memory.groups.get(name)
        if change.before is None:
            continue
        if entry in _exchanged(name, change.before, after):
            return change.base, True
        if member_id and type(after) is not type(change.before):
            return change.base, False
    return None, False


def _exchanged(name: str, before: Group, after: Group | None) -> list[Entry]:
    """The entries of ``before`` that are gone or were replaced by another object."""
    entries = [] if type(after) is type(before) else [(name, "")]
    if after is not None and type(after) is type(before):
        entries += [(name, each) for each, _ in exchanged(before.entries(), after.entries())]
    return entries
