"""The parts that jobs need: for each, what was found, or what to do if it is missing."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.extras import MODULES, absent, install

from ...common.errors import CannotRun
from ...targets.jvm import jars
from ...targets.jvm.builds import ARTIFACT
from ...targets.jvm.releases import NEWEST, broker_artifacts
from .. import compiled
from ..bench.golang import go_command

#: the default port of ``fencepost serve``
PORT: Final = 9092


@dataclass(frozen=True, slots=True)
class Part:
    """``text``: what was found, or what is missing and what to do about it."""

    name: str
    there: bool
    text: str


#: Returns what was found. Raises ``Absent`` with what to do.
Look = Callable[[], str]


class Absent(Exception):
    """A part is missing; the message says what to do."""


def look(name: str) -> Part:
    """Look for the part of that name."""
    try:
        return Part(name, True, PARTS[name]())
    except (Absent, CannotRun) as missing:
        return Part(name, False, str(missing))


def _python() -> str:
    return f"{platform.python_version()}, {sys.executable}"


def _extra(extra: str) -> Look:
    def looked() -> str:
        if missing := absent(*MODULES[extra]):
            raise Absent(f"not installed: {', '.join(missing)}; {install(extra)}")
        return "installed"

    return looked


def _java() -> str:
    return jars.java()


def _jdk() -> str:
    if not jars.has_jdk():
        raise Absent(
            f"no java and javac on the path; install a JDK, version {jars.OLDEST_JAVA} or later "
            "(package 'default-jdk-headless')"
        )
    return jars.java()


def _artifacts(*coordinates: str) -> Look:
    def looked() -> str:
        folder = jars.folder_of(*coordinates)
        if folder.is_dir():
            return str(folder)
        programs = jars.fetchers()
        if not programs:
            raise Absent(f"not in {folder.parent}; to fetch them {jars.FETCHER}")
        return f"not fetched yet; {' or '.join(programs)} fetches them when they are first needed"

    return looked


def _cache() -> str:
    root = jars.cache_root()
    there = next(each for each in (root, *root.absolute().parents) if each.exists())
    if not (there.is_dir() and os.access(there, os.W_OK)):
        raise Absent(f"{there} cannot be written; let FENCEPOST_CACHE name a folder that can")
    return str(root)


def _tlc() -> str:
    if missing := absent(*MODULES["model"]):
        raise Absent(f"not installed: {', '.join(missing)}; {install('model')}")
    from fencepost_model.tlc.run import TlcMissing, find_jar, find_java  # noqa: PLC0415  needs the extra model

    try:
        find_java()
        return str(find_jar())
    except TlcMissing as missing_part:
        raise Absent(str(missing_part)) from None


def _compiler() -> str:
    if reason := compiled.unavailable():
        raise Absent(reason)
    return f"{os.environ.get('CC', 'cc')} and mypyc"


def _port() -> str:
    if absent(*MODULES["serve"]):
        return "not checked: the extra serve is not installed"
    from fencepost_server.net.port import open_port  # noqa: PLC0415  needs the extra serve
    from fencepost_server.options import Address  # noqa: PLC0415

    try:
        with open_port(Address(host="127.0.0.1", port=PORT)):
            return "free"
    except OSError as taken:
        raise Absent(f"{taken.strerror}; use another one: fencepost serve --listen 127.0.0.1:{PORT + 1}") from None


#: The function that looks for each part, in the order of the report.
PARTS: Final[Mapping[str, Look]] = {
    "Python": _python,
    **{f"extra {extra}": _extra(extra) for extra in MODULES},
    "Java": _java,
    "JDK": _jdk,
    "cache": _cache,
    "Kafka's coordinator": _artifacts(f"{ARTIFACT}:{NEWEST}"),
    "Kafka's broker": _artifacts(*broker_artifacts(NEWEST)),
    "TLC": _tlc,
    "Go": go_command,
    "C compiler": _compiler,
    f"port {PORT}": _port,
}
