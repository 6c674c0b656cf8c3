"""Rules count as applied if a function that cites them ran."""

from __future__ import annotations

from pathlib import Path

from fencepost.rulebook import read_book
from fencepost.rulebook.book import cited_lines
from fencepost_conformance.common import repository
from tools.evidence.running import Ran, noted, rules_of_functions

TEXT = '''"""K-HB-01 of the whole file belongs to no function."""


def beats():
    """K-HB-02."""
    return 1  # K-HB-03


@staticmethod
def leaves():
    """K-LEAVE-01."""


def silent():
    return 2
'''


def test_a_function_has_the_rules_between_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(TEXT)
    book = read_book(repository.root() / "docs" / "rules")
    found = rules_of_functions(tmp_path, lambda text: cited_lines(text, book))
    assert found == {(str(path), 4): {"K-HB-02", "K-HB-03"}, (str(path), 9): {"K-LEAVE-01"}}


def test_only_lines_that_ran_are_noted_under_their_numbers_in_the_source(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(TEXT)
    names: dict[str, object] = {}
    exec(compile(TEXT, str(path), "exec"), names)
    ran, beats = Ran(), (str(path), 4)
    with noted(ran, tmp_path, {beats}):
        names["beats"]()  # type: ignore[operator]
        names["leaves"]()  # type: ignore[operator]
    names["silent"]()  # type: ignore[operator]
    assert ran.functions == {beats, (str(path), 9)}
    assert ran.lines == {(str(path), 6)}  # only modules that are watched
