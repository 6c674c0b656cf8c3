"""The matrix as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from .results import NOT_REACHED, NOT_SUPPORTED, PASSED, Row, columns
from .verdicts import KINDS, NOT_EXAMINED, Entry, entry_for

PAGE: Final = "matrix.html"
TITLES: Final = {"broker": "Brokers", "client": "Clients"}
#: The text of a cell, beside the cases that passed.
_NAMED: Final = (NOT_EXAMINED, *KINDS.values(), NOT_REACHED, "known fault", NOT_SUPPORTED)
_INTRODUCTION: Final = """\
`make matrix` plays the named cases on each broker and with each client that is installed, and writes this page. A cell
has the number of cases that passed, and the number of the others. A cell with failures links to the shortest exchange
that failed. The date of a row is that of its run: a row that the last run did not play keeps its results and its date.
A family that such a row does not have was added later.

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


def cell(counts: Counter[str]) -> tuple[str, str]:
    """Return the number of cases that passed, and the others in words."""
    others = ", ".join(f"{counts[each]} {each}" for each in _NAMED if counts[each])
    return str(counts[PASSED]), others


def anchor(row: Row, family: str) -> str:
    """Return the id of the exchange of a cell."""
    return f"{row.subject.key}-{family}"


def markdown(rows: Sequence[Row]) -> str:
    """Return the page of the documentation."""
    parts = ["# Matrix", "", _INTRODUCTION.rstrip()]
    for kind, title in TITLES.items():
        of_kind = [row for row in rows if row.subject.kind == kind]
        ran = [row for row in of_kind if row.known]
        families = columns(ran)
        parts += ["", f"## {title}"]
        if ran:
            parts += ["", f"| {kind} | version | date | {' | '.join(families)} |", "|---" * (3 + len(families)) + "|"]
        for row in ran:
            squares = cells(row)
            parts.append(f"| {' | '.join([*row.head, *(squares.get(name, '') for name in families)])} |")
        absent = [
            f"- {row.subject.name} {row.subject.version}".rstrip() + f": {row.why}" for row in of_kind if not row.known
        ]
        parts += ["", "Not in this table:", "", *absent] if absent else []
        examined = [line for row in ran for line in _examined(row)]
        if examined:
            parts += ["", f"### Failures of {title.lower()}", ""]
            parts += [
                f"| {kind} | cases | verdict | what | beside Kafka | ticket |",
                "|---|---|---|---|---|---|",
                *examined,
            ]
        old = [f"- {row.subject.key}: {', '.join(row.stale())}" for row in ran if row.stale()]
        parts += ["", "Stale verdicts, whose cases no longer fail so:", "", *old] if old else []
    return "\n".join(parts) + "\n"


def cells(row: Row) -> dict[str, str]:
    """Return the cells of a row by family, as Markdown."""
    if row.earlier is not None:
        return dict(row.earlier.cells)
    return {name: _linked(row, name, counts) for name, counts in row.families().items()}


def _examined(row: Row) -> Iterator[str]:
    """A line for each verdict about the failures of a row, and one for those without."""
    if row.earlier is not None:
        yield from row.earlier.failures
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
    passed, others = cell(counts)
    if row.shortest(family) is not None:
        others = f"[{others}]({PAGE}#{anchor(row, family)})"
    return f"{passed}; {others}" if others else passed
