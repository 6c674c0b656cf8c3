"""The command that starts Kafka's own member (the Java code in ``client/``) on one build of Kafka; compiled once."""

from __future__ import annotations

import os

from . import jars
from .builds import Build
from .compiled import classes, sources

#: The program for each half and protocol of a client; the consumer's is the same for all halves.
_PROGRAMS = {
    ("member", "classic"): "ClassicClient",
    ("member", "consumer"): "ConsumerClient",
    ("reader", "classic"): "ClassicReader",
    ("reader", "consumer"): "ConsumerClient",
    ("group-reader", "classic"): "ClassicReader",
    ("group-reader", "consumer"): "ConsumerClient",
}


def command(build: Build, protocol: str, half: str = "member") -> list[str]:
    """Return the command line for a client of ``protocol`` whose ``half`` is to be compared.

    Raises ``CannotRun`` without a JDK, or if the build is not supported."""
    libraries = build.libraries()
    compiled = classes("client", build, sources(__package__, "client"), libraries, "4.2 to 4.4")
    return [
        jars.java(),
        "-Xmx512m",
        *jars.SHORT_RUN,
        "-cp",
        os.pathsep.join(map(str, [compiled, *libraries])),
        f"org.apache.kafka.clients.consumer.internals.{_PROGRAMS[half, protocol]}",
    ]
