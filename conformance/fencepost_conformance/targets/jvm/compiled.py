"""Compiles the project's Java code against the jars of one build of Kafka, once, into the user's cache.

Kafka moves some classes between releases. They are looked up in the jars before the compiler runs: an import of a moved
class is rewritten, and a missing class is reported in one line.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zipfile
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path

from ...common.errors import CannotRun
from . import jars
from .builds import Build

#: The releases that the harness supports.
SERVED = "4.0 to 4.4"
#: Moved classes: their name before the release, and since.
MOVED = {
    "org.apache.kafka.common.utils.BufferSupplier": "org.apache.kafka.common.utils.internals.BufferSupplier",  # 4.4
    "org.apache.kafka.common.utils.LogContext": "org.apache.kafka.common.utils.internals.LogContext",  # 4.4
    **{
        f"org.apache.kafka.common.record.{name}": f"org.apache.kafka.common.record.internal.{name}"
        for name in ("MemoryRecords", "MemoryRecordsBuilder", "Record", "RecordBatch", "SimpleRecord")  # 4.4
    },
}
_IMPORT = re.compile(r"^import (org\.apache\.kafka\.[\w.]+);$", re.MULTILINE)


def sources(package: str, *folders: str) -> dict[str, str]:
    """Return the Java files in a folder of a Python package, name to text."""
    folder = files(package).joinpath(*folders)
    items = sorted(folder.iterdir(), key=lambda item: item.name)
    return {item.name: item.read_text() for item in items if item.name.endswith(".java")}


def classes(name: str, build: Build, texts: Mapping[str, str], libraries: list[Path], served: str = SERVED) -> Path:
    """Return the folder with the compiled classes of these sources. ``name``: their name in the cache; ``served``: the
    supported releases.

    Raises ``CannotRun`` without a JDK, or if the sources do not fit this build of Kafka."""
    digest = hashlib.sha256(repr((sorted(texts.items()), MOVED)).encode()).hexdigest()[:16]
    target = jars.cache_root() / "classes" / f"{name}-{build.stamp()}-{digest}"
    if not target.is_dir():
        fitting = _fitting(build.version, texts, _known(libraries), served)
        jars.publish(target, lambda folder: _compile(build.version, fitting, libraries, folder, served))
    return target


def _known(libraries: Iterable[Path]) -> frozenset[str]:
    """Return the names of all classes in the jars, nested ones as in an import."""
    names: set[str] = set()
    for library in libraries:
        with zipfile.ZipFile(library) as jar:
            names.update(name[: -len(".class")] for name in jar.namelist() if name.endswith(".class"))
    return frozenset(name.replace("/", ".").replace("$", ".") for name in names)


def _fitting(version: str, texts: Mapping[str, str], known: frozenset[str], served: str) -> dict[str, str]:
    """Return the sources with this build's imports. Raises ``CannotRun`` for classes that do not exist."""
    missing: set[str] = set()

    def named(found: re.Match[str]) -> str:
        name = found[1]
        if name not in known and MOVED.get(name) in known:
            name = MOVED[name]
        if name not in known:
            missing.add(name)
        return f"import {name};"

    fitting = {file: _IMPORT.sub(named, text) for file, text in texts.items()}
    if missing:
        first, *others = sorted(missing)
        more = f" (nor {len(others)} other classes)" if others else ""
        raise CannotRun(f"Kafka {version} has no {first}{more}: the supported releases are {served}")
    return fitting


def _compile(version: str, texts: Mapping[str, str], libraries: list[Path], folder: Path, served: str) -> None:
    written = folder.parent / "source"
    written.mkdir()
    for name, text in texts.items():
        (written / name).write_text(text)
    # Every JDK contains the compiler as a module, so no second program must be on the path.
    answer = subprocess.run(
        [
            jars.java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-nowarn", "-d", str(folder),
            "-cp", os.pathsep.join(map(str, libraries)), *(str(written / name) for name in texts),
        ],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    if answer.returncode == 0:
        return
    if "jdk.compiler" in answer.stderr:
        raise CannotRun(
            "the Java found is a runtime without a compiler: install a JDK (package 'default-jdk-headless')"
        )
    log = jars.cache_root() / "compile.log"
    log.write_text(answer.stdout + answer.stderr, encoding="utf-8")
    wrong = re.findall(r"([\w$]+\.java:\d+): error: (.*)", answer.stderr)
    first = ": ".join(wrong[0]) if wrong else "for an unknown reason"
    raise CannotRun(
        f"Kafka {version} does not fit this harness, which supports the releases {served}: {first} (full output: {log})"
    )
