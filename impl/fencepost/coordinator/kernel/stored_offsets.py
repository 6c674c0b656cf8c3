"""The stored offsets of every group, kept beside the group itself (G-DATA-40…42).

A state holds an ``OffsetStore``, which is never changed. Versions share what they have in common, so keeping an earlier
one costs only the difference. Therefore the version that reads see (F-RT-11) and the one that a failed append goes back
to (F-RT-08) are kept whole, in ``OffsetChange``. Records change an ``OffsetDraft``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Set
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.logged import Partition, StoredOffset
from fencepost.protocol.offset_records import OffsetCommitKey

from .persistent import edit, frozen, frozen_set, owned, with_element, without_element

#: Offsets by partition.
ByPartition: TypeAlias = Mapping[Partition, StoredOffset]

_NOTHING: Final[ByPartition] = {}


class GroupOffsets(NamedTuple):
    """The offsets of one group: the committed ones, and by producer those that are pending in a transaction.
    ``unstable``: for each partition the number of producers that have a pending offset for it (G-DATA-41)."""

    committed: ByPartition = _NOTHING
    pending: Mapping[int, ByPartition] = {}
    unstable: Mapping[Partition, int] = {}

    def partitions(self) -> Iterator[Partition]:
        """All partitions with a committed or pending offset, each once, sorted."""
        return iter(sorted(self.committed.keys() | self.unstable.keys()))


NONE: Final = GroupOffsets()


class OffsetStore(NamedTuple):
    """``groups``: the offsets by group id, of groups that have an offset. ``producers``: by producer, the groups in
    which it has a pending offset."""

    groups: Mapping[str, GroupOffsets] = {}
    producers: Mapping[int, Set[str]] = {}

    def of(self, group_id: str) -> GroupOffsets:
        """The offsets of a group; none if it has none."""
        found: GroupOffsets = self.groups.get(group_id, NONE)
        return found


NO_OFFSETS: Final = OffsetStore()


class OffsetChange(NamedTuple):
    """A change of the store ``before`` by records from ``base`` to below ``offset``, which may not be replicated
    yet."""

    base: int
    offset: int
    before: OffsetStore


class _GroupDraft:
    """The offsets of one group while they are changed."""

    __slots__ = ("_before", "committed", "pending", "unstable")

    def __init__(self, before: GroupOffsets) -> None:
        self._before = before
        self.committed = before.committed
        self.pending = before.pending
        self.unstable = before.unstable

    def own_committed(self) -> MutableMapping[Partition, StoredOffset]:
        committed = self.committed = owned(self.committed, self._before.committed)
        return committed

    def own_pending(self) -> MutableMapping[int, ByPartition]:
        pending = self.pending = owned(self.pending, self._before.pending)
        return pending

    def put_pending(self, producer: int, partition: Partition, offset: StoredOffset) -> None:
        pending = self.own_pending()
        mine = pending.get(producer, _NOTHING)
        if partition not in mine:
            self._count(partition, 1)
        changed = pending[producer] = self._own(producer, mine)
        changed[partition] = offset

    def drop_pending(self, partition: Partition) -> list[int]:
        """Remove everything that is pending for the partition. Returns the producers that have nothing left here."""
        if partition not in self.unstable:
            return []
        gone, pending = [], self.own_pending()
        for producer, mine in list(pending.items()):
            if partition not in mine:
                continue
            changed = self._own(producer, mine)
            del changed[partition]
            if changed:
                pending[producer] = changed
            else:
                del pending[producer]
                gone.append(producer)
        self._own_unstable().pop(partition)
        return gone

    def end(self, producer: int) -> ByPartition:
        """Remove everything that is pending for the producer, and return it."""
        mine = self.own_pending().pop(producer)
        for partition in mine:
            self._count(partition, -1)
        return mine

    def freeze(self) -> GroupOffsets | None:
        """The offsets after the changes, None if nothing is left."""
        if not self.committed and not self.pending:
            return None
        pending = self.pending
        if pending is not self._before.pending:
            pending = frozen({producer: frozen(mine) for producer, mine in pending.items()})
        return GroupOffsets(frozen(self.committed), pending, frozen(self.unstable))

    def _own(self, producer: int, mine: ByPartition) -> MutableMapping[Partition, StoredOffset]:
        return edit(mine) if mine is _NOTHING else owned(mine, self._before.pending.get(producer, _NOTHING))

    def _own_unstable(self) -> MutableMapping[Partition, int]:
        unstable = self.unstable = owned(self.unstable, self._before.unstable)
        return unstable

    def _count(self, partition: Partition, change: int) -> None:
        unstable = self._own_unstable()
        count = unstable.get(partition, 0) + change
        if count:
            unstable[partition] = count
        else:
            del unstable[partition]


class OffsetDraft:
    """A store while records change it, one record or millions; ``freeze`` ends that."""

    __slots__ = ("_before", "_committed", "_groups", "_producers")

    def __init__(self, before: OffsetStore) -> None:
        self._before = before
        self._groups: dict[str, _GroupDraft] = {}
        self._committed: dict[str, MutableMapping[Partition, StoredOffset]] = {}  #: of those drafts, as editable maps
        self._producers = before.producers

    def put(self, group_id: str, partition: Partition, offset: StoredOffset) -> None:
        """Commit the offset (F-REPLAY-02)."""
        self.committed(group_id)[partition] = offset

    def committed(self, group_id: str) -> MutableMapping[Partition, StoredOffset]:
        """The committed offsets of a group, as a map to be changed."""
        committed = self._committed.get(group_id)
        if committed is None:
            committed = self._committed[group_id] = self._group(group_id).own_committed()
        return committed

    def put_all(self, group_id: str, offsets: Mapping[Partition, StoredOffset]) -> None:
        """Commit these offsets, in this order."""
        committed = self.committed(group_id)
        committed.update(offsets)

    def put_pending(self, producer: int, group_id: str, partition: Partition, offset: StoredOffset) -> None:
        """Add a pending offset of a transaction; it replaces an earlier one of the producer (F-REPLAY-03, O-TXN-09)."""
        self._group(group_id).put_pending(producer, partition, offset)
        groups = self._producers.get(producer)
        if groups is None:
            self._own_producers()[producer] = frozen_set((group_id,))
        elif group_id not in groups:
            self._own_producers()[producer] = with_element(groups, group_id)

    def remove(self, key: OffsetCommitKey) -> None:
        """Remove everything stored for the partition, committed or pending (F-REPLAY-02, O-TXN-10)."""
        group, partition = self._group(key.group), (key.topic, key.partition)
        if partition in group.committed:
            del group.own_committed()[partition]
        for producer in group.drop_pending(partition):  # O-TXN-10
            self._left(producer, key.group)

    def end(self, producer: int, *, committed: bool) -> None:
        """End the transaction of the producer. Its pending offsets are committed, unless the partition has an offset of
        a later record; if the transaction aborts, they are dropped (O-TXN-08)."""
        groups = self._producers.get(producer)
        if groups is None:
            return
        del self._own_producers()[producer]
        for name in groups:
            group = self._group(name)
            for partition, offset in group.end(producer).items():
                known = group.committed.get(partition)
                if committed and (known is None or offset.place > known.place):
                    group.own_committed()[partition] = offset

    def freeze(self) -> OffsetStore:
        """The store after the changes; ends the draft."""
        before = self._before
        if not self._groups:
            return before
        groups = owned(before.groups, before.groups)
        for name, draft in self._groups.items():
            after = draft.freeze()
            if after is not None:
                groups[name] = after
            else:
                groups.pop(name, None)
        return OffsetStore(frozen(groups), frozen(self._producers))

    def _group(self, name: str) -> _GroupDraft:
        draft = self._groups.get(name)
        if draft is None:
            draft = self._groups[name] = _GroupDraft(self._before.of(name))
        return draft

    def _own_producers(self) -> MutableMapping[int, Set[str]]:
        producers = self._producers = owned(self._producers, self._before.producers)
        return producers

    def _left(self, producer: int, group_id: str) -> None:
        producers = self._own_producers()
        left = without_element(producers[producer], group_id)
        if left:
            producers[producer] = left
        else:
            del producers[producer]


class StepOffsets:
    """The store while a step changes it. ``now``: the current store. ``changes``: of earlier steps, not yet replicated,
    in log order."""

    __slots__ = ("_before", "changes", "now")

    def __init__(self, store: OffsetStore, changes: tuple[OffsetChange, ...]) -> None:
        self._before = store
        self.now = store
        self.changes = changes

    @property
    def committed(self) -> OffsetStore:
        """The store as of the high watermark (F-RT-11), before anything that this step has written."""
        return self.changes[0].before if self.changes else self._before

    def replicated(self, offset: int) -> None:
        """Everything written below ``offset`` can be read now."""
        self.changes = tuple(change for change in self.changes if change.offset > offset)

    def revert(self, base: int) -> None:
        """Undo everything written from ``base`` on: it is not in the log (F-RT-08)."""
        lost = [change for change in self.changes if change.offset > base]
        if lost:
            self.changes = self.changes[: -len(lost)]
            self.restart(lost[0].before)

    def restart(self, store: OffsetStore) -> None:
        """Replace the store with this one; it does not count as a change of the step."""
        self.now = self._before = store

    def all_changes(self, base: int, end: int) -> tuple[OffsetChange, ...]:
        """The changes that are not replicated after the step, which has written from ``base`` to below ``end``."""
        if self.now is self._before:
            return self.changes
        return (*self.changes, OffsetChange(base, end, self._before))
