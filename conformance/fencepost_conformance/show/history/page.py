"""A history as a self-contained HTML page: a picture of the owners of partitions, then the commits and the events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...judge.history.events import CommitRow, Event, GroupHistory, History, Kind
from .filters import about, filter_of, members_of
from .picture import strips
from .terminal import broken
from .words import COLUMNS, lasting, named, notices, sentence, time_of

#: events in the table of a page; the terminal and --json have all
_LISTED = 5_000
#: rows of each table of a page
_TOGETHER = 100


def history_page(history: History, group: GroupHistory | None, unread: Sequence[str], made: Made) -> str:
    """Return the page of one group, or with None the list of all. ``unread``: lines about records that could not be
    read."""
    notes = "".join(f'<div class="note">{escape(line)}</div>' for line in [*unread, *notices(history)])
    if group is None:
        return page("Consumer groups, worst first", f"{notes}{_overview(history)}", made)
    numbers = (
        f"<p>{escape(group.protocol)}, {escape(group.state)}, epoch {group.epoch}; {group.rebalances:,} rebalances, "
        f"{lasting(group.rebalance_ms)} in rebalance (longest {lasting(group.longest_ms)}); {group.commits:,} commits, "
        f"{group.back:,} went back; {broken(group)} broken rules</p>"
    )
    shown = group.events[-_LISTED:]
    picture = strips(history, group, {each.offset for each in shown})
    body = [notes, numbers, picture, _commits(history, group), _events(history, group, shown)]
    return page(f"History of group {group.group}", "\n".join(body), made)


def _overview(history: History) -> str:
    span = history.span_ms
    rows = (
        (
            each.group, each.protocol, each.state, f"{len(each.members):,}", f"{each.rebalances:,}",
            f"{each.per_hour(span):,.1f}", lasting(each.rebalance_ms), f"{each.commits:,}", f"{each.back:,}",
            broken(each),
        )
        for each in history.groups
    )  # fmt: skip
    names = [each.group for each in history.groups]
    columns = f'<colgroup><col class="name">{"<col>" * (len(COLUMNS) - 1)}</colgroup>'
    head = f"<table>{columns}<thead>{_heads(COLUMNS, texts=3)}</thead></table>"
    parts = _parts([_row(row, texts=3, about=about(row[:1])) for row in rows], columns)
    return f'{filter_of("group", names)}<div class="wide"><div class="groups">{head}{parts}</div></div>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int) -> str:
    """Return a table; the first ``texts`` columns are text, the others numbers."""
    body = "".join(_row(row, texts) for row in rows)
    return f"<table><thead>{_heads(heads, texts)}</thead><tbody>{body}</tbody></table>"


def _heads(heads: Sequence[str], texts: int) -> str:
    cells = (f"<th{'' if at < texts else ' class=n'}>{escape(each)}</th>" for at, each in enumerate(heads))
    return f"<tr>{''.join(cells)}</tr>"


def _row(row: Sequence[str], texts: int, about: str = "") -> str:
    cells = "".join(f"<td{'' if at < texts else ' class=n'}>{escape(cell)}</td>" for at, cell in enumerate(row))
    return f"<tr{about}>{cells}</tr>"


def _parts(rows: Sequence[str], columns: str) -> str:
    """Return the rows in tables of a hundred: a browser does not lay out a table that is far from the view."""
    return "".join(
        f'<div class="part"><table>{columns}<tbody>{"".join(rows[at : at + _TOGETHER])}</tbody></table></div>'
        for at in range(0, len(rows), _TOGETHER)
    )


def _commits(history: History, group: GroupHistory) -> str:
    if not group.offsets:
        return ""
    rows = (
        (
            named(row.place, history.names), time_of(row.last_ms), _offset(row),
            f"{row.commits:,}", f"{row.back:,}", f"{row.furthest:,}", lasting(row.pause_ms),
        )
        for row in group.offsets
    )  # fmt: skip
    heads = ("partition", "last commit", "offset", "commits", "went back", "by up to", "longest pause")
    return f"<h2>Committed offsets</h2>{_table(heads, rows, texts=2)}"


def _offset(row: CommitRow) -> str:
    return "deleted" if row.offset is None else f"{row.offset:,}"


def _events(history: History, group: GroupHistory, shown: Sequence[Event]) -> str:
    left = group.left_out + len(group.events) - len(shown)
    first = {each.offset: at for at, each in reversed([*enumerate(shown)])}  # a record may cause several events
    rows = [_event(each, history.names, linked=first[each.offset] == at) for at, each in enumerate(shown)]
    before = f'<p class="dim">{left:,} earlier events are not on this page</p>' if left else ""
    columns = '<colgroup><col class="time"><col class="offset"><col></colgroup>'
    return f"<h2>Events</h2>{before}{_parts(rows, columns)}"


def _event(event: Event, names: Mapping[str, str], *, linked: bool) -> str:
    style = ' class="bad"' if event.kind in (Kind.BREACH, Kind.COMMIT_BACK, Kind.ABORTED) else ""
    mark = f' id="o{event.offset}"' if linked else ""
    return (
        f'<tr{mark}{about(members_of(event))}><td class="dim">{time_of(event.at_ms)}</td>'
        f'<td class="n dim">{event.offset}</td>'
        f"<td{style}>{escape(sentence(event, names))}</td></tr>"
    )
