"""A copy of the product with a fault in it, for programs that run in another process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import fencepost

from ..replacement import BESIDE, Replacement, path_of, replaced

_ROOT = Path(fencepost.__file__).parents[1]


def faulty_copy(replacements: Sequence[Replacement], folder: Path) -> None:
    """Put a copy of the product with these replacements into the folder. Files without a change are hard links where
    the file system allows it. Raises ``DoesNotApply``."""
    sources = replaced(replacements)
    for package in (fencepost.__name__, *BESIDE):
        shutil.copytree(_ROOT / package, folder / package, copy_function=_link)
    for file, source in sources.items():
        path = folder / path_of(file).relative_to(_ROOT)
        path.unlink()  # the link, not the file of the product
        path.write_text(source, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def environment(folder: Path) -> Mapping[str, str]:
    """The environment in which Python finds the copy, and everything else where it is."""
    there = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *([there] if there else [])])}


def _link(source: str, target: str) -> None:
    with suppress(OSError):  # another file system
        os.link(source, target)
        return
    shutil.copy2(source, target)
