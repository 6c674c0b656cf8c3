"""The explorer compared with TLC: states per second on the same configuration, with the same properties and workers.

Distinct states count, which are the same on both sides. TLC counts a successor again for each way to reach it, so
successors would not be comparable.

The explorer works in one process; configurations run in parallel. TLC uses several workers, so it is measured with one,
which is comparable, and with all cores, which is what a user of one configuration waits for. TLC's time includes the
start of its JVM, and the explorer's the compilation of its tables, since a user waits for both.
"""

from __future__ import annotations

import os
import time

from fencepost_model.system.checking import explore_entry
from fencepost_model.system.manifest import Entry, read_manifest
from fencepost_model.tlc.run import TlcMissing, run_tlc

from ...common import repository
from ...common.errors import CannotRun
from .measure import Row, pair, processor_seconds, single

#: one of classic groups, one of consumer groups
CONFIGURATIONS = ("EagerFaults", "ConsumerStatic")


def explorer() -> list[Row]:
    manifest = {each.name: each for each in read_manifest(repository.root() / "spec")}
    return [row for name in CONFIGURATIONS for row in _compared(manifest[name])]


def _compared(entry: Entry) -> list[Row]:
    def run_explorer() -> int:
        return explore_entry(entry)[1].states

    what, unit = f"explorer on {entry.name}", "states a second"
    try:
        return [
            pair(
                "explorer",
                what,
                f"TLC, {workers} worker{'s' * (workers > 1)}",
                unit,
                work=run_explorer,
                other=lambda workers=workers: _run_tlc(entry, workers),  # type: ignore[misc]
                rounds=2,
                goal="5 times",
                clock=processor_seconds if workers == 1 else time.perf_counter,
            )
            for workers in sorted({1, os.cpu_count() or 1})
        ]
    except CannotRun:
        return [single("explorer", what, unit, run_explorer)]


def _run_tlc(entry: Entry, workers: int) -> int:
    try:
        return run_tlc(entry.module, entry.cfg, workers=workers, deadlock=entry.deadlock).distinct
    except TlcMissing as reason:
        raise CannotRun(str(reason)) from reason
