"""Replacements of text in the core, for as long as a fault is planted.

A replacement names a file, a function in it, and a text that occurs once in the body of that function. The changed file
is compiled, and the function object gets the new code: so every reference to the function, under any name, is faulty
then. The core has no code for this. If the core has changed so that a replacement no longer fits, the error says what
is missing.
"""

from __future__ import annotations

import ast
import builtins
import dis
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import fencepost

_CORE: Final = Path(fencepost.__file__).parent
#: The packages beside the core that a replacement may name.
BESIDE: Final = ("fencepost_server", "fencepost_consumer")
_CONTEXT: Final = 2  #: lines around a change that a diff shows

#: The changed text of files of the core, by path within the package.
Sources = Mapping[str, str]


class DoesNotApply(Exception):
    """The core is not what a replacement expects."""


@dataclass(frozen=True, slots=True)
class Replacement:
    """``file``: within the package ``fencepost``, or ``fencepost_server/…`` or ``fencepost_consumer/…``. ``where``: a
    function in it, by its qualified name. ``before`` occurs once in the body of the function, and becomes ``after``.
    Further lines of both are written as if the first line of ``before`` had no indentation."""

    file: str
    where: str
    before: str
    after: str


def replaced(replacements: Sequence[Replacement]) -> Sources:
    """Return the changed files. Raises ``DoesNotApply`` for a replacement that does not fit the core."""
    return {file: _replaced(file, replacements) for file in dict.fromkeys(each.file for each in replacements)}


def diff(sources: Sources) -> str:
    """Return the difference between changed files and the core, as a unified diff."""
    lines: list[str] = []
    for file, source in sources.items():
        old, new = _source(file).splitlines(), source.splitlines()
        name = path_of(file).relative_to(_CORE.parent).as_posix()
        lines += unified_diff(old, new, name, name, n=_CONTEXT, lineterm="")
    return "\n".join(lines)


def lines_of(each: Replacement) -> tuple[list[str], list[str]]:
    """Return the lines that the replacement changes, before and after, without common indentation. Raises
    ``DoesNotApply``."""
    source = _source(each.file)
    at, length, after = _place(source, ast.parse(source), each)
    begin, end = source.rindex("\n", 0, at) + 1, source.index("\n", at + length)
    changed = source[begin:at] + after + source[at + length : end]
    return dedent(source[begin:end]).splitlines(), dedent(changed).splitlines()


