"""The entries under group ids: the present ones, those that readers still see, and those that a failed append
restores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_records import ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupMemberMetadataKey
from fencepost.protocol.records import Record

from ..consumer.state import ConsumerGroup
from ..offsets.state import Offsets
from .state import Group, Timer


class GroupSlot(NamedTuple):
    """The entry of a coordinator under a group id: the group, if there is one, and the purpose of its join timer.

    The purpose outlives the group (C-TMR-12): None for the end of a join phase, (length, remaining) in ms for an
    initial delay.
    """

    group_id: str
    group: Group | ConsumerGroup | None = None
    delay: tuple[int, int] | None = None


class Written(NamedTuple):
    """The groups to restore if the records of the last step are not appended.

    ``cancelled``: the timers of consumer-group members that the step cancelled (M-HB-13). ``offsets``: all of them, if
    the step wrote any.
    """

    records: int
    operation: int
    before: tuple[tuple[str, Group | ConsumerGroup | None], ...] = ()
    cancelled: frozenset[Timer] = frozenset()
    offsets: Offsets | None = None


class Removed(NamedTuple):
    """A group object that was removed, or was to be, with the record after the next ``behind``. ``since``: the number
    of records that must be replicated until the object is under its id, which may be negative."""

    behind: int
    group_id: str
    since: int

    def after(self, records: int) -> Removed:
        """Return the same after ``records`` more are replicated."""
        return Removed(self.behind - records, self.group_id, self.since - records)


class CommittedView(NamedTuple):
    """A group id under which something changed in the last ``behind`` records; reads at the committed offset see
    ``old``.

    ``entry``: the group object was exchanged, removed or added; else a consumer group changed inside. ``by``: the write
    that converted the group, if one did. ``members``: those that the write exchanged.
    """

    behind: int
    group_id: str
    old: Group | ConsumerGroup | None
    entry: bool = True
    by: int | None = None
    members: frozenset[str] = frozenset()


def exchanged(old: ConsumerGroup, records: Iterable[Record]) -> frozenset[str]:
    """Return the members of old that these records replace with new objects, even if the contents are the same."""
    named = {
        record.key.member_id
        for record in records
        if isinstance(record.key, ConsumerGroupMemberMetadataKey | ConsumerGroupCurrentMemberAssignmentKey)
    }
    return frozenset(member.member_id for member in old.members if member.member_id in named)
