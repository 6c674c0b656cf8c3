"""How every command speaks: one result, one error, one progress bar.

Exit status: 0 all held, 1 something was found, 2 could not run (bad input, missing component).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .counting import counted


class CannotRun(Exception):
    """The command cannot do its work; the message says what to do. Exit status 2."""


@dataclass(slots=True)
class Result:
    """What a command found. ``counts``: what was done, in numbers; ``details``: anything else that JSON can hold."""

    command: str
    held: bool
    counts: dict[str, int | float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  #: what was not run, and what to install or do

    def as_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "held": self.held,
            "counts": self.counts,
            "skipped": self.skipped,
            **self.details,
        }


def finish(
    result: Result, *, as_json: bool, table: RenderableType | None = None, incomplete: str | None = None
) -> NoReturn:
    """Print the result and leave with its status; raise ``CannotRun`` if it is ``incomplete``, and why."""
    if as_json:
        print(json.dumps(result.as_json(), default=str))
    else:
        console = Console()
        if table is not None:
            console.print(table)
        for name, reason in result.skipped.items():
            console.print(f"[yellow]skipped[/] {name}: {reason}")
        counts = ", ".join(counted(value, name.replace("_", " ")) for name, value in result.counts.items())
        verdict = "[green]held[/]" if result.held else "[red]does not hold[/]"
        if incomplete is not None:
            verdict = "[yellow]incomplete[/]"
        console.print(f"{result.command}: {verdict}" + (f" ({counts})" if counts else ""))
    if incomplete is not None:
        raise CannotRun(incomplete)
    raise SystemExit(0 if result.held else 1)


class Meter:
    """Moves one line of a progress display."""

    def __init__(self, progress: Progress | None, task: Any) -> None:
        self._progress = progress
        self._task = task

    def advance(self, steps: int = 1) -> None:
        if self._progress is not None:
            self._progress.advance(self._task, steps)

    def update(self, *, completed: int | None = None, total: int | None = None, description: str | None = None) -> None:
        if self._progress is not None:
            self._progress.update(self._task, completed=completed, total=total, description=description)


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Meter]:
    """A progress line on standard error where that is a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield Meter(None, None)
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    with bar:
        yield Meter(bar, bar.add_task(description, total=total))
