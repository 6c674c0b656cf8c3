"""The history of the groups in log segments or in a dump, from the executors of a Spark session.

All records of a group are in one partition of the offsets topic, so each partition has a separate history. Log segments
are divided by partition: a task reads those of one. A dump is divided by bytes: a task reads the lines of one piece,
and Spark sorts the records by partition and line. Either way a task keeps one batch or line and the state of the
groups, but no log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...common.errors import CannotRun
from ...judge.history.events import History
from ...judge.history.one_pass import history_of, merged
from ...traces.offsets_log.dump import Piece, line_ends, pieces, read_piece
from ...traces.offsets_log.rows import LogRow, Notices
from ...traces.offsets_log.segments import SUFFIX, read_partition, require_partitions
from ..cluster import needs
from ..cluster.place import Place
from ..cluster.progress import job_progress
from ..cluster.session import Running, started

if TYPE_CHECKING:
    from pyspark import RDD

#: of a row of the shuffle: its kind, then the partition and line of a record, or the first byte of a piece and 0
_Key = tuple[int, int, int]
_RECORD: Final = 0
_NOTICES: Final = 1
#: tasks for each core that read a dump's partitions, so that a core that is finished early takes another
_TASKS: Final = 4
Part = tuple[list[History], Notices]


@dataclass(frozen=True, slots=True)
class Reading:
    """The work of the tasks. ``only``: the one group to read."""

    only: str | None

    def partition(self, work: tuple[int, list[Path]]) -> Part:
        """Tell the groups of one partition from its segments."""
        number, segments = work
        notices = Notices()
        for each in segments:
            require_here(each)
        history = history_of(read_partition(number, segments, notices), self.only)
        return ([history] if history.logs else []), notices

    @staticmethod
    def records(work: tuple[Path, Piece, int]) -> Iterator[tuple[_Key, Any]]:
        """Yield the records of a piece of a dump, then what could not be read."""
        path, piece, line = work
        notices = Notices()
        require_here(path)
        for number, row in read_piece(path, piece, line, notices):
            yield (_RECORD, row.partition, number), tuple(row)
        yield (_NOTICES, piece.begin, 0), notices

    def sorted_records(self, rows: Iterable[tuple[_Key, Any]]) -> Iterator[tuple[int, History | Notices]]:
        """Tell the groups of the partitions whose records these are; pass on the notices with their place."""
        for (kind, number), some in groupby(rows, key=lambda row: row[0][:2]):
            if kind == _NOTICES:
                for _, notices in some:
                    yield number, notices
            else:
                yield number, history_of((LogRow(*row) for _, row in some), self.only)


def require_here(path: Path) -> None:
    """Raise ``CannotRun`` if this machine cannot read the path."""
    if not path.exists():
        raise CannotRun(f"an executor has no {path}: every machine of a cluster must have --log under the same path")


def on_spark(path: Path, place: Place, only: str | None, advance: Callable[[int], None]) -> tuple[History, Notices]:
    """Return the history of the groups, or of the group ``only``, and what could not be read. ``path``: log segments
    or a dump, as for ``rows_from``. Raises ``CannotRun`` and ``OSError``."""
    with started(place, needs.LOGS, light=True) as running:
        return in_session(running, path, only, advance)


def in_session(
    running: Running, path: Path, only: str | None, advance: Callable[[int], None]
) -> tuple[History, Notices]:
    """Return the same from a running session. The executors of a cluster need the whole path."""
    if running.cluster:
        path = path.resolve()
    read = _dump if path.is_file() and path.suffix != SUFFIX else _segments
    histories, notices = read(running, path, Reading(only), advance)
    return merged(histories), notices


def _segments(running: Running, path: Path, reading: Reading, advance: Callable[[int], None]) -> Part:
    found = require_partitions(path)
    largest = sorted(found, key=lambda each: -sum(segment.stat().st_size for segment in each[1]))
    context = running.session.sparkContext
    with job_progress(running.session, 0, len(largest), advance):
        parts: dict[int, Part] = dict(
            context.parallelize(largest, len(largest)).map(lambda work: (work[0], reading.partition(work))).collect()
        )
    notices = Notices()
    histories: list[History] = []
    for number, _ in found:
        some, unread = parts[number]
        histories += some
        notices.extend(unread)
    advance(sum(history.records for history in histories))
    return histories, notices


def _dump(running: Running, path: Path, reading: Reading, advance: Callable[[int], None]) -> Part:
    context = running.session.sparkContext
    some = pieces(path.stat().st_size)
    tasks = max(len(some), 1)
    counts: list[int] = context.parallelize(some, tasks).map(lambda piece: line_ends(path, piece)).collect()
    work = [(path, piece, sum(counts[:place])) for place, piece in enumerate(some)]
    records: RDD[tuple[_Key, Any]] = context.parallelize(work, tasks).flatMap(reading.records)
    parts: list[tuple[int, Any]] = (
        records.repartitionAndSortWithinPartitions(running.cores * _TASKS, itemgetter(1))
        .mapPartitions(reading.sorted_records)
        .collect()
    )
    histories = [each for _, each in parts if isinstance(each, History)]
    notices = Notices()
    for _, unread in sorted((row for row in parts if isinstance(row[1], Notices)), key=itemgetter(0)):
        notices.extend(unread)
    advance(sum(history.records for history in histories))
    return histories, notices
