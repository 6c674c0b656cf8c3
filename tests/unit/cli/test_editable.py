"""An editable install works from any folder, also from the one above the clone."""

from __future__ import annotations

import shutil
import subprocess
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path: Path) -> None:
    """Such a folder has no ``__init__.py``, so a package further on the path comes first; one that only an import hook
    knows, as setuptools installs it, does not."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    subprocess.run(["make", "-C", str(ROOT), f"VENV={environment}", "paths"], check=True, capture_output=True)
    (tmp_path / "fencepost").mkdir()
    program = "import fencepost_conformance, fencepost_model; from fencepost import Settings; print(Settings.__name__)"
    ran = subprocess.run(
        [str(environment / "bin" / "python"), "-c", program],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("Settings\n", "")


def test_the_install_puts_the_roots_on_the_path() -> None:
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").split("$(STAMP): pyproject.toml")[1].split("\n\n")[0]
    assert recipe.index("--editable") < recipe.index("$(MAKE) --no-print-directory paths")
