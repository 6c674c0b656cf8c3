"""The command that starts the harness (the Java code in ``harness/``) on one build of Kafka; compiled once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from . import jars
from .builds import Build
from .compiled import classes, sources

#: builds whose class path was given to this process, such as an executor of a cluster
_provided: dict[Build, list[Path]] = {}


def provide(build: Build, entries: Sequence[Path]) -> None:
    """Let this process run that build from these entries, without fetching or compiling."""
    _provided[build] = list(entries)


def classpath(build: Build) -> list[Path]:
    """Return the class path for the harness on that build: its classes, then Kafka's jars. Raises ``CannotRun``."""
    if build in _provided:
        return _provided[build]
    libraries = build.libraries()
    return [classes("harness", build, sources(__package__, "harness"), libraries), *libraries]


def command(build: Build | str) -> list[str]:
    """Return the command line that starts the harness on that build of Kafka, or on the release of that name."""
    return [
        jars.java(),
        "-Xmx768m",
        *jars.SHORT_RUN,
        "-cp",
        os.pathsep.join(map(str, classpath(Build(build) if isinstance(build, str) else build))),
        "fencepost.Main",
    ]
