"""Compiles the Java member once, into the user's cache."""

from __future__ import annotations

import os

from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.compiled import classes, sources

from .stage import Java


def java_member(version: str) -> Java:
    """Return the Java member with that release's client. Raises CannotRun without a JDK or the jars."""
    libraries = jars.fetch(f"org.apache.kafka:kafka-clients:{version}", "org.slf4j:slf4j-nop:1.7.36")
    compiled = classes("member", Build(version), sources(__package__), libraries)
    return Java(jars.java(), os.pathsep.join(map(str, [compiled, *libraries])))
