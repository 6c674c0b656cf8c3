"""The output of every command: one result, one error, one progress bar.

Exit status: that of the run's outcome (``verdict.outcome_of``); 2 if the command cannot run (bad input, missing
component).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from ..common.counting import counted
from ..judge.verdict import Outcome, Tally, Unsettled, Verdict, gaps, outcome_of

if TYPE_CHECKING:  # rich is imported only when it prints
    from rich.console import RenderableType
    from rich.progress import Progress

    from .listing import Listing

T = TypeVar("T")

#: ``Meter.count`` shows every so many things
_COUNTED = 10_000
#: seconds between two lines of progress if standard error is not a terminal
EVERY = 5.0
#: limits for undecided things on a terminal: number of reasons, their length, and names for each
_REASONS, _LONGEST, _NAMED = 10, 400, 3
_COLOURS = {Outcome.PASSED: "green", Outcome.FAILED: "red", Outcome.INCOMPLETE: "yellow"}


@dataclass(slots=True)
class Result:
    """The result of a command. ``tally``: the verdicts; None if the command only shows, measures or records.
    ``counts``: what was done, in numbers. ``details``: other JSON data. ``things``: the plural of what was judged.
    ``unsettled``: each undecided or broken thing. ``stopped``: why the run ended early."""

    command: str
    tally: Tally | None
    counts: dict[str, int | float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)  #: what was not run, and what to install or do
    done: str = ""  #: what a command without a tally did
    words: Mapping[str, str] = field(default_factory=dict)  #: clearer names of counts for the terminal
    things: str = "traces"
    unsettled: Sequence[Unsettled] = ()
    stopped: str | None = None

    @property
    def outcome(self) -> Outcome | None:
        """None if the command judges nothing."""
        return None if self.tally is None else outcome_of(self.tally, stopped=bool(self.stopped))

    @property
    def gaps(self) -> list[str]:
        """Why some things have no verdict, a sentence for each reason."""
        if self.tally is None:
            return [self.stopped] if self.stopped else []
        return gaps(self.tally, self.unsettled, self.things, self.stopped)

    @property
    def status(self) -> int:
        """The exit status."""
        if self.outcome is None:
            return 2 if self.stopped else 0
        return self.outcome.status

    def as_json(self) -> dict[str, Any]:
        """The object that ``--json`` prints."""
        outcome = self.outcome
        return {
            "command": self.command,
            "verdict": outcome,
            "passed": None if outcome is None else outcome is Outcome.PASSED,
            "status": self.status,
            "counts": self.all_counts(),
            "skipped": self.skipped,
            **({} if outcome is None else unsettled_as_json(self.unsettled)),
            **({"error": "; ".join(self.gaps)} if self.gaps else {}),
            **self.details,
        }

    def all_counts(self) -> dict[str, int | float]:
        """The counts, with those of the tally behind the first, which is the number of judged things."""
        names = list(self.counts)
        first = {name: self.counts[name] for name in names[:1]}
        tally = {} if self.tally is None else self.tally.as_counts()
        return {**first, **tally, **{name: self.counts[name] for name in names[1:]}}

    def numbers(self) -> str:
        """All counts, as a terminal shows them."""
        return ", ".join(
            counted(value, self.words.get(name, name.replace("_", " "))) for name, value in self.all_counts().items()
        )


def unsettled_as_json(unsettled: Sequence[Unsettled]) -> dict[str, Any]:
    """Return the undecided and the broken things as JSON data."""
    return {
        verdict.value: [each.as_json() for each in unsettled if each.verdict is verdict]
        for verdict in (Verdict.UNDECIDED, Verdict.BROKEN)
    }


def finish(result: Result, *, as_json: bool, table: RenderableType | None = None) -> NoReturn:
    """Print the result, and why it is incomplete if it is; exit with its status."""
    if as_json:
        print(json.dumps(result.as_json(), default=str))
    else:
        from rich.console import Console  # noqa: PLC0415

        console = Console()
        if table is not None:
            console.print(table)
        if result.unsettled:
            console.print(_listing(result.unsettled, result.things))
        for name, reason in result.skipped.items():
            console.print(f"[yellow]skipped[/] {name}: {reason}")
        counts = result.numbers()
        verdict = result.done if result.outcome is None else f"[{_COLOURS[result.outcome]}]{result.outcome}[/]"
        numbers = f"({counts})" if verdict else counts
        console.print(" ".join(part for part in (f"{result.command}:", verdict, counts and numbers) if part))
    if result.gaps:
        print(f"fencepost {result.command}: {'; '.join(result.gaps)}", file=sys.stderr)
    raise SystemExit(result.status)


def _listing(unsettled: Sequence[Unsettled], things: str) -> Listing:
    """Return a table of what has no verdict, by reason, with the first few of each."""
    from rich.markup import escape  # noqa: PLC0415

    from .listing import Listing  # noqa: PLC0415

    alike: dict[tuple[Verdict, str], list[str]] = {}
    for each in unsettled:
        alike.setdefault((each.verdict, each.why[:_LONGEST]), []).append(each.what)
    listing = Listing(
        ("verdict", things, "first", "why"),
        title=f"No verdict: {counted(len(unsettled), things)}",
        numbers=frozenset((things,)),
    )
    for (verdict, why), names in list(alike.items())[:_REASONS]:
        shown = ", ".join(map(escape, names[:_NAMED]))
        listing.add(verdict.value, f"{len(names):,}", shown, escape(why))
    if len(alike) > _REASONS:
        listing.caption = f"and {counted(len(alike) - _REASONS, 'more reasons')} (--json has all)"
    return listing


class Meter:
    """The progress of some work: how much is done, of how much, and what. ``bar`` shows it on a terminal."""

    def __init__(self, description: str, total: int | None, bar: Progress | None = None) -> None:
        self.description = description
        self.total = total
        self.completed = 0
        self._bar = bar
        self._task = None if bar is None else bar.add_task(description, total=total)

    def advance(self, steps: int = 1) -> None:
        self.update(completed=self.completed + steps)

    def count(self, things: Iterable[T]) -> Iterator[T]:
        """Yield the things, and count them."""
        done = 0
        for thing in things:
            done += 1
            if not done % _COUNTED:
                self.update(completed=done)
            yield thing
        self.update(completed=done)

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
    """Show progress on standard error: a moving line on a terminal, else a line every few seconds."""
    if not sys.stderr.isatty():
        meter = Meter(description, total)
        with _printing(meter):
            yield meter
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

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
def _printing(meter: Meter) -> Iterator[None]:
    """Print the meter's state every ``EVERY`` seconds until the block ends."""
    done = Event()
    began = time.monotonic()

    def print_state() -> None:
        while not done.wait(EVERY):
            print(f"{meter}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    printer = Thread(target=print_state, daemon=True)
    printer.start()
    try:
        yield
    finally:
        done.set()
        printer.join()
