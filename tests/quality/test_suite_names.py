"""No identifier of the conformance suite, of its Java and JavaScript parts or of a test contains a word that only this
project used for a thing that has a name: the answer, the message, the output, the expected assignment."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest
from test_words import is_private

ROOT: Final = Path(__file__).parents[2]
FILES: Final = sorted(
    file
    for folder in ("conformance", "tests")
    for file in (ROOT / folder).rglob("*")
    if file.suffix in {".py", ".java", ".js"} and not {"node_modules", "target", "data"} & {*file.parts}
)
#: A method of Python's files.
ALLOWED: Final = frozenset({"tell"})
#: comments and texts of Java and JavaScript
_TEXT: Final = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def identifiers(code: str, suffix: str) -> set[str]:
    """Return the names in a program; comments and texts do not count."""
    if suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(code).readline)
        return {each.string for each in tokens if each.type == tokenize.NAME}
    return {*re.findall(r"\w+", _TEXT.sub(" ", code))}


def private_names(code: str, suffix: str) -> list[str]:
    """Return the names with a private word. The name of a test is a sentence, which may contain the verb."""
    names = identifiers(code, suffix) - ALLOWED
    return sorted(name for name in names if is_private(name) and not name.startswith("test_"))


def test_the_suite_and_the_tests_have_no_private_words() -> None:
    assert len(FILES) > 1_000
    found = {file: private_names(file.read_text(encoding="utf-8"), file.suffix) for file in FILES}
    assert {str(file.relative_to(ROOT)): names for file, names in found.items() if names} == {}, "name its contents"


@pytest.mark.parametrize(
    ("code", "suffix", "names"),
    [
        ("# told\ntold = 'met'\n", ".py", ["told"]),
        ("def f(last_told, taken, tellLeaders): ...\n", ".py", ["last_told", "tellLeaders"]),
        ("def test_it_is_told(): ...\n", ".py", []),
        ('/* told */ Trace.goOn(errands, "told"); // met\n', ".java", ["errands", "goOn"]),
        ("const isTold = `${met}`, b = 'told';\n", ".js", ["isTold", "met"]),
    ],
)
def test_a_private_word_is_found_in_code(code: str, suffix: str, names: list[str]) -> None:
    assert private_names(code, suffix) == names


def equal_names(files: Iterable[Path]) -> dict[str, list[str]]:
    """Return the test files of one name whose folders are not packages. Pytest collects only the first of them."""
    alone = sorted(file for file in files if not (file.parent / "__init__.py").is_file())
    found = {name: [str(file.parent.name) for file in alone if file.name == name] for name in {f.name for f in alone}}
    return {name: folders for name, folders in found.items() if len(folders) > 1}


def test_test_files_have_different_names(tmp_path: Path) -> None:
    assert equal_names((ROOT / "tests").rglob("test_*.py")) == {}
    for folder in ("one", "two", "package"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test_a.py").touch()
    (tmp_path / "package" / "__init__.py").touch()
    assert equal_names(tmp_path.rglob("test_*.py")) == {"test_a.py": ["one", "two"]}
