"""The plan of a run: which seeds, in which chunks, in which waves; and what must be equal for a run to be continued.

A *chunk* is what one worker checks at a time. A *wave* is a number of chunks whose rows are written and committed
together, so that an interrupted run loses no more than the wave it was in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..console import CannotRun
from ..coverage.catalogue import FEATURES
from ..targets.registry import parse_target
from .job import Job

CHUNK = 50
WAVE = 2_000
_FILE = "plan.json"
#: packages whose code decides what a row says
_DECIDING = (
    "fencepost.protocol",
    "fencepost.coordinator",
    "fencepost_model",
    "fencepost_conformance.generate",
    "fencepost_conformance.compare",
    "fencepost_conformance.coverage",
    "fencepost_conformance.targets",
    "fencepost_conformance.jvm",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """``count`` traces from seed ``first`` on."""

    job: Job
    first: int
    count: int
    chunk: int = CHUNK
    wave: int = WAVE

    def waves(self) -> Iterator[range]:
        """The seeds of each wave, in order."""
        end = self.first + self.count
        for start in range(self.first, end, self.wave):
            yield range(start, min(start + self.wave, end))

    def chunks(self, seeds: range) -> list[range]:
        """The chunks of some seeds, in order."""
        return [seeds[start : start + self.chunk] for start in range(0, len(seeds), self.chunk)]

    def identity(self) -> dict[str, Any]:
        """What decides the rows. Two plans of one identity have the same rows, wherever and however often they run."""
        return {
            **self.job.as_dict(),
            "build": parse_target(self.job.target).build.stamp(),  # the jars of a folder can change
            "first": self.first,
            "count": self.count,
            "wave": self.wave,
            "features": hashlib.sha256("\n".join(FEATURES).encode()).hexdigest()[:16],
            "code": code_digest(),
        }


def claim(directory: Path, plan: Plan) -> None:
    """Make the directory this plan's, or see that it is. Raises ``CannotRun`` if it holds another run."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / _FILE
    wanted = plan.identity()
    if file.exists():
        held = json.loads(file.read_text())
        if held != wanted:
            differs = next(name for name in sorted({*held, *wanted}) if held.get(name) != wanted.get(name))
            raise CannotRun(f"{directory} holds another run (its {differs} differs); give another directory with -o")
        return
    file.write_text(json.dumps(wanted, indent=1) + "\n")


def code_digest() -> str:
    """Stands for the code that decides what a row says."""
    total = hashlib.sha256()
    for package in _DECIDING:
        (root,) = import_module(package).__path__
        for file in sorted(Path(root).rglob("*")):
            if file.suffix in (".py", ".java"):
                total.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return total.hexdigest()[:16]
