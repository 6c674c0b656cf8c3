"""All differences between two observations of one step, each as a path without names and numbers.

``difference.compare_step`` finds the first difference, to decide whether there is one. This module finds all, to show
what they have in common. Rows are matched by what they are about (a member, a topic, the kind of a record), not by
position, so that an additional record is one difference and does not shift all that follow.

Epochs and generations are shown by their distance from the group's own before the step, ``+1`` for the next one. So two
coordinators with different numbers differ once, where they begin to, and not in every later step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, Final

from fencepost.protocol import consumer_messages as cm
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as om
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView

from ...traces.observation import Observation
from .difference import show
from .normal import normal

#: bookkeeping: what a release may or may not keep beside its state. Such differences are reported, but they alone do
#: not set two groups apart: any consequences are reported where they show
BOOKKEEPING: Final = frozenset(
    {"metadata_hash", "assignment_epochs", "assignment_timestamp", "legacy_metadata", "refresh_deadline"}
)
_EPOCHS: Final = frozenset(
    {
        "generation_id",
        "generation",
        "epoch",
        "member_epoch",
        "previous_member_epoch",
        "assignment_epoch",
        "group_epoch",
        "assignment_epochs",
    }
)
_NEXT: Final = 2  # steps forward that are shown by their number
#: the field that identifies a row
_IDENTITY: Final = ("member_id", "group_id", "group", "topic_id", "topic_name", "regex", "name")
_API_OF_RESPONSE: Final = {
    m.JoinGroupResponse: "JoinGroup",
    m.SyncGroupResponse: "SyncGroup",
    m.HeartbeatResponse: "Heartbeat",
    m.LeaveGroupResponse: "LeaveGroup",
    m.DescribeGroupsResponse: "DescribeGroups",
    m.ListGroupsResponse: "ListGroups",
    m.DeleteGroupsResponse: "DeleteGroups",
    cm.ConsumerGroupHeartbeatResponse: "ConsumerGroupHeartbeat",
    cm.ConsumerGroupDescribeResponse: "ConsumerGroupDescribe",
    om.OffsetCommitResponse: "OffsetCommit",
    om.OffsetFetchResponse: "OffsetFetch",
    om.OffsetDeleteResponse: "OffsetDelete",
    om.TxnOffsetCommitResponse: "TxnOffsetCommit",
    om.WriteTxnMarkerResponse: "WriteTxnMarker",
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """One difference. ``group``: the id of its group, ``""`` if it has none; ``path`` without names and numbers;
    ``change``: its kind, such as ``+1->+2``; ``left`` and ``right``: both values as text."""

    group: str
    path: str
    change: str
    left: str
    right: str

    @property
    def kind(self) -> str:
        """Path and change."""
        return f"{self.path} {self.change}"

    @property
    def bookkeeping(self) -> bool:
        return any(name in self.path for name in BOOKKEEPING)

    @property
    def presence(self) -> bool:
        """Whether one side has something that the other lacks."""
        return self.change in _PRESENCE

    @property
    def rank(self) -> int:
        """Significance for the cause: rejections first, then records, then the rest."""
        if self.path.startswith("replies"):
            return 0 if self.path.endswith("error_code") else 2 if self.presence else 3
        return next((at for name, at in _RANKS.items() if self.path.startswith(name)), 9)


_PRESENCE: Final = ("missing", "extra")
_RANKS: Final = {"records": 1, "groups": 4, "consumer_groups": 5, "offsets": 6, "timers": 7, "tasks": 8}


@dataclass(frozen=True, slots=True)
class Seen:
    """One side of a step. ``bases``: the generation or group epoch of each group before it; ``asked``: the group of
    each open request."""

    observation: Observation
    bases: Mapping[str, int] = field(default_factory=dict)
    asked: Mapping[int, str] = field(default_factory=dict)
    about: str = ""  #: the group of the event


def base_of(view: GroupView | ConsumerGroupView) -> int:
    return view.generation_id if isinstance(view, GroupView) else view.group_epoch


def leaves(left: Seen, right: Seen) -> list[Leaf]:
    """Return all differences, the most significant first. Groups and timers that only one side reports count as removed
    on the other. So a caller that compares changes passes both sides' whole state of everything that either changed."""
    one, other = normal(left.observation), normal(right.observation)
    if one == other and left.bases == right.bases:
        return []
    found = [*_replies(left, right, one, other), *_records(left, right, one, other)]
    for name in ("groups", "consumer_groups"):
        views, others = getattr(one, name), getattr(other, name)
        for group in sorted({*views, *others}):
            found += differing(group, name, views.get(group), others.get(group), bases=_bases(left, right, group))
    found += differing(left.about, "offsets", one.offsets, other.offsets, bases=(0, 0))
    found += _timers(left, right, one, other)
    for key in sorted({*one.tasks} ^ {*other.tasks}, key=lambda key: key.group_id):
        change = "missing" if key in one.tasks else "extra"
        found.append(Leaf(key.group_id, f"tasks[{key.kind.value}]", change, *_there(change, key.kind.value)))
    return sorted(found, key=lambda leaf: leaf.rank)


