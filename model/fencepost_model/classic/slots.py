"""What stands under a group id, what of it readers still see, and what a failed append takes back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fencepost.protocol.consumer_records import ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupMemberMetadataKey
from fencepost.protocol.records import Record

from ..consumer.state import ConsumerGroup
from ..offsets.state import Offsets
from .state import Group, Timer


class Slot(NamedTuple):
    """What a coordinator keeps under a group id: the group, if there is one, and the meaning of its join timer.

    The latter outlives the group (C-TMR-12): None for the end of a join phase, (length, remaining) for an initial
    delay.
    """

    group_id: str
    group: Group | ConsumerGroup | None = None
    delay: tuple[int, int] | None = None


class Written(NamedTuple):
    """What to take back if the records of the last step turn out not to be appended: groups as they were before.

    ``cancelled``: the timers of members of consumer groups that the step cancelled (M-HB-13). ``offsets``: all of them,
    if the step wrote any.
    """

    records: int
    operation: int
    before: tuple[tuple[str, Group | ConsumerGroup | None], ...] = ()
    cancelled: frozenset[Timer] = frozenset()
    offsets: Offsets | None = None


class Removed(NamedTuple):
    """A group object that was removed, or was to be, with the record after the next ``behind``. It stands under its id
    since that many records were replicated: ``since``, which may be negative."""

    behind: int
    group_id: str
    since: int

    def after(self, records: int) -> Removed:
        """The same when these many more are replicated."""
        return Removed(self.behind - records, self.group_id, self.since - records)


class Shadow(NamedTuple):
    """A group id under which something changed in the last ``behind`` records; reads at the committed offset see
    ``old``. ``entry``: the group object is another one, or gone, or new; else a consumer group changed inside. ``by``:
    the write that changed it, if the group became one of the other kind. ``members``: those that it exchanged."""

    behind: int
    group_id: str
    old: Group | ConsumerGroup | None
    entry: bool = True
    by: int | None = None
    members: frozenset[str] = frozenset()


def exchanged(old: ConsumerGroup, records: Iterable[Record]) -> frozenset[str]:
    """The members of old in whose places these records put others, be these the same in all that is in them."""
    named = {
        record.key.member_id
        for record in records
        if isinstance(record.key, ConsumerGroupMemberMetadataKey | ConsumerGroupCurrentMemberAssignmentKey)
    }
    return frozenset(member.member_id for member in old.members if member.member_id in named)
