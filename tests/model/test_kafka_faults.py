"""Kafka's own faults in the specification: each replaces one operator, and is one switch of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from fencepost.protocol.profile import SWITCH_NAMES
from fencepost_model.system.kafka_faults import CLASSIC_FAULTS, CONSUMER_FAULTS, FAULTS, MIXED_FAULTS
from fencepost_model.system.user_model import read_model, user_entry

SPEC: Final = Path(__file__).parents[2] / "spec"
MODULES: Final[Mapping[str, Mapping[str, str]]] = {
    "Classic": CLASSIC_FAULTS,
    "Consumer": CONSUMER_FAULTS,
    "Mixed": MIXED_FAULTS,
}
#: The comment of a replacement, its name and its parameters.
REPLACEMENT: Final = re.compile(r"\\\* For (\w+), ((?:fault|old)_\w+): (?:.*\n)+?(\w+)(\([\w, ]*\))? ==")


def parameters(text: str, name: str) -> int | None:
    """Return the number of parameters of an operator, or None if the text does not define it."""
    found = re.search(rf"^{name}(\([^)]*\))? ==", text, re.MULTILINE)
    return None if found is None else len((found[1] or "").split(",")) if found[1] else 0


@pytest.mark.parametrize("family", MODULES)
def test_the_replacements_are_those_of_the_module(family: str) -> None:
    text = (SPEC / f"Kafka{family}.tla").read_text()
    found = {f"{operator} <- {name}": switch for operator, switch, name, _ in REPLACEMENT.findall(text)}
    assert found == MODULES[family]
    assert len(re.findall(r"^\w+(?:\([^)]*\))? ==", text, re.MULTILINE)) == len(found)


@pytest.mark.parametrize("family", MODULES)
def test_a_replacement_has_the_parameters_of_the_operator(family: str) -> None:
    base = "".join(path.read_text() for path in SPEC.glob(f"{family}*.tla"))
    kafka = (SPEC / f"Kafka{family}.tla").read_text()
    for operator, name in (each.split(" <- ") for each in MODULES[family]):
        assert parameters(base, operator) is not None, operator
        assert parameters(kafka, name) == parameters(base, operator), operator


def test_no_module_but_those_of_kafka_names_a_switch() -> None:
    assert {*FAULTS.values()} <= {*SWITCH_NAMES}
    naming = {path.stem for path in SPEC.glob("*.tla") if re.search(r"\b(fault|old)_\w+", path.read_text())}
    assert naming == {f"Kafka{family}" for family in MODULES}


@pytest.mark.parametrize("replacement", FAULTS)
def test_a_configuration_sets_the_switch_of_a_replacement(replacement: str, tmp_path: Path) -> None:
    family = next(name for name, faults in MODULES.items() if replacement in faults)
    (tmp_path / "own.cfg").write_text(f"\\* Family: {family.lower()}\nCONSTANTS {replacement}\n")
    config = read_model(user_entry(tmp_path / "own.cfg", SPEC)).problem.config
    assert [name for name in SWITCH_NAMES if getattr(config.profile, name) is True] == [FAULTS[replacement]]
