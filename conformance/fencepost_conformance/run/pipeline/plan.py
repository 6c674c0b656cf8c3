"""The plan of a run: its seeds, chunks and waves; and what must be equal to continue a run.

A *chunk* is what one worker checks at a time. A *wave* is a number of chunks whose rows are written and committed
together, so that an interrupted run loses at most one wave.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ...common.errors import CannotRun
from ...judge.coverage.catalogue import FEATURES
from ...judge.rows.job import Job
from ...targets.registry import parse_target
from ..cluster.folder import Folder
from ..cluster.shipping import package_files

CHUNK = 50
WAVE = 2_000
_FILE = "plan.json"
#: packages whose code decides the contents of a row
_DECIDING = (
    "fencepost.protocol",
    "fencepost.coordinator",
    "fencepost_model",
    "fencepost_conformance.generate",
    "fencepost_conformance.judge.compare",
    "fencepost_conformance.judge.coverage",
    "fencepost_conformance.targets",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan: ``count`` traces from seed ``first`` on."""

    job: Job
    first: int
    count: int
    chunk: int = CHUNK
    wave: int = WAVE

    def waves(self) -> Iterator[range]:
        """Yield the seeds of each wave, in order."""
        end = self.first + self.count
        for start in range(self.first, end, self.wave):
            yield range(start, min(start + self.wave, end))

    def chunks(self, seeds: range) -> list[range]:
        """Return the chunks of some seeds, in order."""
        return [self.chunk_of(seeds, number) for number in range(-(-len(seeds) // self.chunk))]

    def chunk_of(self, seeds: range, number: int) -> range:
        """Return one of these chunks."""
        return seeds[number * self.chunk : (number + 1) * self.chunk]

    def identity(self) -> dict[str, Any]:
        """Return what decides the rows. Plans with the same identity have the same rows, wherever and however often
        they run."""
        return {
            **self.job.as_dict(),
            "build": parse_target(self.job.target).build.stamp(),  # the jars of a folder can change
            "first": self.first,
            "count": self.count,
            "wave": self.wave,
            "features": hashlib.sha256("\n".join(FEATURES).encode()).hexdigest()[:16],
            "code": code_digest(),
        }


def claim(folder: Folder, plan: Plan) -> Plan:
    """Claim the folder for this plan, or check that it is claimed. Raises ``CannotRun`` if it holds another run.

    Returns the plan with the waves with which the run began.
    """
    wanted = json.loads(json.dumps(plan.identity()))  # as the file has it: lists instead of tuples
    if folder.create(_FILE, json.dumps(wanted, indent=1) + "\n"):
        return plan
    try:
        held = json.loads(folder.read(_FILE) or "")
        wave = int(held["wave"])
    except (ValueError, KeyError, TypeError):
        raise CannotRun(
            f"{_FILE} in {folder.name} cannot be read; remove it, or give another folder with -o or --rows"
        ) from None
    differs = next((name for name in sorted({*held, *wanted} - {"wave"}) if held.get(name) != wanted.get(name)), None)
    if differs is not None:
        raise CannotRun(
            f"{folder.name} holds another run (its {differs} differs); give another folder with -o or --rows"
        )
    return replace(plan, wave=wave)


def code_digest() -> str:
    """Return a digest of the code that decides the contents of a row."""
    total = hashlib.sha256()
    for package in _DECIDING:
        for path, content in package_files(package):
            if path.endswith((".py", ".java")):
                total.update(path.encode() + b"\0" + content)
    return total.hexdigest()[:16]
