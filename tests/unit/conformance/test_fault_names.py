"""Names of findings, mutants and planted faults use the words of the field."""

from __future__ import annotations

import pytest

from fencepost_conformance.judge.findings.catalogue import FINDINGS
from fencepost_conformance.run.mutants.areas.catalogue import FAULTS
from fencepost_conformance.run.mutants.catalogue import MUTANTS

#: an actor without a name, or a word that Kafka's documentation does not use
ODD = frozenset(
    [
        "anew",
        "anybody",
        "everybody",
        "nobody",
        "owes",
        "somebody",
        "tells",
        "told",
        "untold",
        "who",
        "whoever",
        "whom",
        "whose",
    ]
)


def odd_words(name: str) -> set[str]:
    return set(name.split("-")) & ODD


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("finding", [each.name for each in FINDINGS]),
        ("mutant", [*MUTANTS]),
        ("planted fault", [*FAULTS]),
    ],
    ids=["findings", "mutants", "planted-faults"],
)
def test_names_are_plain(kind: str, names: list[str]) -> None:
    found = {name: sorted(odd_words(name)) for name in names if odd_words(name)}
    assert not found, f"say in the name of a {kind} what goes wrong, and name the actor"


@pytest.mark.parametrize(
    ("name", "words"),
    [("sync-of-nobody", {"nobody"}), ("timer-of-who-was-converted", {"who"}), ("sync-never-answered", set())],
)
def test_odd_words_are_found(name: str, words: set[str]) -> None:
    assert odd_words(name) == words
