"""A history as a self-contained HTML page: who held which partition, on an axis of time, then all events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...judge.history.events import UNKNOWN_MS, CommitRow, Event, GroupHistory, History, Kind, Place
from ..report.palette import COLOURS, swatch
from .terminal import broken
from .words import COLUMNS, lasting, named, notices, sentence, time_of

_NAMES, _WIDTH, _ROW, _BAR = 230, 900, 18, 13
_TICKS = 6
#: events in the table of a page; the terminal and --json have all
_LISTED = 5_000


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
    body = [notes, numbers, _strips(history, group), _commits(history, group), _events(history, group)]
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
    return _filter("group", names) + _table(COLUMNS, rows, texts=3, filtered=True)


def _filter(kind: str, names: Iterable[str]) -> str:
    """Return the controls that choose what is shown; the script fills them in. ``names``: of groups or members."""
    return f'<div class="tools filter" data-kind="{kind}" data-names="{_json(sorted(set(names)))}"></div>'


def _about(names: Iterable[str]) -> str:
    """Return the mark of a row or of a part of a picture that a filter may hide."""
    return f' data-about="{_json([*names])}"'


def _json(value: object) -> str:
    return escape(json.dumps(value, ensure_ascii=False), quote=True)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], texts: int, *, filtered: bool = False) -> str:
    """Return a table; the first ``texts`` columns are text, the others numbers. ``filtered``: the first column is the
    name by which a row is chosen."""
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(
        f"<tr{_about(row[:1]) if filtered else ''}>"
        + "".join(f"<td{'' if at < texts else ' class=n'}>{escape(cell)}</td>" for at, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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


def _events(history: History, group: GroupHistory) -> str:
    shown = group.events[-_LISTED:]
    left = group.left_out + len(group.events) - len(shown)
    first = {each.offset: at for at, each in reversed([*enumerate(shown)])}  # a record may cause several events
    rows = "".join(_event(each, history.names, linked=first[each.offset] == at) for at, each in enumerate(shown))
    before = f'<p class="dim">{left:,} earlier events are not on this page</p>' if left else ""
    return f"<h2>Events</h2>{before}<table style='overflow-wrap: anywhere'><tbody>{rows}</tbody></table>"


def _event(event: Event, names: Mapping[str, str], *, linked: bool) -> str:
    style = ' class="bad"' if event.kind in (Kind.BREACH, Kind.COMMIT_BACK, Kind.ABORTED) else ""
    mark = f' id="o{event.offset}"' if linked else ""
    return (
        f'<tr{mark}{_about(_members(event))}><td class="dim" style="white-space: nowrap">{time_of(event.at_ms)}</td>'
        f'<td class="n dim">{event.offset}</td>'
        f"<td{style}>{escape(sentence(event, names))}</td></tr>"
    )


def _members(event: Event) -> dict[str, None]:
    """Return the members that the event names, in order."""
    moved = (member for move in event.moves for member in (move.old, move.new) if member is not None)
    return dict.fromkeys((*event.members, *moved))


class _Axis:
    """The axis of time of a picture."""

    def __init__(self, begin_ms: int, end_ms: int) -> None:
        self.begin_ms = begin_ms
        self.span_ms = max(end_ms - begin_ms, 1)

    def x(self, at_ms: int) -> float:
        """Return the place of a time, within the picture."""
        share = min(max((at_ms - self.begin_ms) / self.span_ms, 0.0), 1.0)
        return round(_NAMES + share * _WIDTH, 1)


def _strips(history: History, group: GroupHistory) -> str:
    """Draw a strip for each partition: its owners, over the rebalances."""
    places = sorted({each.place for each in group.strips})
    if not places or group.first_ms == UNKNOWN_MS:
        return ""
    axis = _Axis(group.first_ms, group.last_ms)
    numbers: dict[str, int] = {}
    for each in group.strips:
        numbers.setdefault(each.member, len(numbers))
    height = 30 + _ROW * len(places)
    parts = [*_rebalances(group, axis, height), *_ticks(axis, height)]
    rows: dict[Place, int] = {place: 28 + _ROW * at for at, place in enumerate(places)}
    for place, y in rows.items():
        parts.append(f'<text x="0" y="{y + 11}" class="lane">{escape(named(place, history.names)[:36])}</text>')
        parts.append(f'<rect class="rail" x="{_NAMES}" y="{y}" width="{_WIDTH}" height="{_BAR}"/>')
    for each in group.strips:
        begin, end = axis.x(each.begin_ms), axis.x(group.last_ms if each.end_ms is None else each.end_ms)
        until = "the end of the log" if each.end_ms is None else time_of(each.end_ms)
        title = f"{named(each.place, history.names)}: {each.member}, {time_of(each.begin_ms)} to {until}"
        parts.append(
            f'<rect{_about([each.member])} class="m{numbers[each.member] % COLOURS}" '
            f'x="{begin}" y="{rows[each.place]}" '
            f'width="{max(round(end - begin, 1), 1)}" height="{_BAR}"><title>{escape(title)}</title></rect>'
        )
    legend = "".join(
        f'<span style="min-width: 0">{swatch(number)}{escape(member)}</span>' for member, number in numbers.items()
    )
    size = f'viewBox="0 0 {_NAMES + _WIDTH + 10} {height + 20}" width="{_NAMES + _WIDTH + 10}"'
    picture = f'<svg {size} role="group" aria-label="Owners of partitions over time">{"".join(parts)}</svg>'
    members = [*numbers, *(name for event in group.events for name in _members(event))]
    return (
        "<h2>Who held which partition</h2>"
        f'<div class="held">{_filter("member", members)}'
        f'<div class="legend" style="overflow-wrap: anywhere">{legend}'
        '<span class="dim">grey bands: rebalances</span></div>'
        f'<div class="picture">{picture}</div></div>'
    )


def _rebalances(group: GroupHistory, axis: _Axis, height: int) -> Iterable[str]:
    for event in group.events:
        if event.duration_ms is None or event.at_ms == UNKNOWN_MS:
            continue
        begin, end = axis.x(event.at_ms - event.duration_ms), axis.x(event.at_ms)
        title = f"rebalance to {event.epoch}: {lasting(event.duration_ms)}, until {time_of(event.at_ms)}"
        yield (
            f'<a href="#o{event.offset}" aria-label="{escape(title)}"><rect '
            f'fill="var(--line)" fill-opacity=".5" x="{begin}" y="22" '
            f'width="{max(round(end - begin, 1), 1.5)}" height="{height - 22}">'
            f"<title>{escape(title)}</title></rect></a>"
        )


def _ticks(axis: _Axis, height: int) -> Iterable[str]:
    yield f'<text class="dim" x="0" y="11">{time_of(axis.begin_ms).split(" ")[0]} (UTC)</text>'
    for number in range(_TICKS + 1):
        at_ms = axis.begin_ms + axis.span_ms * number // _TICKS
        x, anchor = axis.x(at_ms), "end" if number == _TICKS else "start" if number == 0 else "middle"
        text = time_of(at_ms).split(" ")[-1]
        yield f'<line class="life" x1="{x}" x2="{x}" y1="16" y2="{height}"/>'
        yield f'<text class="dim" x="{x}" y="11" text-anchor="{anchor}">{text}</text>'
