"""What Kafka releases do differently with classic groups, operations and the log (the table in ``switches``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fencepost.protocol.messages import DeleteGroupsRequest, JoinGroupRequest
from fencepost.protocol.records import Record

from ..consumer.state import ConsumerGroup
from . import collisions
from .choice import Chooser
from .draft import Draft
from .open_groups import OpenGroups
from .slots import Removed, exchanged
from .state import ArmedTimer, Arrive, Deleting, Member, Operation, Replaced
from .work import Work


def list_again(otherwise: Callable[[OpenGroups, str], None], work: OpenGroups, group_id: str) -> None:
    """Note that the next record removes the group object, for it returns beside itself if the append fails (C-ADM-05).
    Call this before adding its committed view."""
    since = max([each.behind for each in work.committed_views if each.group_id == group_id and each.entry], default=0)
    work.relisted |= {Removed(work.undurable, group_id, since)}


def describe_again(
    otherwise: Callable[[OpenGroups, str, ConsumerGroup, Iterable[Record]], frozenset[str]],
    work: OpenGroups,
    group_id: str,
    old: ConsumerGroup,
    records: Iterable[Record],
) -> frozenset[str]:
    """Note that the next record exchanges members of a group, for they return beside the new ones if the append fails
    (M-DESC-01). Returns those whose exchange can ever show."""
    members = exchanged(old, records)
    work.doubled |= {(work.undurable, group_id, member_id) for member_id in members}
    return members


def choose_order(
    otherwise: Callable[[Mapping[str, object], Chooser], list[str]], groups: Mapping[str, object], chooser: Chooser
) -> list[str]:
    """Choose an order, that of a map. It shows if a timer of one group has the key of another group's timer: then the
    one armed later stays (C-TMR-11)."""
    found: list[str] = []
    left = otherwise(groups, chooser)
    while left:
        exist = [each for each in left if groups[each] is not None]
        meeting = [each for each in exist if any(_meet(each, other) for other in exist)]
        found.append(chooser.pick("armed first", meeting) if meeting else left[0])
        left.remove(found[-1])
    return found


def _meet(one: str, other: str) -> bool:
    """Return whether a timer of one group may have the key of a timer of the other."""
    return one.startswith(f"{other}-") or other.startswith(f"{one}-")


def cancel_same_keys(otherwise: Callable[[OpenGroups], list[ArmedTimer]], work: OpenGroups) -> list[ArmedTimer]:
    """Before each command, cancel the other timers whose key is the same text (M-TMR-01)."""
    asked: list[ArmedTimer] = []
    for row in otherwise(work):
        mistaken = collisions.mistaken(row[0], row[1])
        if mistaken:
            work.rules.append("M-TMR-01")
        asked += [(group_id, timer, None) for group_id, timer in mistaken]
        asked.append(row)
    return asked


def every_record(
    otherwise: Callable[[tuple[Record, ...]], Iterable[Record]], log: tuple[Record, ...]
) -> Iterable[Record]:
    """Return every record, replaced by a later one or not (F-REPLAY-18)."""
    return log


def ask_share_groups(
    otherwise: Callable[[Work, Arrive, DeleteGroupsRequest], object],
    work: Work,
    request: Arrive,
    body: DeleteGroupsRequest,
) -> None:
    """Ask about share groups first, in a separate write operation, which may have to wait (C-ADM-09)."""
    if any(name not in request.denied for name in body.groups_names):
        work.submit(Operation(request.id, "", body, 0, callback=Deleting(request)), [])
    else:
        otherwise(work, request, body)


def drop_empty_group(
    otherwise: Callable[[Work, Arrive, JoinGroupRequest], None], work: Work, request: Arrive, body: JoinGroupRequest
) -> None:
    """Refuse, and drop an empty consumer group of that name from memory; the log keeps it (C-JOIN-15)."""
    otherwise(work, request, body)
    group = work.consumer_group(body.group_id)
    if group is not None:
        work.rules.append("C-JOIN-15")
        work.remove_without_record(body.group_id, group)


def spoil_support(
    otherwise: Callable[[Draft, Replaced, Member | None], None], d: Draft, callback: Replaced, member: Member | None
) -> None:
    """If the member was replaced in its turn, spoil the support counts instead: the undo swaps the protocols of a
    member that has left the group (C-STATIC-18)."""
    if member is not None and not callback.detached:
        otherwise(d, callback, member)
        return
    d.rule("C-STATIC-18")
    counts = dict(d.skew)
    for protocols, sign in ((callback.new_protocols, -1), (callback.old_protocols, 1)):
        for protocol in protocols:
            counts[protocol.name] = counts.get(protocol.name, 0) + sign
    d.skew = tuple(sorted((name, count) for name, count in counts.items() if count))


def forget_leaving_sync(otherwise: Callable[[Draft, Member], None], d: Draft, member: Member) -> None:
    """Leave the parked SyncGroup without an answer (C-LEAVE-24)."""
    if member.sync is not None:
        d.rule("C-LEAVE-24")
