"""The output of a recording: one line an event, in order, complete lines only.

Lines that cannot be written (a full disk) are kept in memory and tried again with the next one. Lines that still cannot
be written at the end go to a file in the system's temporary folder. So nothing is lost while any disk has room.
"""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from ...common.counting import counted
from ...common.errors import CannotRun


def part_of(path: Path) -> Path:
    """Return the file that a trace of that name has while it is recorded."""
    return path.with_name(path.name.removesuffix(".gz") + ".part") if path.suffix == ".gz" else path


def require_free(path: Path, *, replace: bool) -> None:
    """Raise CannotRun if a trace of that name exists and must not be replaced."""
    if not replace and path.exists() and not path.is_dir():
        raise CannotRun(f"{path} already exists; give another name, or use --force to overwrite it")


class Output:
    """Appends lines to a new file. A name that ends in ``.gz`` is compressed when it is closed.

    While recording, such a file is plain text next to it (``part_of``). An existing one is all that is left of a
    crashed recording, and is not overwritten. Nor is a finished trace, unless ``replace``. Raises CannotRun where
    nothing can be written.
    """

    def __init__(self, path: Path, complain: Callable[[str], None], *, replace: bool = False) -> None:
        require_free(path, replace=replace)
        self.path = path
        self.written = 0  #: bytes of complete lines in the file
        self._complain = complain
        self._waiting: list[bytes] = []
        self._troubled = False
        self._plain = part_of(path)
        fresh = os.O_TRUNC if replace and self._plain == path else os.O_EXCL
        try:
            if self._plain != path and path.is_dir():
                raise IsADirectoryError(f"{path} is a directory")
            self._file = os.open(self._plain, os.O_WRONLY | os.O_CREAT | fresh, 0o644)
        except FileExistsError:
            raise CannotRun(f"{self._plain} is left from an interrupted recording; move it away first") from None
        except OSError as error:
            raise CannotRun(f"cannot write the trace to {path}: {error.strerror or error}") from None

    def write(self, line: str) -> None:
        self._waiting.append(line.encode() + b"\n")
        self._flush()

    def _flush(self) -> None:
        chunk = b"".join(self._waiting)
        try:
            done = 0
            while done < len(chunk):
                done += os.write(self._file, chunk[done:])
        except OSError as error:
            # Half a line would make the file unreadable: cut it off and keep the rest in memory.
            os.ftruncate(self._file, self.written)
            os.lseek(self._file, self.written, os.SEEK_SET)
            if not self._troubled:
                self._complain(f"cannot write to {self._plain} ({error.strerror}); keeping events in memory meanwhile")
            self._troubled = True
            return
        self.written += len(chunk)
        self._waiting.clear()
        self._troubled = False

    def close(self) -> Path:
        """Finish the file and return its path. Raises CannotRun, with the place of the events, if it is incomplete."""
        self._flush()
        os.close(self._file)
        if self._waiting:
            rest, name = tempfile.mkstemp(prefix="fencepost-", suffix=".jsonl")
            with os.fdopen(rest, "wb") as rescue:
                rescue.writelines(self._waiting)
            raise CannotRun(
                f"{self._plain} could not be written completely; the rest ({counted(len(self._waiting), 'lines')}) is "
                f"in {name}: make room and append it"
            )
        if self._plain != self.path:
            self._compress()
        return self.path

    def _compress(self) -> None:
        try:
            # No file name and no time inside, so that equal events give equal files.
            with (
                self._plain.open("rb") as plain,
                self.path.open("wb") as raw,
                gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
            ):
                packed.writelines(plain)
        except OSError as error:
            raise CannotRun(f"cannot write {self.path} ({error.strerror}); the trace is in {self._plain}") from None
        self._plain.unlink()
