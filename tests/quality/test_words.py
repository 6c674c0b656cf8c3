"""Every public function and class of the core is described in words before the rules are named, and no identifier of
the library or the model contains a word that only this project used. A class has its own name in its package."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "impl"
MODEL = CORE.parent / "model"
FILES = sorted(CORE.rglob("*.py"))
_ID = re.compile(r"\b(?!KIP-)[A-Z]+(?:-[A-Z0-9]+)*-\d+[a-z]?(?:\([ivx]+\))?")
_SHORTEST = 3
#: Words for things that have a name in Kafka's source or in the field: the response, the record's key, the replacement
_PRIVATE = re.compile(
    r"(?:^|_)(?:aims?|clerks?|desks?|errands?|go(?:es)?_on|heirs?|mended|met|sinking|tell(?:s|er|ing)?|tenures?|(?:un)?told|wish(?:es)?)(?:_|$)"
)


def public(body: list[ast.stmt], within: str = "") -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    """Yield functions and classes by qualified name, without private and special ones."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield within + node.name, node  # type: ignore[misc]  # an async function is as good
            if isinstance(node, ast.ClassDef):
                yield from public(node.body, f"{within}{node.name}.")


def opens_with_words(text: str) -> bool:
    """Whether there are words before the first rule id, not only punctuation."""
    return len(re.findall(r"[A-Za-z]{2,}|\b[aA]\b", _ID.split(text)[0])) >= _SHORTEST or (
        _ID.search(text) is None and bool(text.split())
    )


def documented_methods() -> frozenset[str]:
    """Return the methods that some class of the core documents, and those of the standard library's mappings."""
    documented = {"get", "keys", "values", "items"}
    for file in FILES:
        for name, node in public(ast.parse(file.read_text(encoding="utf-8")).body):
            if "." in name and ast.get_docstring(node):
                documented.add(node.name)
    return frozenset(documented)


DOCUMENTED = documented_methods()


def obvious(name: str, node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Whether the docstring may be missing: a property that its class explains, or a method that its protocol
    documents."""
    names = {getattr(each, "attr", getattr(each, "id", "")) for each in node.decorator_list}
    return bool(names & {"property", "overload", "override"}) or ("." in name and node.name in DOCUMENTED)


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(CORE)) for file in FILES])
def test_words_come_first(file: Path) -> None:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = []
    for name, node in public(tree.body):
        text = ast.get_docstring(node)
        if text is None and not obvious(name, node):
            found.append(f"{name} has no docstring")
        elif text is not None and not opens_with_words(text):
            found.append(f"{name} begins with rule ids: {text.splitlines()[0]}")
    assert found == []


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("M-HB-07.", False),
        ("C-ST-13, C-ST-14; of a group.", False),
        ("Whether it may go (M-HB-07).", True),
        ("", False),
    ],
)
def test_first_words_of_a_docstring(text: str, good: bool) -> None:
    assert opens_with_words(text) is good


def is_private(name: str) -> bool:
    """Whether an identifier, in camel case or with underscores, contains a private word."""
    return _PRIVATE.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()) is not None


def private_names(source: str) -> list[str]:
    """Return the identifiers with a private word, in a module's code; comments and texts do not count."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return sorted({each.string for each in tokens if each.type == tokenize.NAME and is_private(each.string)})


def repeated_classes(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the public classes that several modules of a package define, with these modules."""
    modules: dict[str, list[str]] = {}
    for module, source in sources.items():
        for name in [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]:
            modules.setdefault(name, []).append(module)
    return {name: found for name, found in modules.items() if len(found) > 1 and not name.startswith("_")}


@pytest.mark.parametrize("package", ["fencepost", "fencepost_server", "fencepost_consumer"])
def test_a_class_has_its_own_name_in_its_package(package: str) -> None:
    """``fencepost.wire`` does not count: it has some messages again, in the form of the library that encodes them."""
    files = [file for file in FILES if package in file.parts and "wire" not in file.parts]
    assert repeated_classes({str(file.relative_to(CORE)): file.read_text(encoding="utf-8") for file in files}) == {}


def test_a_repeated_class_is_found() -> None:
    sources = {"a.py": "class Row: ...", "b.py": "class Row: ...\nclass _Own: ...", "c.py": "class _Own: ..."}
    assert repeated_classes(sources) == {"Row": ["a.py", "b.py"]}


def test_identifiers_have_no_private_words() -> None:
    files = [*FILES, *sorted(MODEL.rglob("*.py"))]
    found = {str(file.relative_to(CORE.parent)): private_names(file.read_text(encoding="utf-8")) for file in files}
    assert {file: names for file, names in found.items() if names} == {}, "name the value: the response, the key, ..."


@pytest.mark.parametrize(
    "name",
    ["told", "_Told", "told_regex", "generation_told", "untold", "runErrands", "_go_on", "HeirOf", "sinking", "met"],
)
def test_a_private_word_is_found_in_code(name: str) -> None:
    assert private_names(f"# told\n{name} = 'told'\nmethod = f'{{metrics}} told'\n") == [name]