@contextmanager
def in_place(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Apply the replacements to the program within the block. Raises ``DoesNotApply`` before anything is changed, also
    for a compiled core."""
    with exchanged(exchanged_code(replacements)):
        yield


@contextmanager
def exchanged(changes: Mapping[FunctionType, CodeType]) -> Iterator[None]:
    """Give these functions this code within the block."""
    before = [(function, function.__code__, dict(vars(function))) for function in changes]
    try:
        for function, code in changes.items():
            function.__code__ = code
        yield
    finally:
        for function, code, kept in before:
            function.__code__ = code
            vars(function).clear()  # attributes that a fault has stored
            vars(function).update(kept)


def exchanged_code(replacements: Sequence[Replacement]) -> dict[FunctionType, CodeType]:
    """Return the new code of each changed function. Raises ``DoesNotApply``."""
    changes: dict[FunctionType, CodeType] = {}
    for file, source in replaced(replacements).items():
        try:
            compiled = compile(source, str(path_of(file)), "exec", dont_inherit=True)
        except SyntaxError as reason:
            raise DoesNotApply(f"{file} is not valid Python with it, line {reason.lineno}: {reason.msg}") from None
        for where in dict.fromkeys(each.where for each in replacements if each.file == file):
            function, code = code_from(compiled, file, where)
            changes[function] = code
    return changes


def code_from(compiled: CodeType, file: str, where: str, given: Container[str] = ()) -> tuple[FunctionType, CodeType]:
    """Return the function of the core with that qualified name, and its code in ``compiled``.

    ``file``: within the package ``fencepost``; ``compiled``: the changed file; ``given``: names besides those of the
    file that the code may use. Raises ``DoesNotApply`` if the function cannot have that code."""
    function = _function(import_module(_module_name(file)), file, where)
    code = _code(compiled, where)
    _check(function, code, f"{where} in {file}", given)
    return function, code


def _module_name(file: str) -> str:
    return ".".join(path_of(file).relative_to(_CORE.parent).with_suffix("").parts)


def path_of(file: str) -> Path:
    """Return where a file of a replacement is."""
    return (_CORE.parent if file.startswith(BESIDE) else _CORE) / file


def file_of(path: Path) -> str:
    """Return the name that a replacement uses for this file."""
    return path.relative_to(_CORE if path.is_relative_to(_CORE) else _CORE.parent).as_posix()


def _source(file: str) -> str:
    try:
        return path_of(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DoesNotApply(f"the core has no file {file}") from None


def _replaced(file: str, replacements: Sequence[Replacement]) -> str:
    source = text = _source(file)
    tree = ast.parse(source)
    places = sorted(_place(source, tree, each) for each in replacements if each.file == file)
    for at, length, after in reversed(places):
        text = text[:at] + after + text[at + length :]
    return text


def _place(source: str, tree: ast.Module, each: Replacement) -> tuple[int, int, str]:
    """Return the position and the length of the old text, and the new text."""
    begin, end = _body(source, tree, each)
    places = []
    for line in source[begin:end].splitlines(keepends=True):
        indent = "\n" + line[: len(line) - len(line.lstrip())]
        before, after = (text.replace("\n", indent) for text in (each.before, each.after))
        at = source.find(before, begin, end)
        while begin <= at < begin + len(line):
            places.append((at, len(before), after))
            at = source.find(before, at + 1, end)
        begin += len(line)
    if not places:
        raise DoesNotApply(f"{each.where} in {each.file} does not contain this text: {each.before}")
    if len(places) > 1:
        raise DoesNotApply(
            f"{each.where} in {each.file} contains this text {len(places)} times instead of once: {each.before}"
        )
    return places[0]


def _body(source: str, tree: ast.Module, each: Replacement) -> tuple[int, int]:
    """Return where the statements of the function begin and end, without its docstring."""
    node: Any = tree
    for name in each.where.split("."):
        named = [child for child in node.body if getattr(child, "name", None) == name]
        if len(named) != 1:
            raise DoesNotApply(f"{each.file} has {'no' if not named else 'more than one'} {each.where}")
        (node,) = named
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        raise DoesNotApply(f"{each.where} in {each.file} is not a function")
    first = node.body[1 if ast.get_docstring(node) is not None and len(node.body) > 1 else 0]
    lines = source.splitlines(keepends=True)
    return sum(map(len, lines[: first.lineno - 1])), sum(map(len, lines[: node.end_lineno]))


def _code(compiled: CodeType, where: str) -> CodeType:
    code = compiled
    for name in where.split("."):
        (code,) = (each for each in code.co_consts if isinstance(each, CodeType) and each.co_name == name)
    return code


def _function(module: ModuleType, file: str, where: str) -> FunctionType:
    """Return the module's function with this name, without wrappers. Raises ``DoesNotApply`` if the module is compiled,
    or the function caches its results."""
    if Path(module.__file__ or "").suffix != ".py":
        raise DoesNotApply(
            f"{module.__name__} is compiled ({module.__file__}); install Fencepost without FENCEPOST_COMPILED, since "
            "mutants replace text of plain Python"
        )
    owner: Any = module
    for name in where.split("."):
        owner = vars(owner)[name]
    function: Any = owner.fget if isinstance(owner, property) else getattr(owner, "__func__", owner)
    if hasattr(function, "cache_clear"):
        raise DoesNotApply(f"{where} in {file} caches its results, and would keep those of the fault")
    function = getattr(function, "__wrapped__", function)
    assert isinstance(function, FunctionType)
    return function


def _check(function: FunctionType, code: CodeType, each: str, given: Container[str]) -> None:
    """Raise ``DoesNotApply`` if the function cannot have this code, or its names."""
    if code.co_freevars != function.__code__.co_freevars:
        raise DoesNotApply(f"{each} would need other enclosing variables: {', '.join(code.co_freevars)}")
    unknown = sorted(_globals(code) - vars(builtins).keys() - function.__globals__.keys())
    if unknown := [name for name in unknown if name not in given]:
        raise DoesNotApply(f"{each} would need names that its file does not have: {', '.join(unknown)}")


def _globals(code: CodeType) -> set[str]:
    names = {each.argval for each in dis.get_instructions(code) if each.opname in {"LOAD_GLOBAL", "LOAD_NAME"}}
    return names.union(*(_globals(each) for each in code.co_consts if isinstance(each, CodeType)))
