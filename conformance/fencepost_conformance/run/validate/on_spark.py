"""Check files of traces on the executors of a Spark session."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import CannotRun
from ...judge.checker.check import check_stream
from ...judge.checker.search import Limits
from ...judge.members.judge import with_breaches
from ..cluster import needs
from ..cluster.progress import job_progress
from ..cluster.session import Running, started
from .plan import PATTERNS, Plan, check_one, profile_named

if TYPE_CHECKING:
    from ...judge.checker.verdict import Verdict
    from ...traces.lines import Setting

#: The most files of one job, and the most bytes of files that the driver sends with it.
_FILES, _BYTES = 5_000, 32_000_000


@dataclass(frozen=True, slots=True)
class _Check:
    """Checks one file: by its path if the executors can read it, else by its name and content."""

    limits: Limits
    profile: str
    given: Mapping[str, Setting]

    def at(self, path: str) -> list[Verdict]:
        return check_one(Path(path), self.limits, self.profile, self.given)

    def of(self, file: tuple[str, bytes]) -> list[Verdict]:
        name, content = file
        profile = profile_named(self.profile)
        return list(check_stream(name, io.BytesIO(content), self.limits, profile, self.given, also=with_breaches))

    def of_row(self, row: Any) -> tuple[str, list[Verdict]]:
        """The verdicts about a file that Spark has read, with its path, since Spark returns files in any order."""
        return row["path"], self.of((row["path"], bytes(row["content"])))


def on_spark(plan: Plan, advance: Callable[[int], None]) -> Iterator[list[Verdict]]:
    """The verdicts of each file, in the order of the files, then of each URL. Calls ``advance`` with the number of
    files that are done. Raises CannotRun."""
    check = _Check(plan.limits, plan.profile, dict(plan.given))
    with started(plan.place, needs.FILES) as running:
        if running.cluster:
            for batch in _in_memory(plan.files):
                yield from _spread(running, batch, check.of, advance)
        else:
            for first in range(0, len(plan.files), _FILES):
                paths = [str(path) for path in plan.files[first : first + _FILES]]
                yield from _spread(running, paths, check.at, advance)
        for url in plan.urls:
            yield from _stored(running, url, check, advance)


def _spread(
    running: Running, items: Sequence[Any], check: Callable[[Any], list[Verdict]], advance: Callable[[int], None]
) -> list[list[Verdict]]:
    """The results of ``check`` for each item, in order, from one Spark job."""
    tasks = min(len(items), running.cores * 4)
    context = running.session.sparkContext
    with job_progress(running.session, len(items), tasks, advance):
        found: list[list[Verdict]] = context.parallelize(items, tasks).map(check).collect()
    return found


def _in_memory(files: Iterable[Path]) -> Iterator[list[tuple[str, bytes]]]:
    """Files with their contents, a few at a time: the executors of a cluster cannot read this machine's files."""
    batch: list[tuple[str, bytes]] = []
    size = 0
    for path in files:
        content = path.read_bytes()
        if batch and (size + len(content) > _BYTES or len(batch) == _FILES):
            yield batch
            batch, size = [], 0
        batch.append((str(path), content))
        size += len(content)
    if batch:
        yield batch


def _stored(running: Running, url: str, check: _Check, advance: Callable[[int], None]) -> Iterator[list[Verdict]]:
    """The verdicts about the files at a URL (a file, a folder, a pattern), which the executors read themselves."""
    session = running.session
    reader = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    pattern = f"{{{','.join(PATTERNS)}}}"
    paths = sorted(row["path"] for row in reader.option("pathGlobFilter", pattern).load(url).select("path").collect())
    if not paths:
        raise CannotRun(f"no trace at {url}: neither a file nor a folder with {' or '.join(PATTERNS)}")
    for first in range(0, len(paths), _FILES):
        wanted = paths[first : first + _FILES]
        tasks = min(len(wanted), running.cores * 4)
        contents = reader.load(wanted).select("path", "content").rdd.repartition(tasks)
        with job_progress(session, len(wanted), tasks, advance):
            found = dict(contents.map(check.of_row).collect())
        if lost := sorted({*wanted} - {*found}):
            raise CannotRun(f"Spark cannot read {lost[0]}; its name may contain a character of a pattern")
        yield from (found[path] for path in wanted)
