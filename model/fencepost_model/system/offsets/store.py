"""The offsets that a coordinator keeps, by the offsets of their records in the log (O-TXN-07…10).

Of those record offsets only the order within a partition ever matters, so they are numbered anew after each change;
that keeps the closed system finite.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias


class Written(NamedTuple):
    """An offset that a record told: where the record stands among those of its partition, and of which transaction of
    which producer it is; "" and 0: of none."""

    at: int
    offset: int
    producer: str = ""
    number: int = 0


class Slot(NamedTuple):
    """A partition's offsets: the one in the main store, and those that wait for the end of their transactions."""

    main: Written | None = None
    pending: frozenset[Written] = frozenset()

    def of(self, producer: str) -> Written | None:
        """What waits of that producer; one transaction has one offset of a partition (O-TXN-09)."""
        return next((each for each in self.pending if each.producer == producer), None)


class Entry(NamedTuple):
    """What an answer tells: an offset, where it comes from, and whether it is pending."""

    offset: int = 0
    producer: str = ""
    number: int = 0
    pending: bool = False


MISSING: Final = Entry()
EMPTY: Final = Slot()
#: A slot for each partition, in the order of the configuration's.
Store: TypeAlias = tuple[Slot, ...]


def told(written: Written | None, *, pending: bool = False) -> Entry:
    """What is told of that record."""
    return MISSING if written is None else Entry(written.offset, written.producer, written.number, pending)


# ---- guards ------------------------------------------------------------------------------------------------------


def visible(slot: Slot) -> Entry:
    """What a fetch tells: the main store (O-FETCH-07)."""
    return told(slot.main)


def unstable(slot: Slot) -> bool:
    """Whether who asks for stable offsets has to come again (O-FETCH-08)."""
    return bool(slot.pending)


def overtaken(own: int, main: int) -> bool:
    """Whether the main store's record is the later one (O-TXN-08)."""
    return main > own


def may_expire(slot: Slot) -> bool:
    """Whether no transaction may still commit the partition (O-EXP-11)."""
    return not slot.pending


# ---- records -----------------------------------------------------------------------------------------------------


def _numbered(slot: Slot) -> Slot:
    """The same with the records numbered from 0 in their order."""
    written = sorted(([slot.main] if slot.main else []) + [*slot.pending])
    places = {each.at: place for place, each in enumerate(written)}
    main = slot.main and slot.main._replace(at=places[slot.main.at])
    return Slot(main, frozenset(each._replace(at=places[each.at]) for each in slot.pending))


def _end(slot: Slot) -> int:
    """Where the next record stands."""
    return len(slot.pending) + (slot.main is not None)


def committed(slot: Slot, offset: int) -> Slot:
    """After the record of a plain commit (F-REPLAY-02)."""
    return _numbered(Slot(Written(_end(slot), offset), slot.pending))


def held(slot: Slot, producer: str, number: int, offset: int) -> Slot:
    """After the record of a commit in a transaction (O-TXN-07, 09)."""
    others = frozenset(each for each in slot.pending if each.producer != producer)
    return _numbered(Slot(slot.main, others | {Written(_end(slot), offset, producer, number)}))


def counted(slot: Slot, producer: str) -> Slot:
    """After the marker of a commit: what waited takes the place of the main one unless that was written later
    (O-TXN-08)."""
    own = slot.of(producer)
    if own is None:
        return slot
    main = slot.main if slot.main is not None and overtaken(own.at, slot.main.at) else own
    return _numbered(Slot(main, slot.pending - {own}))


def dropped(slot: Slot, producer: str) -> Slot:
    """After the marker of an abort (O-TXN-08)."""
    return _numbered(Slot(slot.main, frozenset(each for each in slot.pending if each.producer != producer)))


def in_order(slot: Slot) -> tuple[Written, ...]:
    """All of them, as their records stand in the log."""
    return tuple(sorted(([slot.main] if slot.main else []) + [*slot.pending]))
