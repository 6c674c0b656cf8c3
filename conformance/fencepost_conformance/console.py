"""How every command speaks: one result, one error, one progress bar.

Exit status: 0 all held, 1 something was found, 2 could not run (bad input, missing component).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, NoReturn

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from .counting import counted

#: seconds between two lines of progress where there is no terminal
EVERY = 5.0


class CannotRun(Exception):
    """The command cannot do its work; the message says what to do. Exit status 2.

    ``told``: under ``--json`` the object on standard output has the reason already.
    """

    def __init__(self, reason: str, *, told: bool = False) -> None:
        super().__init__(reason)
        self.told = told


@dataclass(slots=True)
class Result:
    """What a command found. ``held``: None where nothing was to hold, as of a command that only shows, measures or
    records; JSON then says true. ``counts``: what was done, in numbers; ``details``: anything else that JSON can hold;
    ``done``: the words for what such a command did."""

    command: str
    held: bool | None
    counts: dict[str, int | float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  #: what was not run, and what to install or do
    done: str = ""
    words: Mapping[str, str] = field(default_factory=dict)  #: for counts whose names say too little on a terminal

    def as_json(self) -> dict[str, Any]:
        return {
            "command": self.command,
            "held": self.held is not False,
            "counts": self.counts,
            "skipped": self.skipped,
            **self.details,
        }


def finish(
    result: Result, *, as_json: bool, table: RenderableType | None = None, incomplete: str | None = None
) -> NoReturn:
    """Print the result and leave with its status; raise ``CannotRun`` if it is ``incomplete``, and why."""
    if as_json:
        trouble = {} if incomplete is None else {"error": incomplete, "status": 2}
        print(json.dumps(result.as_json() | trouble, default=str))
    else:
        console = Console()
        if table is not None:
            console.print(table)
        for name, reason in result.skipped.items():
            console.print(f"[yellow]skipped[/] {name}: {reason}")
        counts = ", ".join(
            counted(value, result.words.get(name, name.replace("_", " "))) for name, value in result.counts.items()
        )
        verdict = {True: "[green]held[/]", False: "[red]does not hold[/]", None: result.done}[result.held]
        if incomplete is not None:
            verdict = "[yellow]incomplete[/]"
        numbers = f"({counts})" if verdict else counts
        console.print(" ".join(part for part in (f"{result.command}:", verdict, counts and numbers) if part))
    if incomplete is not None:
        raise CannotRun(incomplete, told=True)
    raise SystemExit(1 if result.held is False else 0)


class Meter:
    """How far some work is: done, of how many, and at what. ``bar`` shows it where there is a terminal."""

    def __init__(self, description: str, total: int | None, bar: Progress | None = None) -> None:
        self.description = description
        self.total = total
        self.completed = 0
        self._bar = bar
        self._task = None if bar is None else bar.add_task(description, total=total)

    def advance(self, steps: int = 1) -> None:
        self.update(completed=self.completed + steps)

    def update(self, *, completed: int | None = None, total: int | None = None, description: str | None = None) -> None:
        self.completed = self.completed if completed is None else completed
        self.total = self.total if total is None else total
        self.description = self.description if description is None else description
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self.completed, total=self.total, description=self.description)

    def __str__(self) -> str:
        of = f" of {self.total:,}" if self.total else ""
        return f"{self.description}: {self.completed:,}{of}" if self.completed or of else self.description


@contextmanager
def progress(description: str, total: int | None = None) -> Iterator[Meter]:
    """Progress on standard error: a line that moves where that is a terminal, else a line every few seconds."""
    if not sys.stderr.isatty():
        meter = Meter(description, total)
        with _telling(meter):
            yield meter
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
        yield Meter(description, total, bar)


@contextmanager
def _telling(meter: Meter) -> Iterator[None]:
    """Until the block ends, tell how far the meter is, every ``EVERY`` seconds."""
    done = Event()
    began = time.monotonic()

    def tell() -> None:
        while not done.wait(EVERY):
            print(f"{meter}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
