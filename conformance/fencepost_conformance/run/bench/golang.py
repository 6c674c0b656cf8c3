"""Go programs of the suite, built when they are needed and cached."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from importlib.resources import as_file, files
from pathlib import Path

from ...common.errors import CannotRun
from ...targets.jvm import jars

_PATIENCE_S = 600


def go_command() -> str:
    """Return the ``go`` program. Raises ``CannotRun`` without one."""
    go = shutil.which("go")
    if go is None:
        raise CannotRun("Go is not installed; the load generator and kfake are built with it")
    return go


def program(name: str) -> Path:
    """Return the built program of ``go/NAME``. Raises ``CannotRun`` without Go, or if it cannot be built (its modules
    come from Go's module proxy)."""
    go = go_command()
    source = files(__package__).joinpath("go", name)
    texts = sorted((item.name, item.read_text()) for item in source.iterdir() if item.is_file())
    digest = hashlib.sha256(repr(texts).encode()).hexdigest()[:16]
    target = jars.cache_root() / "go" / f"{name}-{digest}"
    if not target.is_dir():
        with as_file(source) as folder:
            jars.publish(target, lambda made: _build(go, folder, made / name))
    return target / name


def _build(go: str, folder: Path, target: Path) -> None:
    try:
        built = subprocess.run(
            [go, "build", "-o", str(target), "."],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise CannotRun(f"go build of {target.name} has not ended within {_PATIENCE_S} s") from None
    if built.returncode:
        raise CannotRun(f"go build of {target.name} failed: {built.stderr.strip().splitlines()[-1]}")
