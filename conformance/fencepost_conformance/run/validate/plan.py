"""The plan of a check: which traces, on which engine, with which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fencepost.protocol.profile import Profile

from ...judge.checker.check import check_file
from ...judge.checker.search import Limits
from ...judge.checker.verdict import Verdict
from ...judge.members.judge import with_breaches
from ...traces.lines import Setting
from ...traces.profiles import JUDGED
from ..cluster.place import Place

#: The names of trace files in a folder.
PATTERNS = ("*.jsonl", "*.jsonl.gz")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to check. ``profile``: "" for the one that each trace names. ``workers``: 0 for one process per core.
    ``urls``: traces that Spark reads. ``place``: the Spark cluster. ``given``: settings (by field) that override those
    of the headers. ``export``: where the engine ``tlc`` keeps the modules that it generates."""

    files: tuple[Path, ...]
    engine: str = "local"
    profile: str = ""
    limits: Limits = field(default_factory=Limits)
    workers: int = 0
    urls: tuple[str, ...] = ()
    place: Place = field(default_factory=Place)
    given: Mapping[str, Setting] = field(default_factory=dict)
    export: Path | None = None


def check_one(path: Path, limits: Limits, profile: str, given: Mapping[str, Setting]) -> list[Verdict]:
    return list(check_file(path, limits, profile_named(profile), given, also=with_breaches))


def profile_named(name: str) -> Profile | None:
    """The profile of that name; None for "": each trace names its own."""
    return JUDGED[name] if name else None
