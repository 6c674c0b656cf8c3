"""Places are the statements, operands and functions of one path that cite rules; deleting one changes nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.evidence.places import Place, places
from tools.evidence.running import citations

TEXT = '''"""K-HB-01 of the file belongs to no statement."""

LIMIT = 3  # K-HB-02


def beats(member):
    """K-HB-03: a function with a branch."""
    if member.left:
        return None  # K-HB-04
    elif member.late:  # K-HB-05
        member.rejoin()
    # K-HB-06
    member.count += 1
    member.send(
        member.name,
        timeout=member.timeout,  # K-HB-07
    )
    return (
        member.known
        and not member.left  # K-HB-08
    )


class Timer:
    @property
    def due(self):
        """One path (K-HB-09)."""
        return self.at + 1

    def fire(self):
        """K-HB-10 and K-LEAVE-05: which of the two?"""
        self.fired = True

    def all(self, members):
        """K-LEAVE-01."""
        for member in members:
            member.leave()  # K-LEAVE-02, K-LEAVE-03: which of the two?
            member.left = True  # K-LEAVE-04
'''


def found() -> list[Place]:
    return list(places(Path("one.py"), TEXT, citations()))


def without(rule: str, change: int = 0) -> str:
    """Return the text without the place of the rule."""
    (place,) = (each for each in found() if rule == each.rule)
    tree = ast.parse(TEXT)
    place.changes[change](tree)
    return ast.unparse(ast.fix_missing_locations(tree))


def test_places_are_the_scopes_of_comments_and_docstrings() -> None:
    assert {(each.rule, each.where) for each in found()} == {
        ("K-HB-04", "beats"),
        ("K-HB-05", "beats"),
        ("K-HB-06", "beats"),
        ("K-HB-07", "beats"),
        ("K-HB-08", "beats"),
        ("K-HB-09", "Timer.due"),
        ("K-LEAVE-01", "Timer.all"),
        ("K-LEAVE-04", "Timer.all"),
    }


@pytest.mark.parametrize(
    ("rule", "change", "gone", "there"),
    [
        ("K-HB-04", 0, "        return None", "return __altered__(None)"),
        ("K-HB-04", 1, "    if member.left:\n        return None", "if False:\n            return None"),
        ("K-HB-05", 0, "elif member.late", "elif False:"),
        ("K-HB-06", 0, "\n    member.count += 1", "if False:\n        member.count += 1"),
        ("K-HB-08", 0, "not member.left", "return member.known and True"),
        ("K-HB-09", 0, "return self.at + 1", "return __altered__(self.at + 1)"),
        ("K-LEAVE-01", 0, "\n        for member", "if False:"),
        ("K-LEAVE-04", 0, "            member.leave()\n            member.left", "if False:"),
        ("K-HB-07", 0, "timeout=member.timeout", "timeout=__altered__(member.timeout)"),
    ],
)
def test_a_change_deletes_the_place(rule: str, change: int, gone: str, there: str) -> None:
    changed = without(rule, change)
    assert gone in ast.unparse(ast.parse(TEXT))
    assert gone not in changed
    assert there in changed


def test_a_case_that_cites_a_rule_never_matches_without_it() -> None:
    text = "def handle(event):\n    match event:\n        case 1:  # K-HB-04\n            return 2\n"
    (place,) = places(Path("one.py"), text, citations())
    tree = ast.parse(text)
    place.changes[0](tree)
    assert "case 1 if False" in ast.unparse(ast.fix_missing_locations(tree))
