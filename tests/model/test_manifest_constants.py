"""Constants in ``spec/manifest.json`` match the configuration files of each family; a changed constant is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_model.system.families import FAMILIES, family_of_module
from fencepost_model.system.manifest import Entry, read_manifest, read_problem

SPEC: Final = Path(__file__).parents[2] / "spec"
#: Configurations of closed systems, which the model reads; only TLC reads the others.
ENTRIES: Final[dict[str, Entry]] = {
    entry.name: entry
    for entry in read_manifest(SPEC)
    if any(entry.module.stem in family.modules for family in FAMILIES)
}
EVERY: Final[list[dict[str, Any]]] = json.loads((SPEC / "manifest.json").read_text())["configurations"]
ROWS: Final = [row for row in EVERY if row["name"] in ENTRIES and "constants" in row]
#: One configuration for each set of constants: the first one.
SAMPLE: Final = list({frozenset(row["constants"]): row for row in reversed(ROWS)}.values())


def differs(row: dict[str, Any]) -> bool:
    """Whether the constants of a row differ from those in its configuration file."""
    family = family_of_module(row["module"])
    return bool(family.from_constants(row["constants"]) != read_problem(ENTRIES[row["name"]]).config)


def changed(value: Any) -> Any:
    """Return another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case "bidirectional":
            return "upgrade"
        case str():
            return f"not {value}"
        case list():
            return value[:-1]
        case dict() if not value:
            return {"losses": 1}
    return {name: changed(each) for name, each in value.items()}


def test_constants_of_the_manifest_are_those_of_the_configuration_files() -> None:
    assert {name for name, entry in ENTRIES.items() if entry.e1} <= {row["name"] for row in ROWS}
    assert [row["name"] for row in ROWS if differs(row)] == []


@pytest.mark.parametrize(
    ("row", "constant"),
    [pytest.param(row, name, id=f"{row['name']}-{name}") for row in SAMPLE for name in row["constants"]],
)
def test_a_constant_that_is_changed_is_found(row: dict[str, Any], constant: str) -> None:
    other = row | {"constants": row["constants"] | {constant: changed(row["constants"][constant])}}
    assert differs(other)