def differing(group: str, path: str, left: Any, right: Any, *, bases: tuple[int, int]) -> list[Leaf]:
    """Return the differences of two views of a group, or of any two values; ``bases``: the origins of their epochs."""
    if left == right and bases[0] == bases[1]:
        return []
    if left is None or right is None:
        if left is right:
            return []
        change = "extra" if left is None else "missing"
        return [Leaf(group, path, change, *_there(change, show(right if left is None else left)))]
    return [Leaf(group, *parts) for parts in _walk(path, left, right, _Bases(*bases))]


def _bases(left: Seen, right: Seen, group: str) -> tuple[int, int]:
    return left.bases.get(group, 0), right.bases.get(group, 0)


def _there(change: str, text: str) -> tuple[str, str]:
    return (text, "(none)") if change == "missing" else ("(none)", text)


# --- parts of an observation -----------------------------------------------------------------------------------------


def _replies(left: Seen, right: Seen, one: Observation, other: Observation) -> Iterator[Leaf]:
    ours = {reply.request_id: reply.body for reply in one.replies}
    others = {reply.request_id: reply.body for reply in other.replies}
    for number in sorted({*ours, *others}):
        body, answer = ours.get(number), others.get(number)
        group = left.asked.get(number) or right.asked.get(number, "")
        api = _API_OF_RESPONSE[type(body if body is not None else answer)]
        path = f"replies[{api}]"
        if body is None or answer is None:
            change = "extra" if body is None else "missing"
            yield Leaf(group, path, change, *_there(change, show(body if answer is None else answer)))
            continue
        rows, answers = _rows_of(body), _rows_of(answer)
        if rows is None or answers is None:
            yield from differing(group, path, body, answer, bases=_bases(left, right, group))
            continue
        for name in sorted({*rows, *answers}):
            yield from differing(name, path, rows.get(name), answers.get(name), bases=_bases(left, right, name))


def _rows_of(body: m.ResponseBody) -> dict[str, Any] | None:
    """Return the rows of an answer about several groups, by group."""
    several = m.DescribeGroupsResponse | m.ListGroupsResponse | cm.ConsumerGroupDescribeResponse
    if isinstance(body, several | om.OffsetFetchResponse):
        return {row.group_id: row for row in body.groups}
    if isinstance(body, m.DeleteGroupsResponse):
        return {row.group_id: row for row in body.results}
    return None


def record_kind(record: Record) -> str:
    """Return ``GroupMetadata``, ``ConsumerGroupCurrentMemberAssignment`` …"""
    return type(record.key).__name__.removesuffix("Key")


def _records(left: Seen, right: Seen, one: Observation, other: Observation) -> Iterator[Leaf]:
    ours, others = _numbered(one.records), _numbered(other.records)
    same = True
    for key in [*ours, *(key for key in others if key not in ours)]:
        mine, theirs = ours.get(key), others.get(key)
        record = mine or theirs
        assert record is not None
        group, path = record.key.group, f"records[{record_kind(record)}]"
        if mine is None or theirs is None:
            same = False
            change = "extra" if mine is None else "missing"
            what = f"{path} tombstone" if record.value is None else path
            yield Leaf(group, what, change, *_there(change, show(record)))
        elif mine.value is None or theirs.value is None:
            if mine.value is not theirs.value:
                change = "tombstone->written" if mine.value is None else "written->tombstone"
                yield Leaf(group, path, change, show(mine.value), show(theirs.value))
        else:
            yield from differing(group, f"{path}.value", mine.value, theirs.value, bases=_bases(left, right, group))
    if same and list(ours) != list(others):
        yield Leaf(left.about, "records", "order", show(one.records), show(other.records))


def _numbered(records: Sequence[Record]) -> dict[Hashable, Record]:
    """Return records by key and index within that key."""
    numbered: dict[Hashable, Record] = {}
    for record in records:
        number = 0
        while (record.key, number) in numbered:
            number += 1
        numbered[record.key, number] = record
    return numbered


def _timers(left: Seen, right: Seen, one: Observation, other: Observation) -> Iterator[Leaf]:
    for key in sorted({*one.timers, *other.timers}, key=_timer_order):
        mine, theirs = one.timers.get(key), other.timers.get(key)
        if mine == theirs:
            continue
        group = left.about if key.kind is TimerKind.OPERATION else key.group_id
        change = "extra" if mine is None else "missing" if theirs is None else "moved"
        yield Leaf(group, f"timers[{key.kind.value}]", change, _deadline(mine), _deadline(theirs))


