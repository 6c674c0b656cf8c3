"""The command of a client under test: one process with its output."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import signal
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ...common.errors import CannotRun

#: what a command must name, and what it may place itself
_NEEDED: Final = ("{bootstrap}", "{group}", "{topic}")
_OPTIONS: Final = "{options}"
#: a client that writes more than this floods
_MOST_BYTES: Final = 16 * 1024 * 1024
_LONGEST_LINE: Final = 1024 * 1024
_KEPT_LINES: Final = 500
#: how long the last output of a process that has ended may take, in seconds
_LAST_WORDS_S: Final = 2.0
#: the exit status of a client that lacks what the case needs
NOT_SUPPORTED: Final = 64


@dataclass(frozen=True, slots=True)
class Said:
    """An event that the client wrote. ``at_s``: of ``time.monotonic``."""

    at_s: float
    event: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Logged:
    """A line that the client wrote to standard error. ``at_s``: of ``time.monotonic``."""

    at_s: float
    line: str


def words_of(command: str) -> list[str]:
    """Split a command of ``--client`` into its words. Raises ``CannotRun`` if it cannot be run."""
    try:
        words = shlex.split(command)
    except ValueError as wrong:
        raise CannotRun(f"--client {command!r} cannot be split into words: {wrong}") from None
    if lacking := [each for each in _NEEDED if each not in command]:
        raise CannotRun(f"--client {command!r} lacks {', '.join(lacking)}, which the suite replaces for each case")
    if shutil.which(words[0]) is None:
        raise CannotRun(f"--client: there is no program {words[0]!r}")
    return words


def filled(words: Sequence[str], bootstrap: str, group: str, topic: str, options: Sequence[str]) -> list[str]:
    """Return the command of one process. The options follow it, unless it says where they belong."""
    values = {"{bootstrap}": bootstrap, "{group}": group, "{topic}": topic, _OPTIONS: shlex.join(options)}
    made = []
    for word in words:
        for name, value in values.items():
            word = word.replace(name, value)  # noqa: PLW2901
        made.append(word)
    return made if any(_OPTIONS in word for word in words) else [*made, *options]


@dataclass(slots=True)
class ClientProcess:
    """A running client. ``said``: its events. ``errors``: its last lines on standard error. ``flooded``: it wrote too
    much, and was killed."""

    process: asyncio.subprocess.Process
    said: list[Said] = field(default_factory=list)
    errors: deque[Logged] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    flooded: bool = False
    _readers: list[asyncio.Task[None]] = field(default_factory=list)

    @classmethod
    async def start(cls, command: Sequence[str]) -> ClientProcess:
        """Start a process in a new process group. Raises ``OSError``."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LONGEST_LINE,
        )
        made = cls(process)
        assert process.stdout is not None
        assert process.stderr is not None
        made._readers = [
            asyncio.ensure_future(made._read(process.stdout, made._event)),
            asyncio.ensure_future(made._read(process.stderr, made._complaint)),
        ]
        return made

    async def _read(self, stream: asyncio.StreamReader, take: Any) -> None:
        total = 0
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # a line without an end
                self._flood()
                return
            if not line:
                return
            total += len(line)
            if total > _MOST_BYTES:
                self._flood()
                return
            take(line.decode(errors="replace").rstrip())

    def _flood(self) -> None:
        self.flooded = True
        self.signal(signal.SIGKILL)

    def _event(self, line: str) -> None:
        try:
            values = json.loads(line)
        except ValueError:
            return
        if isinstance(values, dict) and isinstance(values.get("event"), str):
            self.said.append(Said(time.monotonic(), values["event"], values))

    def _complaint(self, line: str) -> None:
        if line.strip():
            self.errors.append(Logged(time.monotonic(), line))

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process and to those that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    @property
    def ended(self) -> int | None:
        """The exit status; None while it runs."""
        return self.process.returncode

    @property
    def last_words(self) -> str:
        """The last line on standard error, in brackets; empty if there is none."""
        return f" ({self.errors[-1].line[:200]})" if self.errors else ""

    async def read_out(self) -> None:
        """Read what a process that has ended wrote last; a child that it left behind may keep its output open."""
        await asyncio.wait(self._readers, timeout=_LAST_WORDS_S)

    async def close(self, within_s: float) -> bool:
        """Ask it to close; return whether it ended by itself in this time."""
        self.signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(within_s):
                await self.process.wait()
        except TimeoutError:
            await self.kill()
            return False
        await self.kill()  # what it may have left behind
        return True

    async def kill(self) -> None:
        """End it and everything that it started, and read the rest of its output."""
        self.signal(signal.SIGKILL)
        await self.process.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_S):
                await asyncio.gather(*self._readers, return_exceptions=True)
        for reader in self._readers:
            reader.cancel()
