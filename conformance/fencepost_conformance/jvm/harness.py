"""Compiles the harness (our Java, in ``harness/``) against one release of Kafka, once, into the user's cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
from importlib.resources import files
from pathlib import Path

from ..console import CannotRun
from . import jars

ARTIFACT = "org.apache.kafka:kafka-group-coordinator"


def command(version: str) -> list[str]:
    """The command line that starts the harness on that release of Kafka."""
    libraries = jars.fetch(f"{ARTIFACT}:{version}")
    classes = _classes(version, libraries)
    return [
        jars.java(),
        "-Xmx768m",
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-XX:TieredStopAtLevel=1",  # of a run of a thousand traces the second compiler takes more time than it saves
        "-cp",
        os.pathsep.join(map(str, [classes, *libraries])),
        "fencepost.Main",
    ]


def _sources() -> dict[str, str]:
    folder = files(__package__) / "harness"
    return {item.name: item.read_text() for item in sorted(folder.iterdir(), key=lambda item: item.name)}


def _classes(version: str, libraries: list[Path]) -> Path:
    sources = _sources()
    digest = hashlib.sha256(repr(sources).encode()).hexdigest()[:16]
    target = jars.cache_root() / "classes" / f"{version}-{digest}"
    if not target.is_dir():
        jars.publish(target, lambda folder: _compile(sources, version, libraries, folder))
    return target


def _compile(sources: dict[str, str], version: str, libraries: list[Path], folder: Path) -> None:
    written = folder.parent / "source"
    written.mkdir()
    for name, text in sources.items():
        (written / name).write_text(text)
    # The compiler is a module of every JDK; going through java needs no second program on the path.
    answer = subprocess.run(
        [
            jars.java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-d", str(folder),
            "-cp", os.pathsep.join(map(str, libraries)), *(str(written / name) for name in sources),
        ],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if "jdk.compiler" in answer.stderr and answer.returncode != 0:
        raise CannotRun(
            "the Java found is a runtime without a compiler: install a JDK (package 'default-jdk-headless')"
        )
    if answer.returncode != 0:
        raise CannotRun(f"the harness does not compile against Kafka {version}:\n{answer.stdout}{answer.stderr}")
