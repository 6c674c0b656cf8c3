"""``fencepost store check FILE``: whether a store is as it was written."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fencepost.store.checking import check_file
from fencepost.store.shared import StoreError

from ..console import CannotRun, Result, finish
from ..verdict import Tally


class Action(StrEnum):
    """What to do with it."""

    CHECK = "check"


def store(
    action: Annotated[Action, typer.Argument(help="check: look at every page and record, and load each partition")],
    file: Annotated[Path, typer.Argument(help="a file of SQLiteStore; with fencepost serve --data, the one in there")],
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object on standard output")] = False,
) -> None:
    """Check that a store in a file is as it was written. Nobody may have it open."""
    assert action is Action.CHECK
    try:
        found = check_file(file)
    except StoreError as reason:
        raise CannotRun(str(reason)) from None
    counts: dict[str, int | float] = {
        "stores": 1,
        "partitions": found.partitions,
        "records": found.records,
        "record_sets": found.batches,
        "values": found.values,
    }
    if not as_json:
        for fault in found.faults:
            print(fault)
    tally = Tally(failed=1) if found.faults else Tally(passed=1)
    result = Result("store", tally, counts, {"file": str(file), "faults": list(found.faults)}, things="stores")
    finish(result, as_json=as_json)
