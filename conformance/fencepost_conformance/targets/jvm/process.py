"""A child process that answers lines with lines and never hangs: it answers, or an error shows its last output."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Sequence
from typing import IO, NoReturn

CHUNK = 1 << 16
TAIL = 2_000


class ProcessFault(Exception):
    """The process died, hung or answered nonsense; the message ends with its last lines on standard error."""


def in_a_line(fault: ProcessFault) -> str:
    """Return the fault's text without line ends."""
    return " ".join(str(fault).split())


class NoStart(ProcessFault):
    """The process did not reach its first line."""


class LineProcess:
    """One process, one exchange at a time. Usable only in the Python process that started it."""

    def __init__(self, command: Sequence[str], timeout_s: float = 60.0) -> None:
        self._program = command[0]
        self._timeout_s = timeout_s
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0
        )
        self._rest = b""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._in = self._child.stdin.fileno()
        self._out = self._child.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)

    @property
    def pid(self) -> int:
        return self._child.pid

    def ended(self) -> bool:
        return self._child.poll() is not None

    def read(self, count: int) -> list[bytes]:
        """The next lines, without their ends."""
        return self.exchange(b"", count)

    def exchange(self, data: bytes, count: int) -> list[bytes]:
        """Write all data while reading ``count`` lines, so that neither side can block the other.

        On an interrupt the process is ended: otherwise its late answer would be taken for the answer to the next
        question.
        """
        try:
            return self._exchange(data, count)
        except KeyboardInterrupt:
            self._child.kill()
            self.close()
            raise

    def _exchange(self, data: bytes, count: int) -> list[bytes]:
        unsent = memoryview(data)
        chunks = [self._rest]
        missing = count - self._rest.count(b"\n")
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            if unsent:
                selector.register(self._in, selectors.EVENT_WRITE)
            while missing > 0 or unsent:
                ready = selector.select(self._timeout_s)
                if not ready:
                    self._fail(f"no answer within {self._timeout_s:g} s")
                for key, _ in ready:
                    if key.fd == self._in:
                        unsent = self._write(unsent)
                        if not unsent:
                            selector.unregister(self._in)
                    else:
                        chunk = os.read(self._out, CHUNK)
                        if not chunk:
                            self._fail("it ended")
                        chunks.append(chunk)
                        missing -= chunk.count(b"\n")
        *lines, self._rest = b"".join(chunks).split(b"\n", count)
        return lines

    def _write(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._in, unsent[:CHUNK]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            self._fail("it ended")

    def tail(self) -> str:
        """Return the end of the process's standard error."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - TAIL))
        return self._errors.read().decode(errors="replace").strip()

    def _fail(self, reason: str) -> NoReturn:
        status = self._child.poll()
        output = self.tail()
        self.close()
        died = "" if status is None else f" (exit status {status})"
        raise ProcessFault(f"{self._program}: {reason}{died}. Last output:\n{output}")

    def close(self) -> None:
        """End the process: by the end of its input, else by a signal."""
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()
        deadline = time.monotonic() + 5
        while self._child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        self._errors.close()
