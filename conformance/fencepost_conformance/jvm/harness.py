"""The command that starts the harness (our Java, in ``harness/``) on one build of Kafka; compiled once."""

from __future__ import annotations

import os

from . import jars
from .builds import Build
from .compiled import classes, sources


def command(build: Build | str) -> list[str]:
    """The command line that starts the harness on that build of Kafka, or on the release of that name."""
    if isinstance(build, str):
        build = Build(build)
    libraries = build.libraries()
    compiled = classes("harness", build, sources(__package__, "harness"), libraries)
    return [
        jars.java(),
        "-Xmx768m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:TieredStopAtLevel=1",  # of a run of a thousand traces the second compiler takes more time than it saves
        "-cp",
        os.pathsep.join(map(str, [compiled, *libraries])),
        "fencepost.Main",
    ]
