"""Checking the bundled recorded traces, in events per second and core."""

from __future__ import annotations

from ...common import repository
from ...judge.checker.check import check_file
from ..validate.run import find_traces
from .measure import Row, single


def recorded() -> list[Row]:
    files = find_traces([str(repository.root() / "tests" / "corpus")])

    def check_all() -> int:
        return sum(verdict.events for file in files for verdict in check_file(file))

    return [single("recorded", f"checking {len(files)} recorded traces", "events a second", check_all)]
