"""The command that starts Kafka's own member (our Java, in ``client/``) on one build of Kafka; compiled once."""

from __future__ import annotations

import os

from . import jars
from .builds import Build
from .compiled import classes, sources


def command(build: Build) -> list[str]:
    """The command line. Raises ``CannotRun`` without a JDK, or if the build is none that can be served."""
    libraries = build.libraries()
    compiled = classes("client", build, sources(__package__, "client"), libraries)
    return [
        jars.java(),
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        os.pathsep.join(map(str, [compiled, *libraries])),
        "org.apache.kafka.clients.consumer.internals.ClassicClient",
    ]
