"""The pages about the code name modules that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
CORE: Final = ROOT / "impl" / "fencepost" / "coordinator"
PAGES: Final = {page.name: page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))}
_FILE: Final = re.compile(r"`((?:conformance|impl|model|tests)/[\w/]+\.py)")
_MODULE: Final = re.compile(r"`((?:kernel|classic|consumer|mixed|offsets|quirks)/\w+)")


def missing_files(text: str) -> list[str]:
    return [name for name in _FILE.findall(text) if not (ROOT / name).exists()]


def missing_modules(text: str) -> list[str]:
    """Modules of the coordinator, which ``architecture.md`` names as in ``kernel/rules``."""
    return [name for name in _MODULE.findall(text) if not CORE.joinpath(f"{name}.py").exists()]


@pytest.mark.parametrize("page", PAGES)
def test_files_that_a_page_names_exist(page: str) -> None:
    assert missing_files(PAGES[page]) == []


def test_modules_that_the_architecture_names_exist() -> None:
    assert len(_MODULE.findall(PAGES["architecture.md"])) > 10
    assert missing_modules(PAGES["architecture.md"]) == []


def test_one_that_does_not_exist_is_found() -> None:
    assert missing_files("see `impl/fencepost/nowhere.py`") == ["impl/fencepost/nowhere.py"]
    assert missing_modules("`kernel/rules` and `kernel/completion.fail`") == ["kernel/completion"]
