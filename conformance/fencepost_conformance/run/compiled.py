"""Compiles the core with mypyc into a folder that goes first on ``PYTHONPATH``; the sources stay unchanged.

``python -m fencepost_conformance.run.compiled FOLDER`` does it, from a checkout. ``setup.py`` lists the compiled
modules.
"""

from __future__ import annotations

import filecmp
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from ..common.errors import CannotRun
from ..common.repository import root


def unavailable() -> str:
    """Return why nothing can be compiled here, or ""."""
    if find_spec("mypyc") is None:
        return "mypyc is not installed; pip install mypy"
    if shutil.which(os.environ.get("CC", "cc")) is None:
        return "there is no C compiler (cc) on the path"
    return ""


def build(folder: Path, level: int = 3, *, codec_alone: bool = False) -> Path:
    """Compile the core into this folder, which is emptied first. ``level``: optimisation level of the C compiler, 0 to
    3. ``codec_alone``: compile only the codec.

    Raises ``CannotRun`` where it cannot be compiled."""
    if reason := unavailable():
        raise CannotRun(f"cannot compile the core: {reason}")
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="fencepost-compiled-") as made:
        source = Path(made)
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(root() / "impl", source / "impl", ignore=ignored)
        for name in ("model", "conformance"):
            (source / name).mkdir()
        for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
            shutil.copy(root() / name, source)
        ran = subprocess.run(
            [sys.executable, "setup.py", "--quiet", "build_ext", "--build-lib", str(folder.resolve())],
            cwd=source,
            env=os.environ | {"FENCEPOST_COMPILED": "codec" if codec_alone else "1", "MYPYC_OPT_LEVEL": str(level)},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise CannotRun(f"the core was not compiled:\n{(ran.stderr or ran.stdout).strip()}")
        for package in (source / "impl").glob("fencepost*"):
            shutil.copytree(package, folder / package.name, dirs_exist_ok=True)
    return folder


def is_of_these_sources(folder: Path) -> bool:
    """Whether the folder has the compiled core of the current sources."""
    sources = root() / "impl"
    names = [str(path.relative_to(sources)) for path in sources.rglob("*.py")]
    _, differ, missing = filecmp.cmpfiles(sources, folder, names, shallow=False)
    return not differ and not missing and any(folder.glob("*.so"))


def main(words: list[str]) -> None:
    (folder,) = words or ["out/compiled"]
    try:
        build(Path(folder))
    except CannotRun as reason:
        sys.exit(str(reason))
    print(f"the compiled core is in {folder}: use it with PYTHONPATH={folder}")


if __name__ == "__main__":
    main(sys.argv[1:])
