"""The events of a group and its summary: the results of ``history_of``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

#: no time, as in a record without a timestamp
UNKNOWN_MS: Final = -1


class Place(NamedTuple):
    """A partition. ``topic``: its name, or the text of its id while no record has named it."""

    topic: str
    partition: int


class Kind(StrEnum):
    """What happened."""

    APPEARED = "group appeared"
    JOINED = "member joined"
    GONE = "member gone"
    AWAY = "static member left for a while"
    REPLACED = "static member replaced"
    CHANGED = "member changed"
    BEGAN = "rebalance began"
    SUPERSEDED = "rebalance superseded"
    ENDED = "rebalance ended"
    GENERATION = "new generation"
    MOVED = "partitions moved"
    EMPTY = "group empty"
    CONVERTED = "protocol changed"
    DELETED = "group deleted"
    COMMIT_BACK = "commit went back"
    OFFSETS_DELETED = "offset deleted"
    ABORTED = "transaction aborted"
    BREACH = "rule broken"


class Why(StrEnum):
    """The kind of a rebalance's cause, as far as the log shows it. The values are those of ``RebalanceReason`` where
    the meaning is the same."""

    JOINED = "member joined"
    GONE = "member left or was removed"
    FENCED = "rebalance timeout expired"
    REPLACED = "static member replaced"
    CHANGED = "member updated"
    TOPICS = "topics changed"
    REGEX = "regular expression matches other topics"
    SEVERAL = "several causes"
    UNKNOWN = "not in the log"


class Reason(NamedTuple):
    """A cause of a rebalance: its kind, and the whole of it in words."""

    why: Why
    text: str


class Move(NamedTuple):
    """A partition that changed hands; None: no member."""

    place: Place
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class Event:
    """One event in a group's life.

    ``at_ms``: the timestamp of its record, ``offset`` that record's offset. ``epoch``: the generation of a classic
    group, or the epoch of a consumer group. ``cause``: what the log says about why. ``duration_ms``: of a rebalance.
    ``rule``: the broken rule. ``details``: the rest of the sentence. ``why``: the kind of the cause of a rebalance,
    or of the reason for which a member is gone."""

    at_ms: int
    offset: int
    kind: Kind
    epoch: int | None = None
    members: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    duration_ms: int | None = None
    cause: str = ""
    rule: str = ""
    details: str = ""
    why: Why | None = None

    def as_json(self, names: dict[str, str]) -> dict[str, Any]:
        """Return the fields that are set."""
        row: dict[str, Any] = {"at_ms": self.at_ms, "offset": self.offset, "kind": self.kind.value}
        if self.moves:
            row["moves"] = [
                {"topic": names.get(each.place.topic, each.place.topic), "partition": each.place.partition,
                 "from": each.old, "to": each.new}
                for each in self.moves
            ]  # fmt: skip
        for name in ("epoch", "duration_ms"):
            if getattr(self, name) is not None:
                row[name] = getattr(self, name)
        if self.members:
            row["members"] = list(self.members)
        return row | {name: text for name in ("cause", "rule", "details") if (text := getattr(self, name))}


def kind_of(reasons: Iterable[Reason]) -> Why:
    """Return the kind that all reasons have."""
    kinds = {each.why for each in reasons}
    return kinds.pop() if len(kinds) == 1 else Why.SEVERAL if kinds else Why.UNKNOWN


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member at the end of the log. ``since_ms``: when it joined. ``classic``: it uses the classic protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    since_ms: int
    classic: bool
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class CommitRow:
    """The commits to one partition. ``offset`` None: deleted since. ``pause_ms``: the longest time between two commits.
    ``back``: commits below the one before; ``furthest``: the longest such step."""

    place: Place
    offset: int | None
    commits: int
    last_ms: int
    back: int
    furthest: int
    pause_ms: int


@dataclass(frozen=True, slots=True)
class Strip:
    """A time during which a member held a partition; ``end_ms`` None: until the end of the log."""

    place: Place
    member: str
    begin_ms: int
    end_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """The life of one group.

    ``epoch``: the generation or group epoch at the end. ``rebalance_ms``: time in rebalance, as far as the log shows
    it. ``left_out``: events before the first of ``events``. ``breaches``: broken rules, of which ``uncertain`` are in a
    part of the log from which records are missing."""

    group: str
    partition: int
    protocol: str
    state: str
    epoch: int | None
    records: int
    first_ms: int
    last_ms: int
    rebalances: int
    rebalance_ms: int
    longest_ms: int
    commits: int
    back: int
    aborted: int
    members: tuple[MemberRow, ...]
    offsets: tuple[CommitRow, ...]
    owners: tuple[tuple[Place, str], ...]
    events: tuple[Event, ...]
    left_out: int
    strips: tuple[Strip, ...]
    breaches: int
    uncertain: int

    def per_hour(self, span_ms: int) -> float:
        """Return the rebalances an hour in a log of this length; 0 for a log without a length."""
        return self.rebalances * 3_600_000 / span_ms if span_ms > 0 else 0.0

    def as_json(self, names: dict[str, str], span_ms: int) -> dict[str, Any]:
        """Return the group as JSON data."""
        apart = ("members", "offsets", "owners", "events", "strips")
        row: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name not in apart}
        row["rebalances_per_hour"] = round(self.per_hour(span_ms), 3)
        row["members"] = [{name: getattr(each, name) for name in MemberRow.__slots__} for each in self.members]
        row["offsets"] = [
            {"topic": names.get(each.place.topic, each.place.topic), "partition": each.place.partition}
            | {name: getattr(each, name) for name in CommitRow.__slots__ if name != "place"}
            for each in self.offsets
        ]
        row["owners"] = [
            {"topic": names.get(place.topic, place.topic), "partition": place.partition, "member": member}
            for place, member in self.owners
        ]
        row["events"] = [each.as_json(names) for each in self.events]
        return row


@dataclass(slots=True)
class LogFacts:
    """The state of a partition of the topic. ``first``: its first offset; ``missing``: offsets without a record after
    it, in ``gaps``; ``last_gap``: the offset after the last one. ``backwards``: timestamps below the one before,
    ``furthest_ms`` at most. ``unknown``: records by a reason why they are not part of the history."""

    partition: int
    records: int = 0
    first: int = -1
    last: int = -1
    begin_ms: int = UNKNOWN_MS
    end_ms: int = UNKNOWN_MS
    gaps: int = 0
    missing: int = 0
    last_gap: int = -1
    backwards: int = 0
    furthest_ms: int = 0
    unordered: int = 0
    unknown: dict[str, int] = field(default_factory=dict)


def skipped(count: int, reason: str) -> str:
    """Return the line for records that were skipped. ``reason``: a text that begins with ``records``."""
    if count == 1:
        reason = reason.replace("records", "record", 1).replace("which belong to", "which belongs to")
    return f"{count:,} {reason} {'was' if count == 1 else 'were'} skipped"


@dataclass(frozen=True, slots=True)
class History:
    """The groups of a log, worst first; ``names`` of topics by their ids."""

    groups: tuple[GroupHistory, ...]
    logs: tuple[LogFacts, ...]
    names: dict[str, str]

    @property
    def span_ms(self) -> int:
        """The time between the first and the last record."""
        begins = [each.begin_ms for each in self.logs if each.begin_ms != UNKNOWN_MS]
        ends = [each.end_ms for each in self.logs if each.end_ms != UNKNOWN_MS]
        return max(max(ends) - min(begins), 0) if begins and ends else 0

    @property
    def records(self) -> int:
        return sum(each.records for each in self.logs)
