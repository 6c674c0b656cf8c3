"""What an executor must have of its own: packages with native code, and Java. Looked for there, before any work.

This module is imported on executors that may lack anything, so it needs the standard library alone.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module

#: what each kind of work imports there, and how to install it
_MODEL = {"transitions": "transitions", "numpy": "numpy"}
_CORE = {"xxhash": "xxhash", "re2": "google-re2", "rich": "rich"}
TRACES = {"pyarrow": "pyarrow", "pydantic": "pydantic", "transitions": "transitions", **_CORE}
FILES = {"pydantic": "pydantic", "transitions": "transitions", **_CORE}
GRAPHS = {**_MODEL, **_CORE}


@dataclass(frozen=True, slots=True)
class Found:
    """What one Python worker says of its surroundings. ``missing``: what to install; ``wrong``: any other trouble;
    ``code``: where the packages of the suite come from."""

    host: str
    python: str
    missing: tuple[str, ...]
    wrong: str
    code: str

    def complaint(self) -> str:
        """What is missing where, in a line; "" if nothing is."""
        where = f"on the executor at {self.host} ({self.python})"
        if self.missing:
            packages = " and ".join(filter(None, (", ".join(self.missing[:-1]), self.missing[-1])))
            return (
                f"{where} Python lacks {packages}: pip install {' '.join(self.missing)} there, or send an environment "
                "along (docs/spark.md)"
            )
        return f"{where}: {self.wrong}" if self.wrong else ""


def look(packages: dict[str, str], *, java: bool) -> Found:
    """What this process has of ``packages`` (module to distribution), and whether it can run Java if it has to."""
    missing: list[str] = []
    for module, name in packages.items():
        try:
            import_module(module)  # a package can be there and its native code not fit
        except ImportError:
            missing.append(name)
    wrong = ""
    if java and not missing:
        from ..console import CannotRun  # noqa: PLC0415 — imports what may be missing
        from ..jvm import jars  # noqa: PLC0415

        try:
            jars.java()
        except CannotRun as reason:
            wrong = str(reason)
    return Found(socket.gethostname(), sys.executable, tuple(missing), wrong, __file__)


@dataclass(frozen=True, slots=True)
class Look:
    """``look`` as Spark wants it: one answer for each task."""

    packages: dict[str, str]
    java: bool

    def __call__(self, _: Iterable[int]) -> Iterator[Found]:
        yield look(self.packages, java=self.java)
