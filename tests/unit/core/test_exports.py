"""``import fencepost`` gives what an embedder needs, says the same to tools and at run time, and costs nothing."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
import subprocess
import sys
import types
import typing
from itertools import pairwise
from types import ModuleType

import pytest

import fencepost
from fencepost import errors, events, member, messages, records

NAMES = sorted(fencepost._HOMES)
#: the modules of names beside the top level
MODULES = (errors, events, member, messages, records)
PUBLIC = {name: getattr(fencepost, name) for name in NAMES} | {
    f"{module.__name__}.{name}": found
    for module in MODULES
    for name, found in vars(module).items()
    if not name.startswith("_") and not isinstance(found, ModuleType)
}
#: Keys of log and timers, and classes that begin like one. Every step makes them, and only the core does; the group
#: comes first, then the member or partition.
KEYS = ("Key", "OffsetView", "Producer")
NUMBERS, TEXTS = (int, float, bool), (str, bytes)


def test_the_top_level_is_small() -> None:
    assert 40 <= len(NAMES) <= 55
    assert {"GroupBroker", "MemoryStore", "Worker", "Settings", "step", "messages"} <= set(NAMES)


def test_help_fits_on_two_screens() -> None:
    assert len(pydoc.plain(pydoc.render_doc(fencepost)).splitlines()) <= 100


@pytest.mark.parametrize("name", PUBLIC)
def test_each_name_is_there_and_explained(name: str) -> None:
    found = PUBLIC[name]
    assert found is not None
    if "." not in name:
        assert name in dir(fencepost)
    if inspect.isclass(found) or inspect.isfunction(found):
        assert found.__doc__ or dataclasses.is_dataclass(found)


def test_another_name_is_not() -> None:
    with pytest.raises(AttributeError, match="module 'fencepost' has no attribute 'setp'"):
        fencepost.setp  # type: ignore[attr-defined]  # noqa: B018


def _loaded(program: str) -> set[str]:
    words = [sys.executable, "-c", f"import sys; {program}; print(*[m for m in sys.modules if m[:9] == 'fencepost'])"]
    return set(subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout.split())


def test_an_import_loads_only_the_needed_packages() -> None:
    assert _loaded("import fencepost") == {"fencepost"}
    assert not any("coordinator" in each for each in _loaded("import fencepost_model.versions"))
    assert not any("coordinator" in each for each in _loaded("import fencepost; fencepost.messages"))
    assert "fencepost.coordinator" in _loaded("import fencepost; fencepost.step")


def _kind(hint: object) -> object:
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
    if isinstance(hint, types.UnionType) and len(parts) == 1:
        return parts[0]
    return hint


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.endswith(KEYS)])
def test_neighbours_of_one_kind_are_named(name: str) -> None:
    """Two numbers, or two texts, that a caller could exchange unnoticed are keyword arguments."""
    found = PUBLIC[name]
    if not inspect.isclass(found) or not dataclasses.is_dataclass(found):
        return
    hints = typing.get_type_hints(found)
    kinds = [_kind(hints[field.name]) for field in dataclasses.fields(found) if field.init and not field.kw_only]
    for one, other in pairwise(kinds):
        for alike in (NUMBERS, (str,), (bytes,)):
            assert not (one in alike and other in alike), f"{name}: {one} and {other} stand side by side"
