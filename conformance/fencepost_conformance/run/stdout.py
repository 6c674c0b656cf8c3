"""Standard output whose reader may close it, as in ``fencepost rules | head``.

Output after that is discarded, and the command continues: its exit status still shows the result. (The default action
of the signal would not do: the commands write to sockets and pipes too, where a closed end is an error.)
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
        super().flush()  # still write what is buffered


def survive_closed_pipe() -> None:
    """Let ``sys.stdout`` raise nothing from now on when its reader closes the pipe."""
    old = sys.stdout
    if isinstance(old, io.TextIOWrapper) and not isinstance(old, _Output):
        old.flush()
        sys.stdout = _Output(
            old.buffer, encoding=old.encoding, errors=old.errors, line_buffering=old.line_buffering, write_through=False
        )
