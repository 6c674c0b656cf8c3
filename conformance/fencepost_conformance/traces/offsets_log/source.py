"""The records of an offsets topic, from a path or from a running cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...common.addresses import parse_address
from ...common.errors import CannotRun
from ..wire.access import read_access
from .dump import is_dump, read_dump
from .rows import LogRow, Notices
from .segments import SUFFIX, read_partition, require_partitions


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records are: the path ``log``, or the cluster at ``bootstrap`` (HOST:PORT), with ``client_config``."""

    log: Path | None = None
    bootstrap: str | None = None
    client_config: Path | None = None

    def rows(self, notices: Notices, group: str | None = None) -> Iterator[LogRow]:
        """Yield the records; with ``group``, at least those of its partition. Raises ``CannotRun`` and ``OSError``."""
        if (self.log is None) == (self.bootstrap is None):
            raise CannotRun(
                "say where the records are: either a path (log segments or a dump), or --bootstrap HOST:PORT"
            )
        if self.log is not None:
            if self.client_config is not None:
                raise CannotRun("--client-config is for --bootstrap only")
            return rows_from(self.log, notices)
        from .topic import read_topic  # noqa: PLC0415 - needs asyncio, which paths do not

        at = parse_address(self.bootstrap or "", "--bootstrap")
        return read_topic(at, read_access(self.client_config), notices, group)


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
