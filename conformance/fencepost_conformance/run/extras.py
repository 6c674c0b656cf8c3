"""The extras of the package: which one installs what a command lacks."""

from __future__ import annotations

from typing import Final

from fencepost.extras import MODULES, install

#: Extras of the commands that do not need the whole suite.
_OF_COMMANDS: Final = {"serve": "serve", "store": "serve"}
#: Modules of the extra ``suite``. The extras of ``_OF_COMMANDS`` install those that their commands import.
_SUITE: Final = frozenset(MODULES["suite"])
#: The extra of each other module that a command may lack.
_OF_MODULES: Final = {
    **{
        each: extra
        for extra in ("spark", "postgres", "tlc", "pcap", "clients")
        for each in MODULES[extra]
        if each not in _SUITE
    },
    "async_solipsism": "dev",
    "hypothesis": "dev",
}


def extra_for(command: str, package: str) -> str | None:
    """Return the extra that installs a top-level package for ``command`` ("" for the command line itself); None if no
    extra does."""
    if package in _OF_MODULES:
        return _OF_MODULES[package]
    return _OF_COMMANDS.get(command, "suite") if package in _SUITE else None


def lacks(command: str, missing: ModuleNotFoundError) -> str | None:
    """Return one line with what to install; None if no extra has the module, so that the user is not at fault."""
    package = (missing.name or "").partition(".")[0]
    extra = extra_for(command, package)
    if extra is None:
        return None
    return f"the Python package {package!r} is not installed; install it with: {install(extra)}"
