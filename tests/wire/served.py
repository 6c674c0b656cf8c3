"""``fencepost serve`` in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType
from typing import Self

_PROGRAM = ("-m", "fencepost_conformance.cli")


class Served:
    """A context manager; ``bootstrap`` is set once it is entered. ``port`` 0: a free port, which stays over a restart.
    ``program``: what Python runs in place of the command."""

    def __init__(
        self, *options: str, topics: tuple[str, ...] = ("orders:4",), program: tuple[str, ...] = _PROGRAM
    ) -> None:
        self._program = program
        self._options = [*options, *[word for topic in topics for word in ("--topic", topic)]]
        self.bootstrap = "127.0.0.1:0"
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> Self:
        command = [sys.executable, *self._program, "serve", "--json", "--listen", self.bootstrap]
        self.process = subprocess.Popen([*command, *self._options], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready, f"ended with {self.process.wait()}"
        self.bootstrap = json.loads(ready)["listen"]
        return self

    def kill(self) -> None:
        """Kill the process with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> int:
        """End the process with SIGTERM; return the exit status."""
        assert self.process is not None
        self.process.terminate()
        self.process.communicate(timeout=120)
        return self.process.returncode

    __enter__ = start

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
