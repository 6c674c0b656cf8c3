"""The board of a running cluster on the terminal: a table of groups, details, the last events, and notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text

from fencepost_server.observe.logs import one_line

from ...judge.watch.board import REBALANCING, Board, WatchedGroup
from ...judge.watch.rebalances import Happened, described
from ..history.words import cell, lasting, sentence, time_of
from ..listing import Listing

#: groups of the table, groups with details, partitions of a group, and events
_GROUPS: Final = 40
_DETAILS: Final = 10
_OFFSETS: Final = 30
_EVENTS: Final = 12
_COLUMNS: Final = (
    "group", "kind", "state", "for", "epoch", "members", "lag", "rebalances", "in rebalance", "commits", "went back",
    "last cause",
)  # fmt: skip
_NUMBERS: Final = frozenset(_COLUMNS) - {"group", "kind", "state", "last cause"}


def shown(board: Board, now_s: float, now_ms: int, title: str) -> RenderableType:
    """Return the whole board."""
    groups = board.groups(now_s)
    head = Text.assemble((title, "bold"), (f"  {time_of(now_ms)} UTC  ", "dim"), board.summary())
    names = board.names
    parts: list[RenderableType] = [
        head,
        *(Text(one_line(f"note: {line}"), style="yellow") for line in board.warnings()),
    ]
    parts.append(_table(groups))
    for row in groups[:_DETAILS]:
        parts += _details(row)
    events = described(board.rebalances.events(3 * _EVENTS))[:_EVENTS]
    if events:
        parts += [Text("Last events", style="bold"), *(Text(line_of(each, names)) for each in events)]
    return Group(*parts)


def line_of(happened: Happened, names: Mapping[str, str]) -> str:
    """Return an event in a line. ``names``: of topics by their ids."""
    event = happened.event
    words = event if isinstance(event, str) else sentence(event, names)
    return one_line("  ".join(each for each in (time_of(happened.at_ms), happened.group, words) if each))


def _table(groups: Sequence[WatchedGroup]) -> Listing:
    listing = Listing(_COLUMNS, title="Groups", numbers=_NUMBERS)
    for row in groups[:_GROUPS]:
        last = row.get("last")
        cells: Iterable[Any] = (
            row["group"],
            row["type"],
            row["state"],
            lasting(int(row["for_s"]) * 1_000),
            _epoch(row),
            f"{len(row['members']):,}",
            f"{row['lag']:,}",
            _number(row, "rebalances"),
            lasting(row["rebalance_ms"]) if "rebalance_ms" in row else "",
            _number(row, "commits"),
            _number(row, "back"),
            "" if last is None else last.cause or last.reason,
        )
        style = "[red]" if row["state"] in REBALANCING else ""
        listing.add(*(f"{style if at == 2 else ''}{cell(str(each))}" for at, each in enumerate(cells)))
    if len(groups) > _GROUPS:
        listing.caption = f"and {len(groups) - _GROUPS:,} more groups (--status has a page with all)"
    return listing


def _number(row: Mapping[str, Any], name: str) -> str:
    return f"{row[name]:,}" if name in row else ""


def _epoch(row: WatchedGroup) -> str:
    number = row.get("epoch", row.get("generation"))
    return "" if number is None else str(number)


def _details(row: WatchedGroup) -> Iterator[RenderableType]:
    """Yield the members and the committed offsets of a group."""
    if row["members"]:
        leader = row.get("leader")
        title = cell(f"{row['group']}: members" + (f", leader {leader}" if leader else ""))
        listing = Listing(("member", "client", "host", "assigned", "to come"), title=title)
        for member in row["members"]:
            named = member["member"] + (f" ({member['instance']})" if member["instance"] else "")
            target = member.get("target")
            to_come = "" if target is None or target == member["assignment"] else _places(target)
            cells = (named, member["client"], member["host"], _places(member["assignment"]), to_come)
            listing.add(*map(cell, cells))
        yield listing
    if row["offsets"]:
        listing = Listing(
            ("partition", "committed", "end", "lag", "note"),
            title=cell(f"{row['group']}: committed offsets"),
            numbers=frozenset({"committed", "end", "lag"}),
        )
        for each in row["watched"][:_OFFSETS]:
            note = each["flag"] or (f"went back {each['back']} times" if each["back"] else "")
            place = f"{each['topic']}-{each['partition']}"
            listing.add(cell(place), f"{each['committed']:,}", f"{each['end']:,}", f"{each['lag']:,}", cell(note))
        if len(row["watched"]) > _OFFSETS:
            listing.caption = f"and {len(row['watched']) - _OFFSETS:,} more partitions"
        yield listing


def _places(assignment: Mapping[str, Sequence[int]]) -> str:
    return "; ".join(f"{topic} {','.join(map(str, partitions))}" for topic, partitions in sorted(assignment.items()))
