"""Signals that come while a worker process starts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import active_children, popen_spawn_posix
from pathlib import Path

import pytest

from fencepost_conformance.common.processes import worker_processes

TIMEOUT_S = 60


@contextmanager
def handler(number: signal.Signals, handler: signal.Handlers | object) -> Iterator[None]:
    before = signal.signal(number, handler)  # type: ignore[arg-type]
    try:
        yield
    finally:
        signal.signal(number, before)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for a process in /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_worker_starts_leaves_no_worker(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread, such as that of the progress lines, takes a signal that the main thread blocks. When the handler
    runs, the worker is among the children, so that it can be ended."""
    started: list[int] = []
    children: list[int | None] = []
    launch = popen_spawn_posix.Popen._launch

    def interrupted(self: popen_spawn_posix.Popen, process: object) -> None:
        launch(self, process)  # type: ignore[arg-type]
        started.append(self.pid)
        os.kill(os.getpid(), number)
        time.sleep(0.01)  # the handler of a signal runs between two instructions

    def raises(*_: object) -> None:
        children.extend(child.pid for child in active_children())
        raise KeyboardInterrupt

    monkeypatch.setattr(popen_spawn_posix.Popen, "_launch", interrupted)
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    try:
        with handler(number, raises), pytest.raises(KeyboardInterrupt), worker_processes(1) as pool:
            pool.submit(abs, 1)
    finally:
        over.set()
        other.join()
    assert children == started
    (pid,) = started
    deadline = time.monotonic() + TIMEOUT_S
    while runs(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
