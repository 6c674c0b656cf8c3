"""Groups as reads see them: as of the high watermark (F-RT-11, C-ADM-08).

The versions between then and now are the ``before`` of the changes that are not replicated yet.

Kafka keeps the entries of its maps likewise: one that is exchanged moves into the snapshot of its last moment. When an
append fails, the entry comes back, and the snapshot keeps its own; until the high watermark has passed, a read that
goes through the map meets it twice, and once more for every further place of the log where that happened (C-ADM-05).
It may overlook those in a snapshot whose table has grown larger than the map's own; which these are goes by hashes.
"""

from __future__ import annotations

from collections.abc import Mapping

from .state import Entry, Group
from .step import Step


def committed(step: Step) -> Mapping[str, Group]:
    """The groups by their id."""
    if not step.changes:
        return step.groups
    groups = dict(step.groups)
    for change in reversed(step.changes):
        if change.before is None:
            groups.pop(change.group_id, None)
        else:
            groups[change.group_id] = change.before
    return groups


def copies(step: Step, entry: Entry) -> int:
    """How often a read shows an entry that is there as of the high watermark."""
    if not (step.relisted and step.profile.fault_failed_deletion_lists_twice):
        return 1
    place, moved = _exchanged_at(step, entry)
    places = {base for base, other in step.relisted if other == entry and (place is None or base <= place)}
    least, most = (0, len(places | {place})) if moved else (1, len(places) + 1)
    return most if least == most else step.choices.shown(entry[0], least, most)


def _exchanged_at(step: Step, entry: Entry) -> tuple[int | None, bool]:
    """Where in the log the entry was exchanged since, or the group whose map it is in; None if both are the newest.
    Whether it was the entry: a group that is converted takes its members along as they are, and one that comes under
    its name later has a map of its own."""
    name, member_id = entry
    changes = [change for change in step.changes if change.group_id == name]
    for place, change in enumerate(changes):
        after = changes[place + 1].before if place + 1 < len(changes) else step.groups.get(name)
        if change.before is None:
            continue
        if entry in exchanged(name, change.before, after):
            return change.base, True
        if member_id and type(after) is not type(change.before):
            return change.base, False
    return None, False


def exchanged(name: str, before: Group, after: Group | None) -> list[Entry]:
    """The entries of before that are gone or have another object in their place."""
    entries = [] if type(after) is type(before) else [(name, "")]
    if after is not None and type(after) is type(before):
        now = after.entries()
        entries += [(name, each) for each, entry in before.entries().items() if now.get(each) is not entry]
    return entries
