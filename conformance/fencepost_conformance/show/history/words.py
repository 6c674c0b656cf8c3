"""The sentences of a history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.markup import escape

from fencepost_server.observe.logs import one_line

from ...common.counting import counted
from ...judge.history.events import Event, History, Kind, LogFacts, Move, Place, skipped
from ...traces.offsets_log.dump import iso

#: partitions of one move that are listed; of the rest only the number
_LISTED = 12
#: of the table of all groups; three columns of text, then numbers
COLUMNS = (
    "group",
    "protocol",
    "state",
    "members",
    "rebalances",
    "an hour",
    "in rebalance",
    "commits",
    "went back",
    "rules broken",
)


def cell(text: str) -> str:
    """Return text of clients as a cell of a table: without control characters and markup."""
    return escape(one_line(text))


def time_of(at_ms: int) -> str:
    """Return a time in UTC, without the date's separators of ISO 8601."""
    return (iso(at_ms) or "(no time)").replace("T", " ").rstrip("Z")


def lasting(ms: int) -> str:
    """Return a duration in the unit that fits."""
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 120_000:
        return f"{ms / 1_000:.1f} s"
    return f"{ms / 60_000:.1f} min" if ms < 7_200_000 else f"{ms / 3_600_000:.1f} h"


def named(place: Place, names: Mapping[str, str]) -> str:
    """Return a partition by the name of its topic, if that is known."""
    return f"{names.get(place.topic, place.topic)}-{place.partition}"


def sentence(event: Event, names: Mapping[str, str]) -> str:
    """Return an event in words."""
    epoch = "" if event.epoch is None else f" {event.epoch}"
    took = "" if event.duration_ms is None else lasting(event.duration_ms)
    who = ", ".join(event.members)
    match event.kind:
        case Kind.APPEARED:
            return "first record of the group"
        case Kind.JOINED:
            return f"{who} joined ({event.details})"
        case Kind.GONE:
            return f"{who} {event.details}"
        case Kind.AWAY:
            return f"{who} left for a while; its partitions stay reserved for its instance"
        case Kind.REPLACED:
            return event.details
        case Kind.CHANGED:
            return f"{who} changed: {event.details}"
        case Kind.BEGAN:
            return f"rebalance to epoch{epoch} began: {event.cause}"
        case Kind.SUPERSEDED:
            return f"rebalance to epoch{epoch} superseded after {took}"
        case Kind.ENDED:
            return f"rebalance to epoch{epoch} ended after {took}: {event.details}"
        case Kind.GENERATION:
            assigned = f"; the assignment came {took} after all had joined" if took else ""
            return f"generation{epoch}: {event.cause}{assigned}; {event.details}"
        case Kind.MOVED:
            return moved(event.moves, names)
        case Kind.EMPTY:
            return f"the group is empty since generation{epoch}" + (f": {event.cause}" if event.cause else "")
        case Kind.CONVERTED:
            return f"the group changed its protocol: {event.details}"
        case Kind.DELETED:
            return "the group was deleted"
        case Kind.COMMIT_BACK:
            return f"commit of {named(event.moves[0].place, names)} went back {event.details}"
        case Kind.OFFSETS_DELETED:
            return f"the offset of {named(event.moves[0].place, names)} was deleted or expired"
        case Kind.ABORTED:
            return f"transaction aborted: {event.details}"
    return f"RULE BROKEN: {event.details} ({event.rule})"


def moved(moves: Iterable[Move], names: Mapping[str, str]) -> str:
    """Return moves of partitions in words, one part for each pair of members."""
    pairs: dict[tuple[str | None, str | None], list[str]] = {}
    for each in moves:
        pairs.setdefault((each.old, each.new), []).append(named(each.place, names))
    parts = []
    for (old, new), places in pairs.items():
        some = ", ".join(places[:_LISTED])
        if len(places) > _LISTED:
            some += f" and {len(places) - _LISTED} more"
        if old is None:
            parts.append(f"{new} took {some}")
        elif new is None:
            parts.append(f"{old} gave up {some}")
        else:
            parts.append(f"{some} moved from {old} to {new}")
    return "; ".join(parts)


def notices(history: History) -> list[str]:
    """Return what the log lacks or contradicts, a sentence each."""
    places: dict[str, list[int]] = {}
    for group in history.groups:
        places.setdefault(group.group, []).append(group.partition)
    lines = [
        f"group {name!r} has records in partitions {' and '.join(map(str, sorted(numbers)))}; each partition has "
        "its own history"
        for name, numbers in places.items()
        if len(numbers) > 1
    ]
    for facts in history.logs:
        lines += [f"partition {facts.partition}: {line}" for line in _about(facts)]
    return lines


def _about(facts: LogFacts) -> Iterable[str]:
    if facts.first > 0:
        yield f"the log begins at offset {facts.first:,}; what happened before is not in it"
    if facts.gaps:
        lacks = counted(facts.missing, "records")
        yield f"{lacks} are missing, in {counted(facts.gaps, 'gaps')} up to offset {facts.last_gap:,}: it was compacted"
    if facts.backwards:
        times = counted(facts.backwards, "times")
        yield f"the clock ran back {times}, by up to {lasting(facts.furthest_ms)}; durations there are too short"
    if facts.unordered:
        yield f"{counted(facts.unordered, 'records')} are not in the order of their offsets, and were skipped"
    for reason, count in facts.unknown.items():
        yield skipped(count, reason)
