"""The matrix as Markdown, and as a self-contained page with an exchange for each cell that failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from fencepost_server.look.made import made_now
from fencepost_server.look.page import page

from .results import NOT_REACHED, NOT_SUPPORTED, PASSED, Row, columns
from .verdicts import KINDS, NOT_EXAMINED, Entry, entry_for

PAGE: Final = "matrix.html"
_TITLES: Final = {"broker": "Brokers", "client": "Clients"}
#: The text of a cell, beside the cases that passed.
_NAMED: Final = (NOT_EXAMINED, *KINDS.values(), NOT_REACHED, "known fault", NOT_SUPPORTED)
_INTRODUCTION: Final = """\
`make matrix` plays the named cases on each broker and with each client that is installed, and writes this page. A cell
has the number of cases that passed, and the number of the others. A cell with failures links to the shortest exchange
that failed.

| In a cell | Meaning |
|---|---|
| fault of the peer | the broker or client is wrong: see [what counts as a fault](peers.md#what-counts-as-a-fault) |
| allowed | the peer differs from Apache Kafka in a way that the protocol allows |
| unknown | the failure was examined, and its cause was not found |
| not examined | the failure has no verdict |
| not reached | an earlier step did not succeed; the list of failures below says why |
| known fault | a fault of Apache Kafka itself, which [findings.md](findings.md) lists |
| not supported | the peer lacks what the case needs |

The verdicts are in `conformance/peers/verdicts.toml`, each for the failures whose text it names.
"""


def _cell(counts: Counter[str]) -> tuple[str, str]:
    """The number of cases that passed, and the others."""
    others = ", ".join(f"{counts[each]} {each}" for each in _NAMED if counts[each])
    return str(counts[PASSED]), others


def anchor(row: Row, family: str) -> str:
    return f"{row.subject.key}-{family}"


def markdown(rows: Sequence[Row]) -> str:
    """Return the page of the documentation."""
    parts = ["# Matrix", "", _INTRODUCTION.rstrip()]
    for kind, title in _TITLES.items():
        of_kind = [row for row in rows if row.subject.kind == kind]
        ran = [row for row in of_kind if row.cases]
        families = columns(ran)
        parts += ["", f"## {title}"]
        if ran:
            parts += ["", f"| {kind} | version | date | {' | '.join(families)} |", "|---" * (3 + len(families)) + "|"]
        for row in ran:
            counted = row.families()
            cells = [_linked(row, name, counted.get(name, Counter())) for name in families]
            parts.append(f"| {row.subject.name} | {row.subject.version} | {row.date} | {' | '.join(cells)} |")
        absent = [
            f"- {row.subject.name} {row.subject.version}".rstrip() + f": {row.why}" for row in of_kind if not row.cases
        ]
        parts += ["", "Not in this table:", "", *absent] if absent else []
        told = [line for row in ran for line in _examined(row)]
        if told:
            parts += ["", f"### Failures of {title.lower()}", ""]
            parts += [
                f"| {kind} | cases | verdict | what | beside Kafka | ticket |",
                "|---|---|---|---|---|---|",
                *told,
            ]
        old = [f"- {row.subject.key}: {', '.join(row.stale())}" for row in ran if row.stale()]
        parts += ["", "Stale verdicts, whose cases no longer fail so:", "", *old] if old else []
    return "\n".join(parts) + "\n"


def _examined(row: Row) -> Iterator[str]:
    """A line for each verdict about the failures of a row, and one for those without."""
    together: dict[Entry | None, list[str]] = {}
    for each in row.odd():
        together.setdefault(entry_for(row.entries, each["case"], each.get("why", "")), []).append(each["case"])
    for entry, names in together.items():
        cases = ", ".join(f"`{name}`" for name in names)
        if entry is None:
            yield f"| {row.subject.name} | {cases} | {NOT_EXAMINED} |  |  |  |"
            continue
        ticket = f"[{entry.ticket.partition('//')[2]}]({entry.ticket})" if entry.ticket else ""
        why = entry.why.replace("|", "\\|")
        yield f"| {row.subject.name} | {cases} | {KINDS[entry.verdict]} | {why} | {entry.kafka} | {ticket} |"


def _linked(row: Row, family: str, counts: Counter[str]) -> str:
    if not counts:
        return ""
    passed, others = _cell(counts)
    if row.shortest(family) is not None:
        others = f"[{others}]({PAGE}#{anchor(row, family)})"
    return f"{passed}; {others}" if others else passed


def html(rows: Sequence[Row]) -> str:
    """Return the self-contained page."""
    parts: list[str] = []
    for kind, title in _TITLES.items():
        ran = [row for row in rows if row.subject.kind == kind and row.cases]
        families = columns(ran)
        if ran:
            parts.append(f"<h2>{title}</h2><table>{''.join(_html_rows(kind, ran, families))}</table>")
    parts += [f"<p>Not run: {escape(row.subject.name)}: {escape(row.why)}</p>" for row in rows if not row.cases]
    parts.append("<h2>Shortest exchange of each cell that failed</h2>")
    for row in rows:
        for name in row.families():
            if (case := row.shortest(name)) is not None:
                parts += _failure(row, name, case)
    return page("Fencepost: matrix of brokers and clients", "\n".join(parts), made_now("make matrix"))


def _html_rows(kind: str, ran: Sequence[Row], families: Sequence[str]) -> Iterator[str]:
    cells: Callable[[Iterable[str]], str] = lambda texts: "".join(f"<th>{escape(each)}</th>" for each in texts)  # noqa: E731
    yield f"<tr>{cells([kind, 'version', 'date', *families])}</tr>"
    for row in ran:
        counted = row.families()
        told = []
        for name in families:
            counts = counted.get(name, Counter())
            passed, others = _cell(counts) if counts else ("", "")
            if row.shortest(name) is not None:
                others = f'<a href="#{escape(anchor(row, name))}">{escape(others)}</a>'
            told.append(f"<td>{passed}{'; ' if others else ''}{others}</td>")
        subject = row.subject
        head = "".join(f"<td>{escape(each)}</td>" for each in (subject.name, subject.version, row.date))
        yield f"<tr>{head}{''.join(told)}</tr>"


def _failure(row: Row, family: str, case: Mapping[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(anchor(row, family))}">{escape(row.subject.name)}: {escape(case["case"])}</h3>'
    yield f"<p>{escape(case['text'])}</p><p><b>{escape(case['why'])}</b> ({escape(', '.join(case['rules']))})</p>"
    yield "<ul>"
    for each in row.odd(family):
        found = entry_for(row.entries, each["case"], each.get("why", ""))
        why = "" if found is None else f": {found.why}"
        link = f' <a href="{escape(found.ticket)}">{escape(found.ticket)}</a>' if found and found.ticket else ""
        yield f"<li>{escape(each['case'])}: {escape(row.verdict(each))}{escape(why)}{link}</li>"
    yield "</ul>"
    told = "\n".join(json.dumps(each, ensure_ascii=False) for each in case.get("exchanges", ()))
    yield f"<pre>{escape(told)}</pre>"
