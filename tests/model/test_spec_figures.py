"""Figures about configurations in the documentation are those of the manifest."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from test_spec import BY_NAME, ENTRIES

from fencepost_model.system.manifest import Entry

ROOT: Final = Path(__file__).parents[2]
GROUPS: Final = {
    "classic": "classic groups",
    "consumer": "consumer groups",
    "mixed": "mixed groups",
    "log": "log",
    "offsets": "offsets",
}
#: A configuration with the states of its graph, or with the length of its counter-example.
FIGURE: Final = re.compile(r"`(\w+)`(?:,| with|:)? \(?(\d[\d,]*) (?:states|steps)")


def kind(entry: Entry) -> str:
    """Return the column of the table that counts the configuration."""
    if entry.expected == "holds":
        return "pass"
    return "witness" if entry.name.startswith("Witness") else "break"


def table() -> list[str]:
    """Return the table of ``docs/spec.md``."""
    lines = [
        "| Part | Configurations | Pass | Break a property | Witnesses | Explored by the model too |",
        "|---|---|---|---|---|---|",
    ]
    for protocol, words in [*GROUPS.items(), ("", "all")]:
        own = [entry for entry in ENTRIES.values() if protocol in ("", entry.protocol)]
        counts = [sum(kind(entry) == each for entry in own) for each in ("pass", "break", "witness")]
        cells = [words, len(own), *counts, sum(entry.has_model for entry in own)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def wrong_figures(text: str) -> list[str]:
    """Return the configurations whose figure in the text is not in the manifest."""
    found = []
    for name, figure in FIGURE.findall(text):
        entry = BY_NAME.get(name)
        known = (entry["distinct"], entry["trace"]) if entry else ()
        if entry and (known != (None, None)) and int(figure.replace(",", "")) not in known:
            found.append(name)
    return found


def test_the_table_is_that_of_the_manifest() -> None:
    assert {entry.protocol for entry in ENTRIES.values()} == GROUPS.keys()
    text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    assert "\n".join(table()) in text, "\n".join(table())


@pytest.mark.parametrize("page", ["spec.md", "shown.md"])
def test_the_figures_of_configurations_are_those_of_the_manifest(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert len(FIGURE.findall(text)) >= 2
    assert wrong_figures(text) == []


def test_the_counts_of_evidence_are_those_of_the_manifest() -> None:
    text = (ROOT / "docs" / "shown.md").read_text(encoding="utf-8")
    own = {name: [entry for entry in ENTRIES.values() if entry.protocol == name] for name in GROUPS}
    kinds = [kind(entry) for entry in (*own["log"], *own["offsets"])]
    parts = f"{len(own['log'])} configurations of `Durable` and `GroupLog`, {len(own['offsets'])} of `Offsets`"
    sorts = f"{kinds.count('pass')} pass, {kinds.count('break')} lack one guard"
    assert parts in text
    assert sorts in text
    assert f"{kinds.count('witness')} are witnesses" in text


@pytest.mark.parametrize(
    "line", ["`KafkaTwoOwners`, 28 states", "`EagerFaults` with 139,625 states", "(`LostTimer`, 13 states)"]
)
def test_a_wrong_figure_is_noticed(line: str) -> None:
    assert len(wrong_figures(line)) == 1
