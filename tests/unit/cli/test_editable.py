"""An editable install works in any folder, also in the one above the clone."""

from __future__ import annotations

import re
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[3]
BUILD = """
import sys
sys.path.insert(0, "backend")
import fencepost_build
print(fencepost_build.build_editable(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what the backend builds for ``pip install --editable``."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    return folder / ran.stdout.splitlines()[-1]


def test_a_folder_of_the_same_name_does_not_hide_the_package(wheel: Path, tmp_path: Path) -> None:
    """A folder without ``__init__.py`` is a namespace package. A package later on the path has priority over it, but
    one that only an import hook knows, as setuptools installs it, has not."""
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    with ZipFile(wheel) as packed:
        packed.extractall(packages)
    (tmp_path / "fencepost").mkdir()
    program = """if True:
        import importlib.metadata
        import fencepost_conformance
        from fencepost import Settings
        entry, = importlib.metadata.distribution("fencepost").entry_points
        print(Settings.__name__, entry.load().__name__)
    """
    ran = subprocess.run(
        [str(environment / "bin" / "python"), "-c", program],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("Settings main\n", "")


def test_the_wheel_records_its_files(wheel: Path) -> None:
    with ZipFile(wheel) as packed:
        (record,) = (name for name in packed.namelist() if name.endswith(".dist-info/RECORD"))
        recorded = [line.partition(",")[0] for line in packed.read(record).decode().splitlines()]
        assert recorded == packed.namelist()
        roots = packed.read("fencepost-roots.pth").decode().splitlines()
        metadata = packed.read(record.replace("RECORD", "METADATA")).decode()
    assert roots == [str(ROOT / each) for each in ("impl", "model", "conformance")]
    assert re.search("^Provides-Extra: serve$", metadata, re.MULTILINE)


def test_the_sdist_has_the_backend() -> None:
    """``pip install`` of an sdist builds with the backend."""
    assert "graft backend" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
