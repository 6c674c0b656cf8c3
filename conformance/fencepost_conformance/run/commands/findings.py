"""``fencepost findings``: which known Kafka bug is in which release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...common import repository
from ...common.counting import counted
from ...common.errors import CannotRun
from ...common.interruption import interruptible
from ...common.nearest import unknown
from ...judge.findings.catalogue import FINDINGS, Finding
from ...judge.findings.judge import Judged
from ...judge.findings.run import judge_all, opened
from ...judge.findings.table import Pinned, as_markdown, read_pinned, read_tickets, write_pinned
from ...show.console import finish, progress
from ...show.findings import Outcome, release_of
from ...targets.jvm.process import ProcessFault, in_a_line
from ...targets.jvm.releases import RELEASES


def findings(
    names: Annotated[list[str] | None, typer.Argument(help="names of findings; default: all")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="kafka:RELEASE, kafka:DIR or core:PROFILE; may be repeated (default: all pinned releases)"),
    ] = None,
    pin: Annotated[bool, typer.Option(help="store the verdicts; later runs are compared with them")] = False,
    markdown: Annotated[
        bool, typer.Option(help="print the table of docs/findings.md from the pinned verdicts")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Replay the trace of each known Kafka bug on each release, and report whether the bug is there."""
    folder = repository.root() / "docs" / "findings"
    chosen = _chosen(names or [])
    tickets = read_tickets(folder)
    pinned = read_pinned(folder)
    if markdown:
        print(as_markdown(chosen, pinned, tickets))
        raise typer.Exit(0)
    targets = list(dict.fromkeys(target or [f"kafka:{release}" for release in RELEASES]))
    if pin:
        _can_be_pinned(names or [], targets)
    found: dict[str, dict[str, Judged]] = {}
    broken: dict[str, str] = {}
    with interruptible() as cut:
        _play(chosen, folder, targets, found, broken)
    nothing = ", and nothing was pinned" if pin else ""
    if pin and not cut.happened and not broken:
        pinned = _pinned_anew(pinned, found)
        write_pinned(folder, pinned)
    outcome = Outcome(chosen, found, pinned, tickets, broken, explained=bool(names))
    result = outcome.result()
    result.stopped = cut.reason(f"{len(found)} of {counted(len(targets), 'targets')} done{nothing}")
    finish(result, as_json=as_json, table=None if as_json else outcome.shown())


def _chosen(names: list[str]) -> list[Finding]:
    by_name = {each.name: each for each in FINDINGS}
    for name in names:
        if name not in by_name:
            raise CannotRun(unknown("finding", name, by_name, "docs/findings.md lists them"))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def _can_be_pinned(names: list[str], targets: list[str]) -> None:
    if names:
        raise CannotRun("--pin needs all findings; leave out their names")
    for each in targets:
        if release_of(each) not in RELEASES:
            raise CannotRun(f"{each} cannot be pinned; the pinned releases are {', '.join(RELEASES)}")


def _play(
    chosen: list[Finding],
    folder: Path,
    targets: list[str],
    found: dict[str, dict[str, Judged]],
    broken: dict[str, str],
) -> None:
    """Run one target after the other; ``found``: verdicts so far; ``broken``: why a target could not be run."""
    with progress("findings") as meter:
        for name in targets:
            meter.update(description=name)
            try:
                with opened(name) as run:
                    found[name] = judge_all(chosen, folder, run, advance=meter.advance)
            except ProcessFault as fault:
                broken[name] = in_a_line(fault)


def _pinned_anew(pinned: Pinned, found: dict[str, dict[str, Judged]]) -> Pinned:
    """Return the pinned verdicts with the new ones; other releases keep theirs."""
    new = {release_of(name): {key: row.verdict for key, row in rows.items()} for name, rows in found.items()}
    return {release: rows for release in RELEASES if (rows := new.get(release) or pinned.get(release))}
