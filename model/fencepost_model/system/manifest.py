"""The configurations of ``spec/manifest.json``, read for the model: constants, properties, expected result.

``cfg`` reads the files, and ``constants`` the values that they assign.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from ..tlc.values import ParseError
from .cfg import BadConfiguration, read_cfg
from .constants import definitions_of, problem_of
from .families import FAMILIES, family_of_module
from .problem import Problem


class BadManifest(ValueError):
    """The manifest or a configuration cannot be read; the message names the file and the place."""


#: TLC explores so many states in a few seconds.
_SECONDS: Final = 12_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration. ``distinct`` and ``trace`` (states of the shortest counter-example) are None if not pinned."""

    name: str
    module: Path
    cfg: Path
    about: str
    expected: Literal["holds", "violates", "refinement", "temporal", "deadlock"]
    breaks: str | None  #: the property that must fail
    distinct: int | None
    trace: int | None
    e1: bool
    size: Literal["small", "medium", "large"]
    deadlock: bool

    @property
    def protocol(self) -> Literal["classic", "consumer", "mixed", "log", "offsets"]:
        """The subject of the configuration: the protocol of its groups, or their log, or their offsets."""
        if "Offset" in self.module.stem:
            return "offsets"
        if "Log" in self.module.stem or "Durable" in self.module.stem:
            return "log"
        if "Mixed" in self.module.stem:
            return "mixed"
        return "consumer" if "Consumer" in self.module.stem else "classic"

    @property
    def short(self) -> bool:
        """Whether TLC needs only seconds, in which a JVM's second compiler costs more than it saves."""
        return self.size == "small" or (self.distinct is not None and self.distinct < _SECONDS)

    @property
    def has_model(self) -> bool:
        """Whether the model has this closed system too; ``Ownership`` alone is not one."""
        return any(self.module.stem in family.modules for family in FAMILIES)


def read_manifest(spec: Path) -> list[Entry]:
    """Return the entries of ``spec/manifest.json``. Raises BadManifest."""
    path = spec / "manifest.json"
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["configurations"]
        return [
            Entry(
                name=row["name"],
                module=spec / f"{row['module']}.tla",
                cfg=spec / row["cfg"],
                about=row["about"],
                expected=row["expected"],
                breaks=row["property"],
                distinct=row["distinct"],
                trace=row["trace"],
                e1=row["e1"],
                size=row["size"],
                deadlock="-deadlock" not in row["flags"],
            )
            for row in rows
        ]
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as reason:
        raise BadManifest(f"{path}: {type(reason).__name__}: {reason}") from reason


def read_problem(entry: Entry) -> Problem:
    """Return the closed system of a configuration. Raises BadManifest."""
    try:
        family = family_of_module(entry.module.stem)
        return problem_of(read_cfg(entry.cfg), family, definitions_of(family, entry.module.parent))
    except BadConfiguration as reason:
        raise BadManifest(str(reason)) from reason
    except (OSError, KeyError, ParseError) as reason:
        raise BadManifest(f"{entry.cfg}: {type(reason).__name__}: {reason}") from reason
