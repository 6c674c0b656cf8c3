"""Asks the classes of a release for the defaults of all settings of groups and of consumers; see ``Defaults.java``."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from importlib.resources import as_file, files

from .. import jars
from ..process import ProcessFault

SOURCE = "Defaults.java"
ARTIFACT = "org.apache.kafka:kafka-group-coordinator"
TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Defaults:
    """Settings by Kafka's names, as text. ``broker``: of groups and offsets; ``consumer``: of a client; ``constant``:
    fixed times, by the name of the field in Kafka's classes."""

    broker: dict[str, str]
    consumer: dict[str, str]
    constant: dict[str, str]


def ask_defaults(version: str) -> Defaults:
    """Return a release's defaults. Raises ``CannotRun`` without a JDK or its jars, ``ProcessFault`` if Java fails."""
    path = os.pathsep.join(map(str, jars.fetch(f"{ARTIFACT}:{version}")))
    with as_file(files(__package__) / SOURCE) as source:
        command = [jars.java(), "-Xmx128m", "-cp", path, str(source)]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if answer.returncode != 0:
        raise ProcessFault(f"{command[0]}: exit status {answer.returncode}. Last output:\n{answer.stderr[-2_000:]}")
    values: dict[str, dict[str, str]] = {"broker": {}, "consumer": {}, "constant": {}}
    for line in answer.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        name, _, value = rest.partition("=")
        values[kind][name] = value
    return Defaults(**values)
