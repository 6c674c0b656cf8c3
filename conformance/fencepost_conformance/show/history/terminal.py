"""A history on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.text import Text

from fencepost_server.observe.logs import one_line

from ...judge.history.events import GroupHistory, History, Kind
from ..listing import Listing
from .words import COLUMNS, cell, lasting, named, notices, sentence, time_of

#: groups that are listed; of the rest only the number
_LISTED = 50
_STYLES = {
    Kind.BREACH: "red",
    Kind.COMMIT_BACK: "yellow",
    Kind.ABORTED: "yellow",
    Kind.BEGAN: "bold",
    Kind.GENERATION: "bold",
}


def overview(history: History, unread: Sequence[str]) -> Iterator[RenderableType]:
    """Yield all groups as a table, worst first, and what could not be read."""
    listing = Listing(COLUMNS, title="Groups, worst first", numbers=frozenset(COLUMNS[3:]))
    span = history.span_ms
    for each in history.groups[:_LISTED]:
        listing.add(
            cell(each.group),
            each.protocol,
            each.state,
            f"{len(each.members):,}",
            f"{each.rebalances:,}",
            f"{each.per_hour(span):,.1f}" if span else "",
            lasting(each.rebalance_ms),
            f"{each.commits:,}",
            f"{each.back:,}",
            broken(each),
        )
    if len(history.groups) > _LISTED:
        listing.caption = f"and {len(history.groups) - _LISTED:,} more groups (--json has all)"
    yield listing
    yield from _unread(history, unread)


def broken(group: GroupHistory) -> str:
    """Return the number of broken rules, and how many of them may come from missing records."""
    if not group.uncertain:
        return f"{group.breaches:,}"
    return f"{group.breaches:,} ({group.uncertain:,} uncertain)"


def stories(history: History, unread: Sequence[str]) -> Iterator[RenderableType]:
    """Yield the life of a group, in each partition that has records of it, and what could not be read."""
    for group in history.groups:
        if len(history.groups) > 1:
            yield Text(f"partition {group.partition}", style="bold")
        yield from story(group, history.names)
    yield from _unread(history, unread)


def story(group: GroupHistory, names: Mapping[str, str]) -> Iterator[RenderableType]:
    """Yield the life of a group: its events, its members, its commits."""
    if group.left_out:
        yield Text(f"{group.left_out:,} earlier events are not shown", style="dim")
    for event in group.events:
        line = Text.assemble((f"{time_of(event.at_ms)}  ", "dim"), (f"{event.offset:>7}  ", "dim"))
        line.append(one_line(sentence(event, names)), style=_STYLES.get(event.kind, ""))
        yield line
    if group.members:
        listing = Listing(("member", "instance", "client", "host", "since", "partitions"), title="Members at the end")
        for member in group.members:
            held = ", ".join(named(place, names) for place, owner in group.owners if owner == member.member_id)
            cells = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
            listing.add(*map(cell, cells), time_of(member.since_ms), cell(held))
        yield listing
    if group.offsets:
        columns = ("partition", "offset", "commits", "last", "went back", "by up to", "longest pause")
        listing = Listing(columns, title="Committed offsets", numbers=frozenset(columns) - {"partition", "last"})
        for row in group.offsets:
            listing.add(
                cell(named(row.place, names)),
                "deleted" if row.offset is None else f"{row.offset:,}",
                f"{row.commits:,}",
                time_of(row.last_ms),
                f"{row.back:,}",
                f"{row.furthest:,}",
                lasting(row.pause_ms),
            )
        yield listing
    if group.uncertain:
        yield Text(f"{group.uncertain:,} broken rules may come from records that are missing before them")


def _unread(history: History, unread: Sequence[str]) -> Iterator[RenderableType]:
    for line in [*unread, *notices(history)]:
        yield Text(f"note: {line}", style="yellow")
