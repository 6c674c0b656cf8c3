"""The build backend: setuptools (PEP 517) with a different editable install (PEP 660).

The packages are below three roots, and setuptools would install an import hook for such a layout. Python uses a hook
after the path, so in the folder above a clone Python would import the folder ``fencepost`` as the package. The editable
wheel made here puts the roots on the path instead, where a package comes before a folder without ``__init__.py``.
"""

from __future__ import annotations

import base64
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    build_wheel,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOTS = ("impl", "model", "conformance")
_WHEEL = "Wheel-Version: 1.0\nGenerator: fencepost_build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

get_requires_for_build_editable = get_requires_for_build_wheel
prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_editable(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Make a wheel with the metadata and a ``.pth`` file that names the roots; returns its name. With
    ``FENCEPOST_COMPILED`` setuptools makes it, which builds the extension modules."""
    if os.environ.get("FENCEPOST_COMPILED"):
        return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as scratch:
        metadata = Path(scratch, prepare_metadata_for_build_wheel(scratch, config_settings))
        stem = metadata.name.removesuffix(".dist-info")
        files = {"fencepost-roots.pth": "".join(f"{here / root}\n" for root in ROOTS).encode()}
        for each in sorted(metadata.rglob("*")):
            if each.is_file():
                files[each.relative_to(scratch).as_posix()] = each.read_bytes()
    files[f"{stem}.dist-info/WHEEL"] = _WHEEL.encode()
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join([*(_row(name, data) for name, data in files.items()), f"{record},,\n"]).encode()
    name = f"{stem}-0.editable-py3-none-any.whl"
    with ZipFile(Path(wheel_directory, name), "w") as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


def _row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"
