"""``fencepost.rules``: the rule book as a mapping, with hints for unknown ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import fencepost
from fencepost.rulebook import RuleBook
from fencepost.rulebook.book import read_book
from fencepost_conformance.judge.rulebook.texts import rule_book

ROOT = Path(__file__).parents[3]


def test_rules_are_a_mapping_by_id() -> None:
    rules = fencepost.rules
    assert isinstance(rules, Mapping)
    assert len(rules) == len(list(rules)) > 1_400
    assert all(rules[rule_id].id == rule_id for rule_id in rules)
    assert dict(rules) == read_book(ROOT / "docs" / "rules") == rule_book()
    assert "C-JOIN-43" in rules
    assert "C-JOIN-99" not in rules
    assert rules.get("C-JOIN-99") is None


def test_a_rule_knows_its_place_and_its_marks() -> None:
    rule = fencepost.rules["C-JOIN-43"]
    assert (rule.file, rule.chapter) == ("02-classic.md", "3. JoinGroup (classic)")
    assert rule.section.startswith("3.5 Adding, preparing, completing")
    assert "the phase ends after the first quiet window of length D" in rule.plain
    assert str(rule) == f"C-JOIN-43: {rule.plain}"
    assert (rule.marks, rule.releases) == ({"run"}, ())
    assert "Kafka fault" in fencepost.rules["C-JOIN-71"].marks
    assert all(rule.chapter and rule.section for rule in fencepost.rules.values())


@pytest.mark.parametrize(
    ("text", "releases"),
    [
        ("so it is [4.0–4.2: not]", ("4.0", "4.1", "4.2")),
        ("so it is [4.0, 4.1: not] and [4.4: no more]", ("4.0", "4.1", "4.4")),
        ("so it is [4.2.2, 4.4: not]", ("4.2.2", "4.4")),
        ("so it is [see 4.2: there]", ()),
        ("so it is", ()),
    ],
)
def test_releases_that_differ_are_read(text: str, releases: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "01-some.md").write_text(f"## 1. Some\n| A-B-01 | {text} |\n")
    (rule,) = read_book(tmp_path).values()
    assert (rule.releases, rule.chapter, rule.section) == (releases, "1. Some", "1. Some")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("c-join-43", "did you mean 'C-JOIN-43'?"),
        ("C-JOIN-38", "did you mean 'C-JOIN-38a' or 'C-JOIN-38b'"),
        ("C-JION-43", "'C-JOIN-43'"),
        ("nonsense", "list(fencepost.rules) has all ids"),
        (43, "a rule id must be a str, such as 'C-JOIN-43' (got int)"),
    ],
)
def test_an_unknown_id_gets_a_hint(asked: str, hint: str) -> None:
    with pytest.raises(KeyError) as raised:
        fencepost.rules[asked]
    assert raised.value.args[0].startswith(f"no rule {asked!r}; ")
    assert hint in raised.value.args[0]


def test_a_package_without_its_text_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="install the package again"):
        RuleBook(tmp_path)["C-JOIN-43"]
