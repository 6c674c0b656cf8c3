"""A Spark session for one command, and the messages if there can be none."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import CannotRun
from ...targets.jvm.builds import Build
from ...targets.jvm.jars import cache_root
from .needs import Found, Look
from .place import Place, driver_address, is_cluster, require_reachable, submitted
from .shipping import Kit, ship

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: how often to check whether executors have come
_LOOK_S = 0.2
#: executors come one by one: when no other comes for so many seconds, those that are there count as all
_SETTLED_S = 1.0
#: on one machine, where the workers need its cores: with both compilers Spark's JVM took twice as long
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_QUIET = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True)
class Running:
    """A session, its folder on the driver, and what its Python workers open first. ``master``: where it really runs."""

    session: SparkSession
    scratch: Path
    kit: Kit
    master: str

    @property
    def cluster(self) -> bool:
        """Whether the executors may be on other machines."""
        return is_cluster(self.master)

    @property
    def cores(self) -> int:
        """Number of cores of all current executors."""
        return self.session.sparkContext.defaultParallelism


@contextmanager
def started(
    place: Place, packages: dict[str, str], builds: Sequence[Build] = (), *, light: bool = False
) -> Iterator[Running]:
    """Yield a session for work that imports these packages (``needs``) and runs these builds of Kafka. ``light``: all
    the work is in Python, and Spark only distributes it and collects rows.

    Executors of a cluster get this project's code and Kafka's, and are checked before this returns. Raises
    ``CannotRun`` if Spark is not installed, finds no JDK, no cluster or no executor that can do the work, or fails
    within the block.
    """
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415 — comes with Spark
        from pyspark.errors import PySparkException  # noqa: PLC0415 — Spark is optional, and slow to import
    except ModuleNotFoundError as missing:
        raise CannotRun(
            f"the Spark engine needs {missing.name}; install it, in the checkout: pip install -e '.[spark]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="fencepost-spark-", ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        session = spark_session(place, scratch, light=light)
        try:
            kit, master = Kit(), session.sparkContext.master or ""
            if is_cluster(master):
                _await_executors(session, place.wait_s)
                kit = ship(session.sparkContext, scratch, builds)
                _require_ready(session, Look(packages, java=bool(builds)))
            yield Running(session, scratch, kit, master)
        except (PySparkException, Py4JError) as broken:
            raise CannotRun(f"Spark failed: {cause(broken)}") from None
        finally:
            session.stop()


def spark_session(place: Place, scratch: Path, *, light: bool = False) -> SparkSession:
    """Return a quiet session: web pages only on request, and listening on loopback only unless configured otherwise.
    ``light``: as for ``started``.

    Raises ``CannotRun`` if there can be none.
    """
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    # only map and read are used, none of which concerns the version of pandas
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
    scratch.mkdir(parents=True, exist_ok=True)
    if place.master and is_cluster(place.master):
        require_reachable(place.master)
    words = scratch / "start.log"
    late = threading.Event()
    try:
        with _words_kept_in(words), _given_up_after(place.wait_s, late):
            return _session(_settings(place, scratch, light=light))
    except (PySparkException, Py4JError, OSError) as broken:
        log = _kept_log(words)
        if late.is_set():
            raise CannotRun(f"{place.master} gave no session within {place.wait_s} s (--wait){log}") from None
        if place.master and is_cluster(place.master):
            raise CannotRun(f"no session at {place.master}: {cause(broken)}{log}") from None
        raise CannotRun(f"Spark does not start; it needs a JDK of version 17 or later ({cause(broken)}){log}") from None


def _settings(place: Place, scratch: Path, *, light: bool) -> dict[str, str]:
    """Return the session's settings; spark-submit's override this function's, and the user's override both."""
    settings = {
        "spark.app.name": "fencepost",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.warehouse.dir": str((scratch / "warehouse").resolve()),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1",  # a batch is one chunk of the plan
        "spark.python.worker.reuse": "true",
        "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "1",  # rows of a task appear at once
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",  # marks a complete wave
    }
    if submitted():
        return settings | _decided() | dict(place.conf) | ({"spark.master": place.master} if place.master else {})
    logging = scratch / "log4j2.properties"
    logging.write_text(_QUIET)
    own = dict(place.conf).get("spark.driver.extraJavaOptions", "")
    settings["spark.local.dir"] = str((scratch / "spark").resolve())
    if not (place.master and is_cluster(place.master)):
        settings["spark.sql.shuffle.partitions"] = str(place.cores or os.cpu_count() or 1)
    settings |= driver_address(place) | dict(place.conf)
    settings["spark.master"] = place.master or place.here
    options = [f"-Dlog4j2.configurationFile={logging.resolve().as_uri()}"]
    if light and not (place.master and is_cluster(place.master)):
        options.append(_LIGHT)
    settings["spark.driver.extraJavaOptions"] = " ".join([*options, own]).rstrip()
    _choose_python(place)
    return settings


def _choose_python(place: Place) -> None:
    """Choose the workers' Python: this one if they share its machine, else the user's, else ``python3``.

    PySpark reads it from the environment, and only spark-submit puts the setting of that name there.
    """
    named = dict(place.conf).get("spark.pyspark.python")
    if named:
        os.environ["PYSPARK_PYTHON"] = named
    elif not (place.master and is_cluster(place.master)):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")


def _decided() -> dict[str, str]:
    """Return spark-submit's settings, which must not be changed here."""
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _session(settings: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 — Spark is optional, and slow to import

    builder: Any = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    return session


@contextmanager
def _given_up_after(seconds: int, late: threading.Event) -> Iterator[None]:
    """End the JVM of a session that has not started by then, since it would keep trying; ``late`` is set in that
    case."""
    from pyspark import SparkContext  # noqa: PLC0415

    over = threading.Event()

    def watch() -> None:
        if over.wait(seconds):
            return
        late.set()
        while not over.wait(_LOOK_S):  # on a busy machine the JVM may not be there yet
            program = getattr(SparkContext._gateway, "proc", None)
            if program is not None:
                program.kill()
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@contextmanager
def _words_kept_in(file: Path) -> Iterator[None]:
    """Redirect standard error of this process and its children to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with file.open("wb") as stream:
        os.dup2(stream.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _kept_log(words: Path) -> str:
    """Keep Spark's output of a failed start, and return where it is."""
    try:
        log = cache_root() / "spark.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(words.read_bytes())
    except OSError:
        return ""
    return f"; Spark's output is in {log}"


def _await_executors(session: SparkSession, wait_s: int) -> None:
    """Wait until there is an executor, and no other comes for a moment. Raises ``CannotRun``."""
    context = session.sparkContext
    assert context._jsc is not None
    deadline = time.monotonic() + wait_s
    known, since = 0, time.monotonic()
    while not known or time.monotonic() - since < _SETTLED_S:
        time.sleep(_LOOK_S)
        there = context._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is counted too
        if there != known:
            known, since = there, time.monotonic()
        if not known and time.monotonic() > deadline:
            conf = context.getConf()
            wanted = f"{conf.get('spark.executor.cores', 'all')} cores, {conf.get('spark.executor.memory', '1g')}"
            raise CannotRun(
                f"{context.master} provided no executor within {wait_s} s (--wait): it has no machine with enough room "
                f"for one (requested: {wanted}), or its executors cannot reach this process"
            )


def _require_ready(session: SparkSession, look: Look) -> None:
    """Raise ``CannotRun`` with what is missing and where, if an executor lacks something that the work needs."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    context = session.sparkContext
    tasks = context.defaultParallelism * 2
    try:
        found: list[Found] = context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    except (PySparkException, Py4JError) as broken:
        named = os.environ.get("PYSPARK_PYTHON", "python3")
        raise CannotRun(
            f"the executors cannot run {named}: {cause(broken)}; give a Python {sys.version_info[0]}."
            f"{sys.version_info[1]} that they have: --conf spark.pyspark.python=PATH"
        ) from None
    complaints = sorted(filter(None, {each.complaint() for each in found}))
    if complaints:
        raise CannotRun("; ".join(complaints))


#: how lines with the reason begin, the better ones first; of equals the last is closest to the cause
_REASON_LINES = (
    ("fencepost_conformance.", ""),
    ("ModuleNotFoundError: ", ""),
    ("pyspark.errors.exceptions.base.", ""),
    ("Caused by: ", "Caused by: "),
    (": ", ": "),  # after Py4J's own words
)


def cause(broken: Exception) -> str:
    """Return the line of a Spark error with the reason, in a worker if it occurred there, or its first line."""
    lines = [line.strip() for line in str(broken).splitlines() if line.strip()]
    for begin, dropped in _REASON_LINES:
        if found := [line for line in lines if line.startswith(begin)]:
            return found[-1].removeprefix(dropped)
    return lines[0] if lines else type(broken).__name__
