"""Kafka's recorded answers to many parts; each run compares a few of them with ``fencepost serve``.

The name of a part determines its scripts, so the file contains only answers: a zip archive with a member for each part.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from .parts import Kind, Part, part

#: of one part
REQUESTS: Final = 5_000
LENGTH: Final = 30
#: any seed will do
_SEED: Final = 11
_DATE: Final = (1980, 1, 1, 0, 0, 0)


def part_of(name: str) -> Part:
    """The part of that name, such as ``rights-003``."""
    kind, _, number = name.partition("-")
    return part(Kind(kind), f"{kind[0]}{number}", _SEED + int(number), REQUESTS, LENGTH)


def names(kind: Kind, count: int) -> list[str]:
    """The names of the first parts of a kind."""
    return [f"{kind}-{number:03}" for number in range(count)]


def recorded(path: Path) -> list[str]:
    """The names of the parts in a file."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def some(names: Sequence[str], rng: Random, count: int) -> list[str]:
    """Return ``count`` names: the first one, and others at random."""
    first, *others = names
    return [first, *rng.sample(others, min(count - 1, len(others)))]


def keep(path: Path, name: str, answers: Sequence[Sequence[Any]]) -> None:
    """Add the answers to a part."""
    with zipfile.ZipFile(path, "a", zipfile.ZIP_LZMA) as archive:
        archive.writestr(zipfile.ZipInfo(name, _DATE), json.dumps(answers, separators=(",", ":")), zipfile.ZIP_LZMA)


def kept(path: Path, name: str) -> list[list[Any]]:
    """Read the answers to a part."""
    with zipfile.ZipFile(path) as archive:
        read: list[list[Any]] = json.loads(archive.read(name))
    return read
