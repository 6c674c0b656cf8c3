"""Requirements of an executor: packages with native code, and Java. They are checked there before any work.

Executors that may lack anything import this module, so it uses the standard library only.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

#: imports of each kind of work, and how to install them
_MODEL = {"transitions": "transitions", "numpy": "numpy"}
_CORE = {"xxhash": "xxhash", "re2": "google-re2", "rich": "rich"}
TRACES = {"pyarrow": "pyarrow", "pydantic": "pydantic", "transitions": "transitions", **_CORE}
FILES = {"pydantic": "pydantic", "transitions": "transitions", **_CORE}
LOGS = {"pydantic": "pydantic", "crc32c": "crc32c", "kio": "kio", **_CORE}
GRAPHS = {**_MODEL, **_CORE}


@dataclass(frozen=True, slots=True)
class Found:
    """A Python worker's report. ``missing``: what to install; ``wrong``: any other problem; ``code``: where the
    packages of the suite come from."""

    host: str
    python: str
    missing: tuple[str, ...]
    wrong: str
    code: str

    def complaint(self) -> str:
        """Return a line with what is missing where; "" if nothing is."""
        where = f"on the executor at {self.host} ({self.python})"
        if self.missing:
            packages = " and ".join(filter(None, (", ".join(self.missing[:-1]), self.missing[-1])))
            return (
                f"{where} Python lacks {packages}: pip install {' '.join(self.missing)} there, or send an environment "
                "along (docs/spark.md)"
            )
        return f"{where}: {self.wrong}" if self.wrong else ""


def look(packages: dict[str, str], *, java: bool) -> Found:
    """Check which of ``packages`` (module to distribution) this process has, and whether it can run Java if it must."""
    missing: list[str] = []
    for module, name in packages.items():
        try:
            import_module(module)  # a package can be installed with unfitting native code
        except ImportError:
            missing.append(name)
    wrong = ""
    if java and not missing:
        from ...common.errors import CannotRun  # noqa: PLC0415 — imports what may be missing
        from ...targets.jvm import jars  # noqa: PLC0415

        try:
            jars.java()
        except CannotRun as reason:
            wrong = str(reason)
    return Found(socket.gethostname(), sys.executable, tuple(missing), wrong, __file__)


@dataclass(frozen=True, slots=True)
class Look:
    """``look`` in the form that Spark needs: one answer for each task."""

    packages: dict[str, str]
    java: bool

    def __call__(self, _: Iterable[int]) -> Iterator[Found]:
        yield look(self.packages, java=self.java)
