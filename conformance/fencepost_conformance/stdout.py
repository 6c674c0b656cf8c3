"""Standard output whose reader may go away, as in ``fencepost rules | head``.

What nobody reads any more is thrown away, and the command goes on: its exit status still tells what it found. (Letting
the signal kill the process would not do: the commands write to sockets and to pipes of their own, where a closed end is
an error to be told.)
"""

from __future__ import annotations

import io
import os
import sys


class _Output(io.TextIOWrapper):
    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            self._discard()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            self._discard()

    def _discard(self) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)
        super().flush()  # what is buffered still has to go


def survive_closed_pipe() -> None:
    """From now on ``sys.stdout`` raises nothing when its reader closes the pipe."""
    old = sys.stdout
    if isinstance(old, io.TextIOWrapper) and not isinstance(old, _Output):
        old.flush()
        sys.stdout = _Output(
            old.buffer, encoding=old.encoding, errors=old.errors, line_buffering=old.line_buffering, write_through=False
        )
