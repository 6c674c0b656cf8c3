"""The records of an offsets topic from a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...common.errors import CannotRun
from .dump import is_dump, read_dump
from .rows import LogRow, Notices
from .segments import SUFFIX, read_partition, require_partitions


def rows_from(path: Path, notices: Notices) -> Iterator[LogRow]:
    """Yield the records of log segments or of a dump, each partition in the order of its log. Raises ``CannotRun`` if
    there is nothing to read, and ``OSError``."""
    if not path.exists():
        raise CannotRun(f"{path}: no such file or folder")
    if path.is_file() and path.suffix != SUFFIX:
        if path.stat().st_size and not is_dump(path):
            raise CannotRun(f"{path}: neither a log segment ({SUFFIX}) nor a dump of fencepost decode (JSON lines)")
        return read_dump(path, notices)
    return _segments(path, notices)


def _segments(path: Path, notices: Notices) -> Iterator[LogRow]:
    found = require_partitions(path)

    def rows() -> Iterator[LogRow]:
        for number, segments in found:
            yield from read_partition(number, segments, notices)

    return rows()
