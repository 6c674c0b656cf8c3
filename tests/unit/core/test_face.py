"""``import fencepost`` has the names that an embedder needs, the same for tools and at run time, and imports nothing
else."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import subprocess
import sys
import types
import typing
from itertools import pairwise
from pathlib import Path

import pytest

import fencepost

SOURCE = Path(fencepost.__file__).read_text(encoding="utf-8")
#: Keys of log and timers, and classes that begin like one. Every step makes them, and only the core does; the group
#: comes first, then the member or partition.
KEYS = {name for name in fencepost.__all__ if name.endswith("Key")} | {"OffsetView", "Producer"}
NUMBERS, TEXTS = (int, float, bool), (str, bytes)


def _declared() -> dict[str, str]:
    """Return name to module, as in the imports for type checkers."""
    (block,) = (node for node in ast.parse(SOURCE).body if isinstance(node, ast.If))
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for each in node.names:
            assert (each.asname or each.name) not in found
            found[each.asname or each.name] = f"{node.module or ''}:{each.name}"
    return found


def test_tools_see_the_exported_names() -> None:
    lazy = {name: ":".join(place) for name, place in fencepost._WHERE.items()}
    assert lazy == _declared()
    assert sorted(lazy) == sorted(fencepost.__all__)
    assert len(set(fencepost.__all__)) == len(fencepost.__all__)


@pytest.mark.parametrize("name", fencepost.__all__)
def test_each_name_is_there(name: str) -> None:
    found = getattr(fencepost, name)
    assert found is not None
    assert name in dir(fencepost)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__doc__ or dataclasses.is_dataclass(found)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="module 'fencepost' has no attribute 'setp'"):
        fencepost.setp  # noqa: B018


def _loaded(program: str) -> set[str]:
    words = [sys.executable, "-c", f"import sys; {program}; print(*[m for m in sys.modules if m[:9] == 'fencepost'])"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_it_costs_nothing_before_it_is_asked() -> None:
    assert _loaded("import fencepost") == {"fencepost"}
    assert not any("coordinator" in each for each in _loaded("import fencepost_model.versions"))
    assert "fencepost.coordinator" in _loaded("import fencepost; fencepost.step")


def _kind(hint: object) -> object:
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    if isinstance(hint, types.UnionType) and len(parts) == 1:
        return parts[0]
    return hint


@pytest.mark.parametrize("name", sorted(set(fencepost.__all__) - KEYS))
def test_neighbours_of_one_kind_are_named(name: str) -> None:
    """Two numbers, or two texts, that a caller could exchange unnoticed are keyword arguments."""
    found = getattr(fencepost, name)
    if not inspect.isclass(found) or not dataclasses.is_dataclass(found):
        return
    hints = typing.get_type_hints(found)
    kinds = [_kind(hints[field.name]) for field in dataclasses.fields(found) if field.init and not field.kw_only]
    for one, other in pairwise(kinds):
        for alike in (NUMBERS, (str,), (bytes,)):
            assert not (one in alike and other in alike), f"{name}: {one} and {other} stand side by side"
