"""``fencepost store check``: check that a store is intact."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fencepost.store.base import StoreError
from fencepost.store.checking import Checked, check_file, stores_in

from ...common.counting import counted
from ...common.errors import CannotRun
from ...judge.verdict import Tally, Unsettled, Verdict
from ...show.console import Result, finish


class Action(StrEnum):
    """The action."""

    CHECK = "check"


def store(
    action: Annotated[Action, typer.Argument(help="check: read every page and record, and load each partition")],
    place: Annotated[
        Path, typer.Argument(metavar="DIR|FILE", help="the folder of fencepost serve --data, or a file of SQLiteStore")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Check that a store is intact. No other process may have it open."""
    assert action is Action.CHECK
    checked: dict[Path, Checked] = {}
    unread: list[Unsettled] = []
    for file in _files(place):
        try:
            checked[file] = check_file(file)
        except StoreError as reason:
            if file == place:
                raise CannotRun(str(reason)) from None
            unread.append(Unsettled(Verdict.BROKEN, str(file), str(reason)))
    if not as_json:
        for file, found in checked.items():
            if found.faults or file != place:
                print(_report(file, found))
    damaged = sum(bool(found.faults) for found in checked.values())
    tally = Tally(passed=len(checked) - damaged, failed=damaged, broken=len(unread))
    counts: dict[str, int | float] = {
        "stores": tally.total,
        "partitions": sum(each.partitions for each in checked.values()),
        "records": sum(each.records for each in checked.values()),
        "record_sets": sum(each.batches for each in checked.values()),
        "values": sum(each.values for each in checked.values()),
    }
    faults = {str(file): list(found.faults) for file, found in checked.items()}
    details = {"file": str(place), "files": faults, "faults": [fault for each in faults.values() for fault in each]}
    finish(Result("store", tally, counts, details, things="stores", unsettled=unread), as_json=as_json)


def _files(place: Path) -> list[Path]:
    """Return the stores to check. Raises ``CannotRun`` if there is none."""
    if not place.is_dir():
        return [place]
    found = stores_in(place)
    if not found:
        raise CannotRun(f"{place} has no store; give the folder of fencepost serve --data")
    return found


def _report(file: Path, found: Checked) -> str:
    """Return lines about one store: its damage and what to do, or its contents."""
    if not found.faults:
        holds = f"{counted(found.partitions, 'partitions')}, {counted(found.records, 'records')}"
        return f"{file}: intact ({holds})"
    return "\n".join(
        [
            f"{file}: damaged",
            *(f"  {fault}" for fault in found.faults),
            f"  Stop the server that uses {file.name}, and replace it by an earlier, undamaged copy.",
        ]
    )
