"""Ctrl-C and SIGTERM: results so far are reported, and started processes are ended.

SIGTERM (a time limit of a CI job, ``timeout``, ``docker stop``) acts like Ctrl-C: it raises ``Terminated``, a
``KeyboardInterrupt``, so that every ``with`` and ``finally`` on the way out stops processes and removes folders.

A command with partial results reports them at the first of the two::

    with interruptible() as cut:
        for rows in work():
            summary.add(rows)
    result.stopped = cut.reason(f"{summary.traces} of {counted(plan.count, 'traces')} done")
    finish(result, as_json=as_json)

A second Ctrl-C ends the command at once. An interrupted command never passes (``docs/command-line.md``).
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

#: seconds after an interruption during which SIGTERM is ignored: ``timeout`` and supervisors send it to a process and
#: then to its group, while that is clearing up
_DEAF_S = 10.0

INTERRUPTED = "interrupted"
#: loggers of Spark's bridge to its JVM, which logs every passing exception with its whole stack
_TALKERS = ("", "py4j.clientserver", "py4j.java_gateway")

_heard: float | None = None


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


@dataclass(slots=True)
class Interruption:
    """Whether Ctrl-C or SIGTERM ended the block of this object."""

    happened: bool = False

    def reason(self, done: str) -> str | None:
        """Return why a result is incomplete, for ``finish``; ``done``: the finished part. None if the block was not
        ended."""
        return f"{INTERRUPTED}; {done}" if self.happened else None


def listen_to_sigterm() -> None:
    """Let SIGTERM raise ``Terminated`` in the main thread from now on. In another thread this has no effect."""
    for name in _TALKERS:
        logging.getLogger(name).addFilter(_of_no_interruption)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """Let Ctrl-C or SIGTERM end the block, and not the command; the ``Interruption`` shows it afterwards."""
    cut = Interruption()
    try:
        yield cut
    except KeyboardInterrupt:
        cut.happened = True
        _now_deaf()


def _now_deaf() -> None:
    global _heard  # noqa: PLW0603 — signals belong to the process
    _heard = time.monotonic()


def _of_no_interruption(record: logging.LogRecord) -> bool:
    """Whether a log record is about something other than an interruption."""
    reason = record.exc_info[1] if record.exc_info else None
    while reason is not None and not isinstance(reason, KeyboardInterrupt):
        reason = reason.__cause__ or reason.__context__
    return reason is None


def _terminate(*_: Any) -> None:
    if _heard is None or time.monotonic() - _heard > _DEAF_S:
        _now_deaf()
        raise Terminated
