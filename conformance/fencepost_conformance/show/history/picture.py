"""The picture of a history: a strip for each partition on an axis of time, with its owners, over the rebalances.

The axis is 900 units wide, so most of a thousand rebalances are too narrow to be seen. Narrow neighbours are drawn as
one: the number of elements depends on the number of partitions, not on the length of the history.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Final, NamedTuple

from ...common.counting import counted
from ...judge.history.events import UNKNOWN_MS, Event, GroupHistory, History, Place, Strip
from ..report.palette import COLOURS, swatch
from .filters import about, filter_of, members_of
from .words import lasting, named, time_of

_NAMES, _WIDTH, _ROW, _BAR = 230, 900, 18, 13
_TICKS = 6
#: narrower strips and bars are drawn together with their neighbours
_LEAST: Final = 1.5
#: the widest part that is drawn for several
_MOST: Final = 6
#: the class of such a part
_BRIEF: Final = "brief"
_TOO_SHORT: Final = " · dark: several owners, too short to draw each"
#: members in the legend; the others are in the titles of the strips, and in the filter
_LEGEND: Final = 20


class _Axis:
    """The axis of time of a picture."""

    def __init__(self, begin_ms: int, end_ms: int) -> None:
        self.begin_ms = begin_ms
        self.span_ms = max(end_ms - begin_ms, 1)

    def x(self, at_ms: int) -> float:
        """Return the place of a time, within the picture."""
        share = min(max((at_ms - self.begin_ms) / self.span_ms, 0.0), 1.0)
        return round(_NAMES + share * _WIDTH, 1)


def strips(history: History, group: GroupHistory, listed: Container[int]) -> str:
    """Draw a strip for each partition: its owners, over the rebalances. ``listed``: offsets of events on the page."""
    places = sorted({each.place for each in group.strips})
    if not places or group.first_ms == UNKNOWN_MS:
        return ""
    axis = _Axis(group.first_ms, group.last_ms)
    numbers: dict[str, int] = {}
    for each in group.strips:
        numbers.setdefault(each.member, len(numbers))
    height = 30 + _ROW * len(places)
    parts = [*_rebalances(group, axis, height, listed), *_ticks(axis, height)]
    rows: dict[Place, int] = {place: 28 + _ROW * at for at, place in enumerate(places)}
    for place, y in rows.items():
        parts.append(f'<text x="0" y="{y + 11}" class="lane">{escape(named(place, history.names)[:36])}</text>')
        parts.append(f'<rect class="rail" x="{_NAMES}" y="{y}" width="{_WIDTH}" height="{_BAR}"/>')
    in_order = sorted(group.strips, key=lambda each: (each.place, each.begin_ms))
    for place, owned in groupby(in_order, key=lambda each: each.place):
        parts += _owners(named(place, history.names), [*owned], axis, group.last_ms, rows[place], numbers)
    size = f'viewBox="0 0 {_NAMES + _WIDTH + 10} {height + 20}" width="{_NAMES + _WIDTH + 10}"'
    picture = f'<svg {size} role="group" aria-label="Owners of partitions over time">{"".join(parts)}</svg>'
    brief = f'class="{_BRIEF}"' in picture
    members = [*numbers, *(name for event in group.events for name in members_of(event))]
    return (
        "<h2>Who held which partition</h2>"
        f'<div class="held">{filter_of("member", members)}{_legend(numbers, brief=brief)}'
        f'<div class="picture">{picture}</div></div>'
    )


def _legend(numbers: Mapping[str, int], *, brief: bool) -> str:
    shown = "".join(
        f'<span style="min-width: 0">{swatch(number)}{escape(member)}</span>'
        for member, number in numbers.items()
        if number < _LEGEND
    )
    more = f"<span>and {counted(len(numbers) - _LEGEND, 'more members')}</span>" if len(numbers) > _LEGEND else ""
    return (
        f'<div class="legend" style="overflow-wrap: anywhere">{shown}{more}'
        f'<span class="dim">grey bands: rebalances{_TOO_SHORT if brief else ""}</span></div>'
    )


class _Span(NamedTuple):
    """Neighbours on the axis that are drawn as one: the first and the last, and where they begin and end."""

    begin: float
    end: float
    first: int
    last: int


def _spans(places: Sequence[tuple[float, float]]) -> Iterator[_Span]:
    """Yield the places from left to right; narrow ones without a visible gap are one span."""
    open_: _Span | None = None
    for at, (begin, end) in enumerate(places):
        narrow = end - begin < _LEAST
        if open_ is not None and narrow and begin - open_.end < 1 and end - open_.begin <= _MOST:
            open_ = open_._replace(end=max(end, open_.end), last=at)
            continue
        if open_ is not None:
            yield open_
        open_ = _Span(begin, end, at, at)
        if not narrow:
            yield open_
            open_ = None
    if open_ is not None:
        yield open_


def _owners(  # noqa: PLR0917
    name: str, owned: Sequence[Strip], axis: _Axis, last_ms: int, y: int, numbers: Mapping[str, int]
) -> Iterator[str]:
    """Draw the owners of one partition, which are in order of time."""
    places = [(axis.x(each.begin_ms), axis.x(last_ms if each.end_ms is None else each.end_ms)) for each in owned]
    for begin, end, first, last in _spans(places):
        here = owned[first : last + 1]
        until = "the end of the log" if here[-1].end_ms is None else time_of(here[-1].end_ms)
        one = here[0].member if first == last else counted(len(here), "owners")
        title = f"{name}: {one}, {time_of(here[0].begin_ms)} to {until}"
        members = dict.fromkeys(each.member for each in here)
        kind = f"m{numbers[here[0].member] % COLOURS}" if len(members) == 1 else _BRIEF
        yield (
            f'<rect{about(members)} class="{kind}" x="{begin}" y="{y}" width="{max(round(end - begin, 1), 1)}" '
            f'height="{_BAR}"><title>{escape(title)}</title></rect>'
        )


def _rebalances(group: GroupHistory, axis: _Axis, height: int, listed: Container[int]) -> Iterable[str]:
    """Draw a bar for each rebalance, with a link to its event if the page lists it."""
    ended = sorted(
        (each for each in group.events if each.duration_ms is not None and each.at_ms != UNKNOWN_MS),
        key=lambda each: each.at_ms - (each.duration_ms or 0),
    )
    for begin, end, first, last in _spans([(axis.x(e.at_ms - (e.duration_ms or 0)), axis.x(e.at_ms)) for e in ended]):
        here = ended[first : last + 1]
        title = _rebalance(here[0]) if first == last else _several(here)
        bar = (
            f'<rect fill="var(--line)" fill-opacity=".5" x="{begin}" y="22" '
            f'width="{max(round(end - begin, 1), _LEAST)}" height="{height - 22}"><title>{escape(title)}</title></rect>'
        )
        link = next((each.offset for each in here if each.offset in listed), None)
        yield bar if link is None else f'<a href="#o{link}" aria-label="{escape(title)}">{bar}</a>'


def _rebalance(event: Event) -> str:
    return f"rebalance to {event.epoch}: {lasting(event.duration_ms or 0)}, until {time_of(event.at_ms)}"


def _several(ended: Sequence[Event]) -> str:
    longest = max(each.duration_ms or 0 for each in ended)
    return (
        f"{counted(len(ended), 'rebalances')} to {ended[0].epoch} … {ended[-1].epoch}: the longest {lasting(longest)}, "
        f"until {time_of(ended[-1].at_ms)}"
    )


def _ticks(axis: _Axis, height: int) -> Iterable[str]:
    yield f'<text class="dim" x="0" y="11">{time_of(axis.begin_ms).split(" ")[0]} (UTC)</text>'
    for number in range(_TICKS + 1):
        at_ms = axis.begin_ms + axis.span_ms * number // _TICKS
        x, anchor = axis.x(at_ms), "end" if number == _TICKS else "start" if number == 0 else "middle"
        text = time_of(at_ms).split(" ")[-1]
        yield f'<line class="life" x1="{x}" x2="{x}" y1="16" y2="{height}"/>'
        yield f'<text class="dim" x="{x}" y="11" text-anchor="{anchor}">{text}</text>'
