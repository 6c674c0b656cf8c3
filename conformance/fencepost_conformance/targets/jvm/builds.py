"""A build of Kafka: a release, whose jars are fetched, or a folder of jars."""

from __future__ import annotations

import hashlib
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from ...common.errors import CannotRun
from . import jars

ARTIFACT = "org.apache.kafka:kafka-group-coordinator"
#: Jars that the coordinator needs, and the release since which it does. Without the last two it runs, but gives other
#: answers, so all of them are required.
_NEEDED = (
    ("kafka-group-coordinator", ""),
    ("kafka-group-coordinator-api", ""),
    ("kafka-coordinator-common", ""),
    ("kafka-clients", ""),
    ("kafka-metadata", ""),
    ("kafka-server-common", ""),
    ("kafka-storage", ""),
    ("jackson-annotations", ""),
    ("jackson-core", ""),
    ("jackson-databind", ""),
    ("metrics-core", ""),
    ("pcollections", ""),
    ("slf4j-api", ""),
    ("re2j", ""),
    ("hash4j", "4.1"),
)
_JAR = re.compile(r"(?P<artifact>[A-Za-z][\w.-]*?)-(?P<version>\d+(?:\.\d+)+[\w.-]*|\d+[\w.]*)\.jar")
#: Jars of a build that are not needed at run time.
_BESIDE = re.compile(r"-(sources|javadoc|scaladoc|tests?|test-sources|test-fixtures|jmh)\.jar$")
#: Places of the jars in a given folder: the jars themselves, an unpacked release, a source tree after a build.
_PLACES = (
    ("*.jar",),
    ("libs/*.jar",),
    ("*/build/libs/*.jar", "*/*/build/libs/*.jar", "*/build/dependant-libs*/*.jar"),
)
_VERSION_FILE = "kafka/kafka-version.properties"


@dataclass(frozen=True, slots=True)
class Build:
    """``version``: as Kafka reports it; ``folder``: absolute path of the jars, or nothing for a release."""

    version: str
    folder: str = ""

    def libraries(self) -> list[Path]:
        """Return the jars. Raises ``CannotRun`` if there are none."""
        return _jars_in(Path(self.folder)) if self.folder else jars.fetch(f"{ARTIFACT}:{self.version}")

    def stamp(self) -> str:
        """Return an identity of the build's code: its version, and for a folder a digest of the jars, which can
        change."""
        if not self.folder:
            return self.version
        total = hashlib.sha256()
        for jar in self.libraries():
            total.update(jar.name.encode() + b"\0" + hashlib.sha256(jar.read_bytes()).digest())
        return f"{self.version}-{total.hexdigest()[:16]}"


def in_folder(name: str) -> Build:
    """Return the build whose jars are in the folder. Raises ``CannotRun`` if there is none, or an incomplete one."""
    folder = Path(name).expanduser().absolute()
    if not folder.is_dir():
        raise CannotRun(f"{name} is not a folder" if folder.exists() else f"there is no folder {name}")
    found = _jars_in(folder)
    if not found:
        raise CannotRun(
            f"no jars in {name}: give the libs folder of an unpacked release, or the source tree of a build"
        )
    versions = _versions(found)
    if "kafka-clients" not in versions:
        raise CannotRun(f"no kafka-clients-VERSION.jar among the jars in {name}")
    _require_one(name, versions)
    version = _version_in(next(jar for jar in found if jar.name.startswith("kafka-clients-")))
    named = min(versions["kafka-clients"])
    if version not in ("", named):
        raise CannotRun(f"two versions in {name}: kafka-clients-{named}.jar contains Kafka {version}")
    missing = [artifact for artifact, since in _NEEDED if artifact not in versions and numbers(named) >= numbers(since)]
    if missing:
        raise CannotRun(f"Kafka {named} in {name} is incomplete: no jar of {', '.join(missing)}")
    return Build(named, str(folder))


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a version: (4, 5, 0) for ``4.5.0-SNAPSHOT``."""
    begin = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, begin[0].split("."))) if begin else ()


def _jars_in(folder: Path) -> list[Path]:
    """Return the jars needed at run time; of several with one name the first, so that a module's own wins over a
    copy."""
    for places in _PLACES:
        first: dict[str, Path] = {}
        for place in places:
            for jar in sorted(folder.glob(place)):
                if not _BESIDE.search(jar.name):
                    first.setdefault(jar.name, jar)
        if first:
            return list(first.values())
    return []


def _versions(found: list[Path]) -> dict[str, set[str]]:
    versions: dict[str, set[str]] = {}
    for jar in found:
        read = _JAR.fullmatch(jar.name)
        if read is not None:
            versions.setdefault(read["artifact"], set()).add(read["version"])
    return versions


def _require_one(name: str, versions: dict[str, set[str]]) -> None:
    """Raise ``CannotRun`` if Kafka's own required jars are of several versions."""
    of_version: dict[str, str] = {}
    for artifact in (artifact for artifact, _ in _NEEDED if artifact.startswith("kafka")):
        for version in sorted(versions.get(artifact, ())):
            of_version.setdefault(version, f"{artifact}-{version}.jar")
    if len(of_version) > 1:
        raise CannotRun(f"{len(of_version)} versions of Kafka in {name}: {', '.join(of_version.values())}")


def _version_in(clients: Path) -> str:
    """Return the version that the clients' jar reports, or nothing."""
    try:
        with zipfile.ZipFile(clients) as jar:
            lines = jar.read(_VERSION_FILE).decode().splitlines() if _VERSION_FILE in jar.namelist() else []
    except (OSError, zipfile.BadZipFile):
        raise CannotRun(f"{clients} is not a jar that can be read") from None
    return next((line.removeprefix("version=").strip() for line in lines if line.startswith("version=")), "")
