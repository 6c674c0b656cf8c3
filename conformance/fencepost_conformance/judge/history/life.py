"""The life of one group, of either protocol: the part that both have, and the result."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, Protocol

from fencepost.protocol.consumer_records import ConsumerGroupCurrentMemberAssignmentValue

from .commits import Commits
from .events import UNKNOWN_MS, Event, GroupHistory, Kind, MemberRow, Move, Place, Reason, Strip, kind_of

#: events and strips of a group to keep: the last ones
KEPT: Final = 20_000
CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
OFFSETS_ONLY: Final = "offsets only"


class Listener(Protocol):
    """An observer of all groups while their records are read."""

    def event(self, life: Life, event: Event) -> None:
        """Take an event of a group."""

    def commits(self, life: Life, offsets: int) -> None:
        """Take a number of committed offsets of a group."""


@dataclass(slots=True)
class Rebalance:
    """A rebalance that has begun. ``begin_ms``: of this epoch; ``since_ms``: since the group was last at rest."""

    epoch: int
    begin_ms: int
    since_ms: int


@dataclass(slots=True)
class Gone:
    """A member whose records were removed, before it is known why."""

    row: MemberRow
    at_ms: int
    offset: int
    why: Reason

    @property
    def instance_id(self) -> str | None:
        return self.row.instance_id


@dataclass(slots=True)
class Life:
    """The state of one group while its records are read. ``keeps``: whether it keeps events and strips. ``listener``
    gets the events too. ``leader``: of a classic group.

    ``removed``: the protocol of the group that was removed with the last record, until the next record shows whether it
    was only converted. ``gone`` and ``dropped``: members, and holdings of members, that were removed since the last
    record that says why. ``converting``: the members whose first records only repeat what they were before a
    conversion; of these ``arrived`` have come along. ``converted``: no group epoch was written since. ``deduced``: the
    epochs are those of a member, since the group's own records are missing. ``reasons``: why the next group epoch
    begins. ``former``: the last owners of partitions without one; ``since``: when the owners got theirs."""

    group: str
    partition: int
    keeps: bool
    listener: Listener | None = None
    protocol: str = OFFSETS_ONLY
    state: str = ""
    epoch: int | None = None
    leader: str | None = None
    target_epoch: int | None = None
    members: dict[str, MemberRow] = field(default_factory=dict)
    topics: dict[str, tuple[object, ...]] = field(default_factory=dict)
    timeouts: dict[str, int] = field(default_factory=dict)
    targets: dict[str, frozenset[Place]] = field(default_factory=dict)
    current: dict[str, ConsumerGroupCurrentMemberAssignmentValue] = field(default_factory=dict)
    holdings: dict[str, frozenset[Place]] = field(default_factory=dict)
    revoking: dict[str, int] = field(default_factory=dict)
    behind: set[str] = field(default_factory=set)
    owners: dict[Place, str] = field(default_factory=dict)
    former: dict[Place, str] = field(default_factory=dict)
    since: dict[Place, int] = field(default_factory=dict)
    commits: Commits = field(default_factory=Commits)
    rebalance: Rebalance | None = None
    reasons: list[Reason] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)
    dropped: set[str] = field(default_factory=set)
    removed: str = ""
    converting: set[str] = field(default_factory=set)
    arrived: set[str] = field(default_factory=set)
    converted: bool = False
    deduced: bool = False
    regexes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    metadata_hash: int = 0
    last: int = -1
    records: int = 0
    first_ms: int = UNKNOWN_MS
    last_ms: int = UNKNOWN_MS
    rebalances: int = 0
    rebalance_ms: int = 0
    longest_ms: int = 0
    events: deque[Event] = field(default_factory=lambda: deque(maxlen=KEPT))
    strips: deque[Strip] = field(default_factory=lambda: deque(maxlen=KEPT))
    happened: int = 0
    breaches: list[int] = field(default_factory=list)
    broken: int = 0

    def add_event(self, event: Event) -> None:
        """Add an event."""
        self.happened += 1
        if event.kind is Kind.BREACH:
            self.broken += 1
            if len(self.breaches) < KEPT:
                self.breaches.append(event.offset)
        if self.keeps:
            self.events.append(event)
        if self.listener is not None:
            self.listener.event(self, event)

    def breach(self, at_ms: int, offset: int, rule: str, details: str) -> None:
        """Add a broken rule."""
        self.add_event(Event(at_ms, offset, Kind.BREACH, self.epoch, rule=rule, details=details))

    def touch(self, offset: int, at_ms: int) -> None:
        """Count a record."""
        self.records += 1
        if at_ms != UNKNOWN_MS:
            if self.first_ms == UNKNOWN_MS:
                self.first_ms = at_ms
            self.last_ms = at_ms
        if self.records == 1:
            self.add_event(Event(at_ms, offset, Kind.APPEARED))

    # who holds what

    def own(self, at_ms: int, offset: int, places: dict[Place, str], *, quiet: bool = False) -> None:
        """Replace the owners of all partitions, and add their events, unless ``quiet``."""
        moves = []
        for place in sorted({*places, *self.owners}):
            old, new = self.owners.get(place), places.get(place)
            if old != new:
                moves.append(Move(place, old, new))
        self._moved(at_ms, offset, moves, quiet=quiet)

    def hand_over(self, at_ms: int, offset: int, old: str, new: str) -> None:
        """Give all that a member holds to the one that replaced it."""
        places = self.holdings.pop(old, frozenset())
        if places:
            self.holdings[new] = places
        if old != new:
            self._moved(at_ms, offset, [Move(place, old, new) for place in sorted(places)])

    def hold(self, at_ms: int, offset: int, member_id: str, places: frozenset[Place], *, quiet: bool = False) -> None:
        """Replace the partitions that a member holds; report the moves, unless ``quiet``, and double holdings
        (INV-KIP-01)."""
        before = self.holdings.get(member_id, frozenset())
        if places:
            self.holdings[member_id] = places
        else:
            self.holdings.pop(member_id, None)
        if before == places:
            return
        moves = []
        for place in sorted(before - places):
            if self.owners.get(place) == member_id:
                moves.append(Move(place, member_id, None))
        twice = []
        for place in sorted(places - before):
            other = self.owners.get(place)
            if other is not None and other != member_id:
                twice.append((place, other))
            moves.append(Move(place, self.former.get(place) if other is None else other, member_id))
        self._moved(at_ms, offset, moves, quiet=quiet)
        for place, other in twice:
            said = f"{member_id} and {other} hold partition {place.partition} at the same time"
            self.breach(at_ms, offset, "INV-KIP-01", said)

    def _moved(self, at_ms: int, offset: int, moves: list[Move], *, quiet: bool = False) -> None:
        for place, _, new in moves:
            self._close(place, at_ms)
            if new is None:
                owner = self.owners.pop(place, None)
                if owner is not None:
                    self.former[place] = owner
            else:
                self.owners[place] = new
                self.former.pop(place, None)
                if self.keeps:
                    self.since[place] = at_ms
        if moves and not quiet:
            self.add_event(Event(at_ms, offset, Kind.MOVED, self.epoch, moves=tuple(moves)))

    def _close(self, place: Place, at_ms: int) -> None:
        begin = self.since.pop(place, None)
        if begin is not None:
            self.strips.append(Strip(place, self.owners[place], begin, max(at_ms, begin)))

    def let_go(self, at_ms: int) -> None:
        """Forget all owners, without moves: the group was converted or removed."""
        for place in list(self.owners):
            self._close(place, at_ms)
        self.owners.clear()
        self.former.clear()

    # rebalances

    def begins(self, at_ms: int, offset: int, epoch: int, reasons: list[Reason]) -> None:
        """Begin a rebalance for these reasons; one that is under way is superseded."""
        since = at_ms
        if self.rebalance is not None:
            since = self.rebalance.since_ms
            lasted = _lasted(self.rebalance.begin_ms, at_ms)
            self.add_event(Event(at_ms, offset, Kind.SUPERSEDED, self.rebalance.epoch, duration_ms=lasted))
        self.rebalance = Rebalance(epoch, at_ms, since)
        self.rebalances += 1
        cause = "; ".join(each.text for each in reasons) or "the log does not show why"
        self.add_event(Event(at_ms, offset, Kind.BEGAN, epoch, cause=cause, why=kind_of(reasons)))

    def ends(self, at_ms: int, offset: int, state: str) -> None:
        """End the rebalance under way, if there is one."""
        done, self.rebalance = self.rebalance, None
        self.state = state
        if done is None:
            return
        self.took(_lasted(done.since_ms, at_ms))
        duration = _lasted(done.begin_ms, at_ms)
        self.add_event(Event(at_ms, offset, Kind.ENDED, done.epoch, duration_ms=duration, details=state))

    def took(self, duration_ms: int) -> None:
        """Count the duration of a rebalance."""
        self.rebalance_ms += duration_ms
        self.longest_ms = max(self.longest_ms, duration_ms)

    # the result

    def done(self, last_gap: int) -> GroupHistory:
        """Return the history. ``last_gap``: the offset after the last gap of the log."""
        strips = [*self.strips]
        strips += [Strip(place, self.owners[place], begin, None) for place, begin in self.since.items()]
        rows = []
        for member_id, row in self.members.items():
            held = self.current.get(member_id)
            rows.append(
                row if held is None else MemberRow(*_identity(row), row.since_ms, row.classic, held.member_epoch)
            )
        return GroupHistory(
            group=self.group,
            partition=self.partition,
            protocol=self.protocol,
            state=self.state,
            epoch=self.epoch,
            records=self.records,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            rebalances=self.rebalances,
            rebalance_ms=self.rebalance_ms,
            longest_ms=self.longest_ms,
            commits=self.commits.total,
            back=self.commits.back,
            aborted=self.commits.aborted,
            members=tuple(sorted(rows, key=lambda row: row.member_id)),
            offsets=self.commits.rows(),
            owners=tuple(sorted(self.owners.items())),
            events=tuple(self.events),
            left_out=self.happened - len(self.events),
            strips=tuple(strips),
            breaches=self.broken,
            uncertain=sum(offset < last_gap for offset in self.breaches),
        )


def _identity(row: MemberRow) -> tuple[str, str | None, str, str]:
    return row.member_id, row.instance_id, row.client_id, row.client_host


def _lasted(begin_ms: int, end_ms: int) -> int:
    return max(end_ms - begin_ms, 0) if UNKNOWN_MS not in (begin_ms, end_ms) else 0
