"""The engines that read a log and return the history of its groups: this process, or Spark."""

from __future__ import annotations

from dataclasses import dataclass

from ...common.errors import CannotRun
from ...common.nearest import unknown
from ...judge.history.events import History
from ...judge.history.one_pass import history_of
from ...show.console import Meter
from ...traces.offsets_log.rows import Notices
from ...traces.offsets_log.source import Source
from ..cluster.place import Place

ENGINES = ("local", "spark")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the log of a source on an engine; ``place``: of Spark."""

    source: Source
    engine: str
    place: Place

    def read(self, meter: Meter, only: str | None) -> tuple[History, Notices]:
        """Return the history of the groups in the log, or of the group ``only``, and what could not be read. Both
        engines return the same. Raises ``CannotRun`` and ``OSError``."""
        if self.engine not in ENGINES:
            raise CannotRun(unknown("engine", self.engine, ENGINES, f"known: {', '.join(ENGINES)}"))
        notices = Notices()
        if self.engine == "local":
            return history_of(meter.count(self.source.rows(notices, only)), only), notices
        if self.source.log is None:
            raise CannotRun("--engine spark reads a path: give --log with log segments or a dump")
        from .on_spark import on_spark  # noqa: PLC0415 - Spark is optional, and slow to import

        self.source.rows(notices)  # says what is wrong with the options or the path
        return on_spark(self.source.log, self.place, only, meter.advance)
