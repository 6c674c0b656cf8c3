"""A Spark session for one command, and what to say where there can be none."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .console import CannotRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def started(cores: int) -> Iterator[tuple[SparkSession, Path]]:
    """A session on so many cores of this machine, and a folder that goes with it.

    Raises ``CannotRun`` if Spark is not installed, finds no JDK, or gives up within the block.
    """
    try:
        from pyspark.errors import PySparkException  # noqa: PLC0415 — Spark is optional, and slow to import

        from .pipeline.spark import spark_session  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise CannotRun(
            f"the Spark engine needs {missing.name}; install it, in the checkout: pip install -e '.[spark]'"
        ) from None
    with tempfile.TemporaryDirectory(prefix="fencepost-spark-", ignore_cleanup_errors=True) as scratch:
        try:
            session = spark_session(cores, Path(scratch))
        except PySparkException as broken:
            raise CannotRun(f"Spark does not start; it needs a JDK of version 17 or later ({_cause(broken)})") from None
        try:
            yield session, Path(scratch)
        except PySparkException as broken:
            raise CannotRun(f"Spark gave up: {_cause(broken)}") from None
        finally:
            session.stop()


def _cause(broken: Exception) -> str:
    """The one line of a Spark error that says what was wrong in a worker, or its first line."""
    lines = [line.strip() for line in str(broken).splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("fencepost_conformance.")]
    return (named or lines or [type(broken).__name__])[-1 if named else 0]
