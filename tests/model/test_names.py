"""Names in the specification and the model: plain words, and one name for one property in both."""

from __future__ import annotations

import inspect
import io
import json
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fencepost_model.system import properties as classic
from fencepost_model.system import steps as classic_steps
from fencepost_model.system import witnesses
from fencepost_model.system.consumer import properties as consumer
from fencepost_model.system.consumer import steps as consumer_steps
from fencepost_model.system.consumer import witnesses as consumer_witnesses
from fencepost_model.system.log import properties as log
from fencepost_model.system.mixed import properties as mixed
from fencepost_model.system.mixed import steps as mixed_steps
from fencepost_model.system.mixed import witnesses as mixed_witnesses
from fencepost_model.system.offsets import properties as offsets

ROOT: Final = Path(__file__).parents[2]
SPEC: Final = ROOT / "spec"
#: Words that hide the actor or the object of a name.
VAGUE: Final = frozenset(
    ["who", "whoever", "what", "whatever", "nobody", "everybody", "somebody", "told", "untold", "goes"]
)
#: Words that only this project used for things that have a name in the field.
PRIVATE: Final = frozenset(
    ["aim", "around", "beat", "clerk", "desk", "errand", "former", "lane", "shadow", "sinks", "told", "wish", "world"]
)
CATALOGUES: Final[list[dict[str, Any]]] = [
    {**classic.CATALOGUE},
    {**classic_steps.STEPS},
    {**witnesses.WITNESSES},
    {**consumer.CATALOGUE},
    {**consumer_steps.STEPS},
    {**consumer_witnesses.WITNESSES},
    {**mixed.CATALOGUE},
    {**mixed_steps.STEPS},
    {**mixed_witnesses.WITNESSES},
    {**log.CATALOGUE},
    {**offsets.CATALOGUE},
]


def words(name: str) -> list[str]:
    """Return the words of a name in camel case or with underscores."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def defined(text: str) -> list[str]:
    """Return the operators and variables that a module defines."""
    code = re.sub(r"\\\*[^\n]*|\(\*.*?\*\)", "", text, flags=re.DOTALL)
    return re.findall(r"^(\w+)(?:\([^=\n]*\))? *==", code, re.MULTILINE) + re.findall(r"^VARIABLE (\w+)", code, re.M)


def test_the_specification_has_plain_names() -> None:
    names = [name for path in SPEC.glob("*.tla") for name in defined(path.read_text(encoding="utf-8"))]
    names += [each["name"] for each in json.loads((SPEC / "manifest.json").read_text())["configurations"]]
    assert len(names) > 800
    assert [name for name in names if VAGUE & {*words(name)}] == []


@pytest.mark.parametrize("name", ["WhoHoldsMayCommit", "NobodyIsReleased", "ToldItsTarget"])
def test_a_vague_name_is_noticed(name: str) -> None:
    (found,) = defined(f"{name}(g) == TRUE\n")
    assert VAGUE & {*words(found)}


def identifiers(source: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.string


def test_the_model_has_no_private_names() -> None:
    found = {
        (path.name, name)
        for path in (ROOT / "model").rglob("*.py")
        for name in identifiers(path.read_text(encoding="utf-8"))
        if name.lower().strip("_").removesuffix("s") in PRIVATE
    }
    assert (
        found - {("svg.py", "LANE"), ("svg.py", "lane"), ("svg.py", "lanes"), ("svg.py", "_lane"), ("svg.py", "_lanes")}
        == set()
    )


def test_a_property_has_one_name_in_the_specification_and_in_the_model() -> None:
    """Properties that a shared function makes have no separate name."""
    pairs = [
        (name, function.__name__)
        for catalogue in CATALOGUES
        for name, function in catalogue.items()
        if inspect.isfunction(function) and "<" not in function.__qualname__
    ]
    assert len(pairs) > 60
    assert [(name, own) for name, own in pairs if "_".join(words(name)) != own.strip("_")] == []
