"""The differences of client libraries are in their classes, and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import isfunction
from pathlib import Path

import pytest

import fencepost_consumer
from fencepost_consumer import Client, Reader, ReaderSettings
from fencepost_consumer.clients import LIBRARIES, turn_of
from fencepost_consumer.turn import Turn

PACKAGE = Path(fencepost_consumer.__file__).parent
#: ``settings`` declares the libraries, ``clients`` has their classes, ``consumer`` checks that the member matches.
ASK = {Path("settings.py"): 1, Path("clients", "__init__.py"): 3, Path("consumer.py"): 1}


def asks(source: str) -> Iterator[int]:
    """Return the lines that name a client library."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Client":
            yield node.lineno


def test_only_the_choice_of_a_class_asks_for_the_library() -> None:
    found = {path.relative_to(PACKAGE): len(list(asks(path.read_text("utf-8")))) for path in PACKAGE.rglob("*.py")}
    assert {path: count for path, count in found.items() if count} == ASK


def test_a_branch_on_a_library_is_found() -> None:
    assert list(asks("import x\nif turn.client is Client.CLASSIC:\n    pass")) == [2]


def test_every_library_has_a_class() -> None:
    assert LIBRARIES.keys() == set(Client)
    for client, library in LIBRARIES.items():
        assert type(turn_of(Reader(ReaderSettings("g", client=client)), 0, 1.0)) is library


@pytest.mark.parametrize("library", LIBRARIES.values(), ids=lambda each: each.__name__)
def test_a_class_says_why_its_library_differs(library: type[Turn]) -> None:
    """Each override has a docstring, and each fact differs from the usual one."""
    changed = [
        (name, each, getattr(parent, name))
        for kind in library.__mro__
        if kind.__module__.startswith("fencepost_consumer.clients")
        for parent in kind.__mro__[1:2]
        for name, each in vars(kind).items()
        if not name.startswith("_") and hasattr(parent, name)
    ]
    assert changed
    for name, own, usual in changed:
        assert own.__doc__ if isfunction(own) or isinstance(own, property) else own is not usual, name
