"""The page about the architecture and its picture name every package."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "architecture.md"
PICTURE: Final = ROOT / "docs" / "architecture.svg"
#: folders whose packages are named one by one
PARENTS: Final = ("impl", "impl/fencepost", "impl/fencepost/coordinator", "model", "conformance/fencepost_conformance")


def packages() -> set[str]:
    return {path.parent.name for folder in PARENTS for path in (ROOT / folder).glob("*/__init__.py")}


def missing(text: str) -> list[str]:
    """Return the packages whose names are not among the words of the text."""
    words = {*re.findall(r"\w+", text)}
    return sorted(packages() - words)


def in_picture() -> str:
    """Return the words that the picture shows."""
    return " ".join(re.findall(r">([^<]+)</text>", PICTURE.read_text(encoding="utf-8")))


def in_tables() -> str:
    """Return the first column of the page's tables."""
    return " ".join(re.findall(r"^\| *([^|]+)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_picture_names_every_package() -> None:
    assert missing(in_picture()) == []


def test_the_tables_name_every_package() -> None:
    """The suite and the model are named by their folders."""
    assert {*missing(in_tables())} <= {"fencepost_conformance", "fencepost_model"}


@pytest.mark.parametrize("name", ["common", "offsets", "fencepost_consumer"])
def test_a_package_without_its_name_is_noticed(name: str) -> None:
    assert name in missing(re.sub(rf"\b{name}\b", "", in_picture()))
