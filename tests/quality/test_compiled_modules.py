"""Rules that a compiled build needs, checked without compiling.

With mypyc a class that derives from one of ``collections.abc`` shares the registry of its base. So
``isinstance(value, it)`` in an interpreted module is true for every class that is registered for the base: an empty
tuple is then a commit. Compiled modules compare the type itself.
"""

from __future__ import annotations

import ast
import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools
from test_compiled_core import REPLACES

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sources() -> frozenset[Path]:
    """Return the files that are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", lambda **_: None)
        patch.chdir(ROOT)
        found: list[Path] = runpy.run_path("setup.py")["compiled_sources"](codec_alone=False)
    assert len(found) > 60
    assert all((ROOT / each).is_file() for each in found)
    return frozenset(found)


def classes_of_abcs(texts: dict[Path, str]) -> set[str]:
    """Return the classes of these modules that derive from one of ``collections.abc``, by any number of steps."""
    bases: dict[str, set[str]] = {}
    abstract: set[str] = set()
    for text in texts.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "collections.abc":
                abstract |= {each.name for each in node.names}
            elif isinstance(node, ast.ClassDef):
                bases[node.name] = {_name(each) for each in node.bases}
    found: set[str] = set()
    while more := {name for name, own in bases.items() if own & (found | abstract)} - found:
        found |= more
    return found


def asked(text: str, names: set[str]) -> list[str]:
    """Return the calls of ``isinstance`` about these classes."""
    calls = [each for each in ast.walk(ast.parse(text)) if isinstance(each, ast.Call)]
    return [
        ast.unparse(each)
        for each in calls
        if _name(each.func) == "isinstance" and {_name(part) for part in ast.walk(each.args[1])} & names
    ]


def _name(node: Any) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def test_no_interpreted_module_asks_for_a_compiled_class_of_an_abc(sources: frozenset[Path]) -> None:
    names = classes_of_abcs({each: (ROOT / each).read_text(encoding="utf-8") for each in sources})
    assert {"PlainCommit", "Logged", "PersistentSet"} <= names
    interpreted = {each.relative_to(ROOT) for each in (ROOT / "impl").rglob("*.py")} - sources
    found = {each: asked((ROOT / each).read_text(encoding="utf-8"), names) for each in sorted(interpreted)}
    assert {str(each): calls for each, calls in found.items() if calls} == {}


def test_such_a_question_is_found() -> None:
    module = "from collections.abc import Sequence\nclass A(Sequence[int]): ...\nclass B(A): ...\nclass C: ...\n"
    names = classes_of_abcs({Path("a.py"): module})
    assert names == {"A", "B"}
    assert asked("isinstance(x, (C, B)), isinstance(x, C), print(x, B)", names) == ["isinstance(x, (C, B))"]


def test_the_tests_that_a_compiled_build_leaves_out_exist() -> None:
    for each in REPLACES:
        file, _, name = each.partition("::")
        text = (ROOT / "tests" / "unit" / file).read_text(encoding="utf-8")
        assert f"def {name}(" in text or f"{name} = " in text
