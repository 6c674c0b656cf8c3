"""The command that starts the harness (our Java, in ``harness/``) on one release of Kafka; compiled once."""

from __future__ import annotations

import os

from . import jars
from .compiled import classes, sources

ARTIFACT = "org.apache.kafka:kafka-group-coordinator"


def command(version: str) -> list[str]:
    """The command line that starts the harness on that release of Kafka."""
    libraries = jars.fetch(f"{ARTIFACT}:{version}")
    compiled = classes("harness", version, sources(__package__, "harness"), libraries)
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
