"""The files that executors get: the three packages as one archive, and for each build of Kafka the classes that run it.

An executor needs no checkout and no cache of jars. The archives are named after their contents, so an executor with
older code than the driver's can never run it by mistake.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING

from ...targets.jvm.builds import Build

if TYPE_CHECKING:
    from pyspark import SparkContext

PACKAGES = ("fencepost", "fencepost_server", "fencepost_consumer", "fencepost_model", "fencepost_conformance")
_LEFT_OUT = ("__pycache__", ".pyc", ".pyo")
#: the oldest time that a zip file can store; with it the same contents make the same archive
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def package_files(package: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an imported package, wherever it was imported from: path below it, contents; in order."""
    yield from _below(files(package), "")


def _below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name.endswith(_LEFT_OUT):
            continue
        if item.is_dir():
            yield from _below(item, f"{path}{item.name}/")
        else:
            yield path + item.name, item.read_bytes()


def write_code(folder: Path) -> Path:
    """The three packages as a zip file that Python imports from; with their data, without their tests."""
    contents = {f"{package}/{path}": data for package in PACKAGES for path, data in package_files(package)}
    return _write(folder, "fencepost-code", contents, zipfile.ZIP_DEFLATED)


def write_classpath(folder: Path, name: str, classpath: Sequence[Path]) -> Path:
    """A class path as a zip file: jars and folders of classes, numbered, since the first that has a class gives it."""
    contents: dict[str, bytes] = {}
    for number, entry in enumerate(classpath):
        place = f"{number:03}-{entry.name}"
        if entry.is_dir():
            inside = sorted(file for file in entry.rglob("*") if file.is_file())
            contents |= {f"{place}/{file.relative_to(entry)}": file.read_bytes() for file in inside}
        else:
            contents[place] = entry.read_bytes()
    return _write(folder, f"fencepost-{name}", contents, zipfile.ZIP_STORED)  # jars are compressed already


def _write(folder: Path, name: str, contents: Mapping[str, bytes], compression: int) -> Path:
    digest = hashlib.sha256()
    for path, data in contents.items():
        digest.update(f"{path}\0{len(data)}\0".encode() + data)
    target = folder / f"{name}-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(target, "w", compression) as archive:
        for path, data in contents.items():
            archive.writestr(zipfile.ZipInfo(path, _NO_TIME), data, compression)
    return target


@dataclass(frozen=True, slots=True)
class Kit:
    """What a Python worker opens before its first trace; plain values, so that each task can carry it.

    ``classpaths``: builds of Kafka, with the names under which Spark unpacked their archives. For workers on the
    driver's own machine it is empty, since they have everything already.
    """

    classpaths: tuple[tuple[Build, str], ...] = ()

    def open(self) -> None:
        """Let this process run these builds of Kafka from the shipped files."""
        if not self.classpaths:
            return
        from pyspark import SparkFiles  # noqa: PLC0415 — Spark is optional, and slow to import

        from ...targets.jvm import harness  # noqa: PLC0415 — a worker without it needs no Java

        for build, name in self.classpaths:
            harness.provide(build, sorted(Path(SparkFiles.get(name)).iterdir()))


def ship(context: SparkContext, folder: Path, builds: Sequence[Build]) -> Kit:
    """Give the executors, also later ones, the packages and the classes that run these builds of Kafka."""
    import sys  # noqa: PLC0415

    from ...targets.jvm import harness  # noqa: PLC0415

    before = list(sys.path)
    context.addPyFile(str(write_code(folder)))
    sys.path[:] = before  # Spark also puts it before this process's packages, which would then come from two places
    classpaths: list[tuple[Build, str]] = []
    for build in builds:
        archive = write_classpath(folder, f"kafka-{build.version}", harness.classpath(build))
        context.addArchive(f"{archive}#{archive.stem}")
        classpaths.append((build, archive.stem))
    return Kit(tuple(classpaths))
