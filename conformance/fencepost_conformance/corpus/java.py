"""Compiles the Java member once, into the user's cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
from importlib.resources import files
from pathlib import Path

from ..console import CannotRun
from ..jvm import jars
from .stage import Java


def java_member(version: str) -> Java:
    """The Java member with that release's client. Raises CannotRun without a JDK or the jars."""
    libraries = jars.fetch(f"org.apache.kafka:kafka-clients:{version}", "org.slf4j:slf4j-nop:1.7.36")
    source = (files(__package__) / "Member.java").read_text()
    digest = hashlib.sha256(source.encode()).hexdigest()[:16]
    target = jars.cache_root() / "classes" / f"member-{version}-{digest}"
    if not target.is_dir():
        jars.publish(target, lambda folder: _compile(source, libraries, folder))
    return Java(jars.java(), os.pathsep.join(map(str, [target, *libraries])))


def _compile(source: str, libraries: list[Path], folder: Path) -> None:
    written = folder.parent / "Member.java"
    written.write_text(source)
    command = [
        jars.java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-d", str(folder),
        "-cp", os.pathsep.join(map(str, libraries)), str(written),
    ]  # fmt: skip
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if answer.returncode != 0:
        raise CannotRun(f"the Java member does not compile: {answer.stdout}{answer.stderr}")
