"""``fencepost findings``: which known fault is in which release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from .. import repository
from ..console import CannotRun, Result, finish, progress
from ..findings.catalogue import FINDINGS, Finding
from ..findings.judge import Judged, Verdict
from ..findings.run import RELEASES, judge_all, opened
from ..findings.table import MARKS, Pinned, Tickets, as_markdown, changed, read_pinned, read_tickets, write_pinned
from ..nearest import unknown

_STYLES: Final = {Verdict.PRESENT: "red", Verdict.GONE: "green", Verdict.DIFFERENT: "yellow"}


def findings(
    names: Annotated[list[str] | None, typer.Argument(help="which findings; all if none is named")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="kafka:RELEASE or core:PROFILE, also several times; default: every release that is pinned"),
    ] = None,
    pin: Annotated[bool, typer.Option(help="write the verdicts as those that the releases are held to")] = False,
    markdown: Annotated[bool, typer.Option(help="print the table of docs/findings.md, from what is pinned")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Play each known fault of Kafka's on each release, and judge by the promise that it breaks if it is there."""
    folder = repository.root() / "docs" / "findings"
    chosen = _chosen(names or [])
    tickets = read_tickets(folder)
    pinned = read_pinned(folder)
    if markdown:
        print(as_markdown(chosen, pinned, tickets))
        raise typer.Exit(0)
    targets = list(dict.fromkeys(target or [f"kafka:{release}" for release in RELEASES]))
    if pin and names:
        raise CannotRun("a release is pinned with all findings; leave out their names")
    found = _played(chosen, folder, targets)
    if pin:
        pinned = {
            name.removeprefix("kafka:"): {key: row.verdict for key, row in rows.items()} for name, rows in found.items()
        }
        write_pinned(folder, {release: pinned[release] for release in RELEASES if release in pinned})
    releases = {name: name.removeprefix("kafka:") for name in targets}
    other = {name: changed(pinned[releases[name]], rows) for name, rows in found.items() if releases[name] in pinned}
    result = _result(chosen, found, other, pinned, tickets)
    shown = Group(_table(chosen, found, other, tickets), *_notes(found, other, pinned, told=bool(names)))
    finish(result, as_json=as_json, table=shown)


def _chosen(names: list[str]) -> list[Finding]:
    by_name = {each.name: each for each in FINDINGS}
    for name in names:
        if name not in by_name:
            raise CannotRun(unknown("finding", name, by_name, "docs/findings.md lists them"))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def _played(chosen: list[Finding], folder: Path, targets: list[str]) -> dict[str, dict[str, Judged]]:
    found: dict[str, dict[str, Judged]] = {}
    with progress("findings") as meter:
        for name in targets:
            meter.update(description=name)
            with opened(name) as run:
                found[name] = judge_all(chosen, folder, run, told=meter.advance)
    return found


def _result(
    chosen: list[Finding],
    found: dict[str, dict[str, Judged]],
    other: dict[str, list[str]],
    pinned: Pinned,
    tickets: Tickets,
) -> Result:
    verdicts = [row.verdict for rows in found.values() for row in rows.values()]
    counts: dict[str, int | float] = {"findings": len(chosen), "targets": len(found)}
    counts |= {each.value: verdicts.count(each) for each in Verdict}
    counts["changed"] = sum(map(len, other.values()))
    rows: list[dict[str, Any]] = []
    for each in chosen:
        told = {name: {"verdict": by[each.name].verdict.value, "why": by[each.name].why} for name, by in found.items()}
        public = tickets.of(each.name)
        rows.append(
            {
                "name": each.name,
                "trace": f"docs/findings/{each.path}.jsonl",
                **public.model_dump(),
                "verdicts": told,
            }
        )
    details = {
        "findings": rows,
        "looked_up": tickets.looked_up,
        "changed": [
            {"target": name, "finding": key, "pinned": pinned[name.removeprefix("kafka:")].get(key),
             "verdict": found[name][key].verdict.value}
            for name, keys in other.items() for key in keys
        ],
        "not_pinned": [name for name in found if name not in other],
    }  # fmt: skip
    return Result("findings", not any(other.values()), counts, details)


def _table(
    chosen: list[Finding], found: dict[str, dict[str, Judged]], other: dict[str, list[str]], tickets: Tickets
) -> Table:
    columns = [Column(name.removeprefix("kafka:"), justify="center") for name in found]
    table = Table(Column("finding", no_wrap=True), *columns, Column("public", no_wrap=True), box=None)
    for each in chosen:
        cells = []
        for name, rows in found.items():
            verdict = rows[each.name].verdict
            mark = MARKS[verdict] + ("!" if each.name in other.get(name, ()) else "")
            cells.append(Text(mark, style=_STYLES[verdict]))
        table.add_row(each.name, *cells, tickets.of(each.name).words)
    return table


def _notes(
    found: dict[str, dict[str, Judged]], other: dict[str, list[str]], pinned: Pinned, *, told: bool
) -> list[RenderableType]:
    """What the marks mean; why, where findings are named or not as pinned or could not be judged."""
    notes = [Text(f"\n{', '.join(f'{mark} {verdict.value}' for verdict, mark in MARKS.items())}", style="dim")]
    for name, rows in found.items():
        for key, row in rows.items():
            expected = pinned.get(name.removeprefix("kafka:"), {}).get(key)
            if key in other.get(name, ()):
                was = expected.value if expected else "nothing"
                notes.append(Text(f"{name} {key}: {row.verdict.value}, pinned {was}. {row.why}", style="red"))
            elif row.why and (told or (row.verdict is Verdict.DIFFERENT and name not in other)):
                notes.append(Text(f"{name} {key}: {row.why}"))
        if name not in other:
            notes.append(Text(f"{name}: nothing is pinned to hold it to"))
    return list(notes)
