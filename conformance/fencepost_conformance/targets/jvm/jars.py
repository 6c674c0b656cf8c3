"""Fetches artifacts of Apache Kafka with their dependencies, once, into the user's cache.

It uses ``mvn`` where that is installed, else the Ivy that PySpark includes. Both have their own configuration of
repositories; this project has none. Fetched files never become part of the project.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ...common.errors import CannotRun

OLDEST_JAVA = 17
#: For a JVM that runs for seconds: its second compiler and a concurrent collector cost more time than they save.
SHORT_RUN: Final = ("-XX:+UseSerialGC", "-XX:-UsePerfData", "-XX:TieredStopAtLevel=1")
FETCH_TIMEOUT_S = 600
FETCHER: Final = "install Maven (package 'maven') or PySpark (pip install -e '.[spark]')"
#: How Maven and Ivy report that an artifact was not found, and that they could not connect.
_ABSENT = re.compile(r"not found|Could not find artifact")
_UNREACHED = re.compile(
    r"Could not transfer|[Uu]nknown ?[Hh]ost|Host \S+ not found|[Tt]imed out|refused|not finished after"
)


def cache_root() -> Path:
    """Return the folder of jars and compiled classes: ``$FENCEPOST_CACHE``, or ``~/.cache/fencepost``."""
    named = os.environ.get("FENCEPOST_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "fencepost"


def java() -> str:
    """Return the ``java`` program, from ``$JAVA_HOME`` or the path. Raises ``CannotRun`` if it is missing or too
    old."""
    home = os.environ.get("JAVA_HOME")
    at_home = Path(home) / "bin" / "java" if home else None
    found = str(at_home) if at_home is not None and at_home.exists() else shutil.which("java")
    if found is None:
        raise CannotRun(
            f"this needs Java: install a JDK, version {OLDEST_JAVA} or later (package 'default-jdk-headless')"
        )
    _check_version(found)
    return found


@cache
def _check_version(program: str) -> None:
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    if version is None or int(version[1]) < OLDEST_JAVA:
        found = version[0] if version else "of unknown version"
        raise CannotRun(f"{program} is {found}; this needs a JDK, version {OLDEST_JAVA} or later")


def has_jdk() -> bool:
    """Whether a JDK is on the path: ``java``, and the compiler."""
    return all(shutil.which(tool) for tool in ("java", "javac"))


def fetchers() -> list[str]:
    """Return the names of the programs that can fetch artifacts here."""
    return [*["Maven"] * (shutil.which("mvn") is not None), *["the Ivy of PySpark"] * (_pyspark_ivy() is not None)]


def folder_of(*coordinates: str) -> Path:
    """Return the folder of these artifacts' jars, which may not exist yet."""
    return cache_root() / "jars" / "+".join("-".join(coordinate.split(":")[1:]) for coordinate in coordinates)


def fetch(*coordinates: str) -> list[Path]:
    """Return the jars of the artifacts (``group:artifact:version``) and their dependencies; fetched unless cached."""
    target = folder_of(*coordinates)
    if not target.is_dir():
        publish(target, lambda folder: _download(coordinates, folder))
    return sorted(target.glob("*.jar"))


def publish(target: Path, fill: Callable[[Path], None]) -> None:
    """Fill a new folder and rename it when it is complete, so that no process ever sees an incomplete one.

    Raises ``CannotRun`` where no folder can be made.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        room = tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-")
    except OSError as reason:
        raise CannotRun(
            f"cannot write to {target.parent} ({reason.strerror}); set FENCEPOST_CACHE to another folder"
        ) from None
    with room as scratch:
        folder = Path(scratch) / target.name
        folder.mkdir()
        fill(folder)
        try:
            folder.rename(target)
        except OSError:
            if not target.is_dir():  # otherwise another process was faster, with the same content
                raise


def _download(coordinates: tuple[str, ...], folder: Path) -> None:
    """Fetch the artifacts. Raises ``CannotRun`` with advice; the programs' whole output is then in a log beside the
    jars."""
    program = java()
    wanted = " and ".join(coordinates)
    tried: dict[str, str] = {}
    maven = shutil.which("mvn")
    if maven is not None:
        tried["mvn"] = _with_maven(maven, coordinates, folder)
    ivy = _pyspark_ivy()
    if ivy is not None and tried.get("mvn") != "":
        tried["Ivy"] = _with_ivy(program, ivy, coordinates, folder)
    if not tried:
        raise CannotRun(f"to fetch {wanted} {FETCHER}")
    if "" in tried.values():
        return
    log = cache_root() / "fetch.log"
    log.write_text("".join(f"--- {name}\n{said.rstrip()}\n" for name, said in tried.items()), encoding="utf-8")
    output = f"output of {' and '.join(tried)}: {log}"
    if all(_ABSENT.search(said) and not _UNREACHED.search(said) for said in tried.values()):
        raise CannotRun(f"there is no {wanted}: name a release that exists ({output})")
    raise CannotRun(f"could not fetch {wanted}: check the network and run again ({output})")


def _with_maven(maven: str, coordinates: tuple[str, ...], folder: Path) -> str:
    dependencies = ""
    for coordinate in coordinates:
        group, artifact, version = coordinate.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>fencepost</groupId><artifactId>jars</artifactId><version>1</version>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )
        return _call(
            [
                maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime",
                f"-DoutputDirectory={folder}",
            ],
            folder,
        )  # fmt: skip


def _with_ivy(program: str, ivy: Path, coordinates: tuple[str, ...], folder: Path) -> str:
    for coordinate in coordinates:
        said = _call(
            [
                program, "-jar", str(ivy), "-cache", str(cache_root() / "ivy"), "-confs", "default",
                "-dependency", *coordinate.split(":"), "-types", "jar", "bundle",
                "-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]",
            ],
            folder,
        )  # fmt: skip
        if said:
            return said
    return ""


def _call(command: list[str], folder: Path) -> str:
    """Run a fetching command; returns its whole output if it failed, else nothing."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"not finished after {FETCH_TIMEOUT_S} s"
    if answer.returncode == 0 and any(folder.glob("*.jar")):
        return ""
    return re.sub(r"\x1b\[\d*m", "", answer.stdout + answer.stderr) + f"exit status {answer.returncode}"


def _pyspark_ivy() -> Path | None:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        return None
    return next((Path(spark.origin).parent / "jars").glob("ivy-*.jar"), None)
