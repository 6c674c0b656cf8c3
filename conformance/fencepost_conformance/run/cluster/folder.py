"""Folders for a run's rows: on this machine, or any that Spark can write, through Hadoop's file systems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...common.errors import CannotRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_NO_S3A = re.compile(r"org\.apache\.hadoop\.fs\.s3a")
_HADOOP_AWS = (
    "; s3a:// needs --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:VERSION (the version of Spark's Hadoop)"
)


def is_url(name: str) -> bool:
    """Whether a name has a scheme (``hdfs://``, ``s3a://``, ``file:/``), so that it means the same on every machine."""
    return bool(_URL.match(name))


class Folder(Protocol):
    """The folder of a run's plan and rows. Paths are relative, with slashes."""

    name: str

    def read(self, path: str) -> str | None:
        """Return the contents of a small file, None if there is none."""

    def create(self, path: str, text: str) -> bool:
        """Write a small file, unless it exists."""

    def exists(self, path: str) -> bool: ...

    def for_spark(self, path: str) -> str:
        """Return the name with which Spark reads and writes it."""


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = str(folder)
        self._folder = folder

    def read(self, path: str) -> str | None:
        file = self._folder / path
        return file.read_text(encoding="utf-8") if file.exists() else None

    def create(self, path: str, text: str) -> bool:
        try:
            with (self._folder / path).open("x", encoding="utf-8") as stream:
                stream.write(text)
        except FileExistsError:
            return False
        return True

    def exists(self, path: str) -> bool:
        return (self._folder / path).exists()

    def for_spark(self, path: str) -> str:
        return str(self._folder / path)


class HadoopFolder:
    """A folder by its URL, through the session's Hadoop. Raises ``CannotRun`` if it cannot be reached."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.name = url.rstrip("/")
        self._jvm: Any = session.sparkContext._jvm
        with self._raising_cannot_run():
            assert session.sparkContext._jsc is not None
            configuration = session.sparkContext._jsc.hadoopConfiguration()
            self._files = self._path("").getFileSystem(configuration)
            self._files.mkdirs(self._path(""))

    def read(self, path: str) -> str | None:
        with self._raising_cannot_run():
            if not self.exists(path):
                return None
            stream = self._files.open(self._path(path))
            try:
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()

    def create(self, path: str, text: str) -> bool:
        with self._raising_cannot_run():
            if self.exists(path):
                return False
            stream = self._files.create(self._path(path), False)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        return True

    def exists(self, path: str) -> bool:
        with self._raising_cannot_run():
            return bool(self._files.exists(self._path(path)))

    def for_spark(self, path: str) -> str:
        return f"{self.name}/{path}"

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.name}/{path}" if path else f"{self.name}/")

    @contextmanager
    def _raising_cannot_run(self) -> Iterator[None]:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415 — comes with Spark

        try:
            yield
        except Py4JJavaError as broken:
            reason = str(broken.java_exception.toString()).splitlines()[0]
            raise CannotRun(f"{self.name}: {reason}{_HADOOP_AWS if _NO_S3A.search(reason) else ''}") from None


def folder_of(session: SparkSession, name: str | Path) -> Folder:
    """Return the folder of that name: a path of this machine, or a URL."""
    if isinstance(name, str) and is_url(name):
        return HadoopFolder(session, name)
    return LocalFolder(Path(name))
