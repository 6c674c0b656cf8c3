"""``make matrix``: play the named cases on every broker and with every client that is installed."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from fencepost_server.look.made import made_now

from ...common import repository
from ...common.errors import CannotRun
from ...judge.cases.catalogue import chosen
from ..bench.served import started
from .clients import environment, peers_folder, read_brokers, read_clients
from .earlier import read_earlier
from .pages import PAGE, markdown
from .results import RESULTS, row_of
from .subjects import Subject, brokers, of_broker, of_client
from .verdicts import NOT_EXAMINED, VERDICTS, read_verdicts
from .web import html

Case: TypeAlias = Mapping[str, Any]

_LIMIT_S: Final = 3600
_ADDRESS: Final = re.compile(r"^(\S+:\d+)$", re.MULTILINE)


def play_row(subject: Subject, folder: Path, names: Sequence[str] = ()) -> None:
    """Play a row, or these cases of it, and the cases that end its broker each on a new process after the others."""
    alone = {case.name for each in subject.alone for case in chosen([each])}
    if not alone:
        play(subject, folder, names)
        return
    wanted = [case.name for case in chosen(names)]
    if not names:
        (folder / RESULTS).unlink(missing_ok=True)
    runs = [[name for name in wanted if name not in alone], *([name] for name in wanted if name in alone)]
    for run in filter(None, runs):
        play(subject, folder, run)


def play(subject: Subject, folder: Path, names: Sequence[str] = ()) -> None:
    """Run ``fencepost conform`` for a row; the folder gets its results and its output. ``names``: play these cases
    only, and keep the other results of the row, also if this run is interrupted."""
    row, folder = folder, folder / "again" if names else folder
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / RESULTS
    file.unlink(missing_ok=True)
    traces = ("--traces", "0") if subject.kind == "broker" else ()
    command = [sys.executable, "-m", "fencepost_conformance.cli", "conform"]
    more = [*subject.arguments, *traces, "--output", str(folder), "--json"]
    more += [word for name in names for word in ("--case", name)]
    with (folder / "stdout").open("w") as output, (folder / "stderr").open("w") as errors:
        try:
            with _address(subject) as address:
                subprocess.run(
                    [*command, *address, *more],
                    stdout=output, stderr=errors, env=environment(), timeout=_LIMIT_S, check=False,
                )  # fmt: skip
        except subprocess.TimeoutExpired:
            errors.write(f"it did not end within {_LIMIT_S} s\n")
        except CannotRun as reason:
            errors.write(f"{reason}\n")
    if names and file.exists():
        whole = row / RESULTS
        before = json.loads(whole.read_text(encoding="utf-8"))["cases"] if whole.exists() else []
        again = json.loads(file.read_text(encoding="utf-8"))["cases"]
        whole.write_text(json.dumps({"cases": merged(before, again)}, indent=1) + "\n", encoding="utf-8")


def merged(before: Sequence[Case], again: Sequence[Case]) -> list[Case]:
    """Return the results of a row, in their order, with those of the cases that were played again in their place."""
    newer = {each["case"]: each for each in again}
    return [newer.pop(each["case"], each) for each in before] + list(newer.values())


@contextmanager
def _address(subject: Subject) -> Iterator[tuple[str, ...]]:
    """Start the broker of a row that has a script for it; yield its address. Raises ``CannotRun``."""
    if not subject.server:
        yield ()
        return
    with started(subject.name, [*subject.server], _ADDRESS, environment()) as server:
        yield (server.bootstrap,)


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="make matrix", description=__doc__)
    parser.add_argument("--only", action="append", help="play this row only; may be repeated (a key of --list)")
    again = "play this case only, and keep the other results; may be repeated"
    parser.add_argument("--case", action="append", default=[], help=again)
    parser.add_argument("--list", action="store_true", help="list the rows, and what they lack")
    parser.add_argument("--write", action="store_true", help="play nothing: write the pages from the last results")
    parser.add_argument("--results", type=Path, default=Path("out") / "matrix", help="the folder of the results")
    given = parser.parse_args()
    folder = peers_folder()
    subjects = [*brokers(), *map(of_broker, read_brokers(folder)), *map(of_client, read_clients(folder))]
    if unknown := {*(given.only or ())} - {each.key for each in subjects}:
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    for subject in subjects:
        if given.list:
            print(f"{subject.key}: {subject.lacking or subject.version}")
        elif not given.write and not subject.lacking and subject.key in (given.only or [subject.key]):
            print(f"playing the cases: {subject.name} {subject.version}", flush=True)
            play_row(subject, given.results / subject.key, given.case)
    if given.list:
        return
    verdicts = read_verdicts(folder / VERDICTS)
    docs = repository.root() / "docs"
    before = read_earlier(*(_read(docs / name) for name in ("matrix.md", PAGE)))
    rows = [row_of(each, given.results / each.key, verdicts.get(each.key, ()), before) for each in subjects]
    for row in rows:
        unexamined = [each["case"] for each in row.odd() if row.verdict(each) == NOT_EXAMINED]
        if unexamined:
            print(f"{row.subject.key}: not examined: {', '.join(unexamined)}")
        if row.stale():
            print(f"{row.subject.key}: stale verdicts, whose cases no longer fail so: {', '.join(row.stale())}")
    (docs / "matrix.md").write_text(markdown(rows), encoding="utf-8")
    (docs / PAGE).write_text(html(rows, made_now("make matrix")), encoding="utf-8")
    print(f"wrote {docs / 'matrix.md'} and {docs / PAGE}")


if __name__ == "__main__":
    main()