def _timer_order(key: TimerKey) -> tuple[str, str, str, int]:
    return key.kind.value, key.group_id, key.member_id, key.operation


def _deadline(at: int | None) -> str:
    return "(none)" if at is None else f"{at} ms"


# --- values ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Bases:
    left: int
    right: int


_Change = tuple[str, str, str, str]


def _walk(path: str, left: Any, right: Any, bases: _Bases, name: str = "") -> Iterator[_Change]:
    """Yield path, change and both values of all differences below ``path``; ``name``: of the field."""
    if name in _EPOCHS and isinstance(left, int) and isinstance(right, int):
        mine, theirs = _counted(left, bases.left), _counted(right, bases.right)
        if mine != theirs:
            yield path, _epoch_change(mine, theirs), show(left), show(right)
    elif is_dataclass(left) and type(left) is type(right):
        for each in fields(left):
            yield from _walk(
                f"{path}.{each.name}", getattr(left, each.name), getattr(right, each.name), bases, each.name
            )
    elif isinstance(left, tuple) and isinstance(right, tuple):
        yield from _rows(path, left, right, bases, name)
    elif left != right or type(left) is not type(right):
        yield path, _change(left, right, name), show(left), show(right)


def _counted(epoch: int, base: int) -> tuple[bool, int]:
    """Return (True, distance from the base), or (False, the number itself) for numbers that count nothing (0, -1,
    -2)."""
    return (True, epoch - base) if epoch > 0 else (False, epoch)


def _epoch_change(mine: tuple[bool, int], theirs: tuple[bool, int]) -> str:
    """Return both distances if they are steps forward; how far an epoch lags is random."""
    texts = [_in_words(*mine), _in_words(*theirs)]
    if texts[0] != texts[1]:
        return "->".join(texts)
    return "newer" if theirs > mine else "older"


def _in_words(counts: bool, number: int) -> str:
    if not counts:
        return str(number)
    return f"{number:+d}" if 0 <= number <= _NEXT else "old" if number < 0 else "far"


def _rows(path: str, left: tuple[Any, ...], right: tuple[Any, ...], bases: _Bases, name: str) -> Iterator[_Change]:
    if name == "refresh_deadline":
        if left[0] != right[0]:
            yield path, "moved", show(left), show(right)
        return
    one, other = _by_identity(left, name), _by_identity(right, name)
    if one is None or other is None:
        if name in _EPOCHS:
            left, right = (
                tuple(epoch - base for epoch in row) for row, base in ((left, bases.left), (right, bases.right))
            )
        if left != right:
            yield path, _set_change(left, right), show(left), show(right)
        return
    for key in [*one, *(key for key in other if key not in one)]:
        if key not in one or key not in other:
            change = "extra" if key not in one else "missing"
            yield f"{path}[]", change, *_there(change, show(one.get(key, other.get(key))))
        else:
            yield from _walk(f"{path}[]", one[key], other[key], bases, "epoch" if name == "partition_epochs" else "")
    if one.keys() == other.keys() and list(one) != list(other):
        yield path, "order", show(left), show(right)


def _by_identity(rows: tuple[Any, ...], name: str) -> dict[Hashable, Any] | None:
    """Return rows by what they are about; None if they do not say."""
    by_key: dict[Hashable, Any] = {}
    for row in rows:
        if name in ("target", "static_members"):
            key, value = row
        elif name == "partition_epochs":
            key, value = row[:2], row[2]
        elif is_dataclass(row):
            key, value = next((getattr(row, each) for each in _IDENTITY if hasattr(row, each)), None), row
        else:
            return None
        if key is None or key in by_key:
            return None
        by_key[key] = value
    return by_key


def _set_change(left: tuple[Any, ...], right: tuple[Any, ...]) -> str:
    try:
        one, other = set(left), set(right)
    except TypeError:
        return "differs"
    if one == other:
        return "order"
    return "fewer" if one > other else "more" if one < other else "differs"


def _change(left: Any, right: Any, name: str) -> str:
    """Return both values if they are words of the protocol; else the kind of difference."""
    if isinstance(left, frozenset) and isinstance(right, frozenset):
        return "fewer" if left > right else "more" if left < right else "differs"
    words = [_word(value, name) for value in (left, right)]
    if all(word is not None for word in words):
        return f"{words[0]}->{words[1]}"
    if left is None or right is None:
        return "null->set" if left is None else "set->null"
    if left in ("", b"", ()) or right in ("", b"", ()):
        return "empty->set" if not left else "set->empty"
    return "differs"


def _word(value: Any, name: str) -> str | None:
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if name.endswith("state") else None  # as records and answers show it
