"""The stored offsets in the closed system's values: for each partition those that count, in the order of their records
in the log.

The model stores them by record offset. Only their order within a partition matters, so they are numbered anew after
each change, which keeps the closed system finite. The transaction of an offset is written into its metadata, so that
every reader gets it too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ...offsets.state import Offsets, Place, Stored

GROUP: Final = "g"
TOPIC: Final = "t"


class Entry(NamedTuple):
    """An offset, its transaction ("" and 0: none), and whether that has yet to end."""

    offset: int = 0
    producer: str = ""
    number: int = 0
    pending: bool = False


MISSING: Final = Entry()  #: what a fetch returns if nothing is committed


def place(part: int) -> Place:
    """Return the place of a partition."""
    return Place(GROUP, TOPIC, part)


def tag(producer: str, number: int) -> str:
    """Return the metadata of an offset in that transaction."""
    return f"{producer}/{number}"


def entry(offset: int, metadata: str, *, pending: bool = False) -> Entry:
    """Return the entry of an offset with that metadata."""
    producer, _, number = metadata.partition("/")
    return Entry(offset, producer, int(number or 0), pending)


def rows(offsets: Offsets, part: int) -> list[tuple[Stored, bool]]:
    """Return the stored offsets of a partition by record offset, each with whether it is pending."""
    found = [(kept, False) for where, kept in offsets.committed if where == place(part)]
    found += [(kept, True) for where, _, kept in offsets.pending if where == place(part)]
    return sorted(found, key=lambda row: row[0].at)


def entries(offsets: Offsets, part: int) -> tuple[Entry, ...]:
    """Return the stored offsets of a partition as entries."""
    return tuple(entry(kept.offset, kept.metadata, pending=pending) for kept, pending in rows(offsets, part))


def pending(offsets: Offsets, part: int) -> tuple[Entry, ...]:
    """Return the entries of open transactions."""
    return tuple(each for each in entries(offsets, part) if each.pending)


def committed(offsets: Offsets, part: int) -> Entry:
    """Return the committed entry, or MISSING."""
    return next((each for each in entries(offsets, part) if not each.pending), MISSING)


def numbered(offsets: Offsets, parts: int) -> Offsets:
    """Return the offsets with the records of each partition numbered from 0."""
    at = {
        (place(part), kept.at): number for part in range(parts) for number, (kept, _) in enumerate(rows(offsets, part))
    }
    return Offsets(
        tuple((where, kept._replace(at=at[where, kept.at])) for where, kept in offsets.committed),
        tuple((where, owner, kept._replace(at=at[where, kept.at])) for where, owner, kept in offsets.pending),
    )
