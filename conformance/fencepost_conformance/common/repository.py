"""Finds the project's own files: the spec, the rule book, the bundled traces."""

from __future__ import annotations

from pathlib import Path

from .errors import CannotRun


def root() -> Path:
    """Return the folder of the checkout: the working directory or the first one above it, else that of this package."""
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if (folder / "spec").is_dir() and (folder / "docs" / "rules").is_dir():
                return folder
    raise CannotRun("this needs Fencepost's own files (spec/, docs/rules/); run it in a checkout of the project")
