"""The matrix as a self-contained page, with an exchange for each cell that failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from fencepost_server.look.made import Made
from fencepost_server.look.page import page

from ...judge.cases.answers import Exchange
from ...show.report.cases import exchange_lines
from .pages import PAGE, TITLES, anchor, cells
from .results import Row, columns
from .verdicts import entry_for

_LINK: Final = re.compile(rf"\[([^\]]*)\]\({re.escape(PAGE)}#([^)]*)\)")
#: whole words in the cells; the table scrolls in its frame
_STYLE: Final = ".rows td { overflow-wrap: break-word; } .rows td:nth-child(3) { white-space: nowrap; }"
_NUMBER: Final = re.compile(r"^\d+")


def html(rows: Sequence[Row], made: Made) -> str:
    """Return the page. ``made``: what its foot says."""
    parts: list[str] = []
    for kind, title in TITLES.items():
        known = [row for row in rows if row.subject.kind == kind and row.known]
        families = columns(known)
        if known:
            table = "".join(_table(kind, known, families))
            wide = f'<div class="wide" tabindex="0" role="region" aria-label="{title}">'
            parts.append(f'<h2>{title}</h2>{wide}<table class="rows">{table}</table></div>')
    parts += [f"<p>Not run: {escape(row.subject.name)}: {escape(row.why)}</p>" for row in rows if not row.known]
    parts.append("<h2>Shortest exchange of each cell that failed</h2>")
    for row in rows:
        if row.earlier is not None:
            parts += row.earlier.sections.values()
        for name in row.families():
            if (case := row.shortest(name)) is not None:
                parts += _failure(row, name, case)
    return page("Fencepost: matrix of brokers and clients", "\n".join(parts), made, style=_STYLE)


def _table(kind: str, rows: Sequence[Row], families: Sequence[str]) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{escape(each)}</th>' for each in (kind, "version", "date", *families))
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        name, *others = row.head
        squares = cells(row)
        own = "".join(f"<td>{escape(each)}</td>" for each in others)
        yield f'<tr><th scope="row">{escape(name)}</th>{own}'
        yield from (f"<td>{_html(squares.get(family, ''))}</td>" for family in families)
        yield "</tr>"
    yield "</tbody>"


def _html(cell: str) -> str:
    """Return a cell of the Markdown as HTML: the number of cases that passed in green, links as links."""
    linked = _LINK.sub(r'<a href="#\2">\1</a>', escape(cell))
    return _NUMBER.sub(lambda found: f'<b class="{"good" if found[0] != "0" else "dim"}">{found[0]}</b>', linked)


def _failure(row: Row, family: str, case: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(anchor(row, family))}">{escape(row.subject.name)}: {escape(case["case"])}</h3>'
    yield f'<p>{escape(case["text"])}</p><p class="note">{escape(case["why"])} ({escape(", ".join(case["rules"]))})</p>'
    yield "<ul>"
    for each in row.odd(family):
        found = entry_for(row.entries, each["case"], each.get("why", ""))
        why = "" if found is None else f": {found.why}"
        link = f' <a href="{escape(found.ticket)}">{escape(found.ticket)}</a>' if found and found.ticket else ""
        yield f"<li>{escape(each['case'])}: {escape(row.verdict(each))}{escape(why)}{link}</li>"
    yield "</ul>"
    lines = "\n".join(line for each in case.get("exchanges", ()) for line in _lines(each))
    yield f'<pre tabindex="0">{escape(lines)}</pre>'


def _lines(exchange: Mapping[str, Any]) -> Iterable[str]:
    """Return a request and its answer, as ``cases.json`` has them, in two lines."""
    return exchange_lines(
        Exchange(
            0,
            exchange["client"],
            exchange["api"],
            exchange["version"],
            exchange["request"],
            exchange["answer"],
            exchange["at_s"],
            exchange["took_s"],
        )
    )
