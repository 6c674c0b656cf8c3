"""TLA+ values as TLC prints them, as Python values that are equal exactly if the TLA+ values are.

Strings and model values become str, sets frozenset, sequences tuple, records and functions ``Function``. A function
with domain 1…n is a sequence in TLA+, and TLC prints it as one; the empty function is ``()``.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, TypeAlias

TlaValue: TypeAlias = Hashable


class Function(frozenset[Any]):
    """A function or record with a domain other than 1…n: the set of its (argument, value) pairs."""

    __slots__ = ()

    def __repr__(self) -> str:
        return show(self)


def function(pairs: Mapping[Any, TlaValue] | Iterable[tuple[Any, TlaValue]]) -> TlaValue:
    """Return the function with these pairs, in canonical form."""
    mapping = dict(pairs)
    keys = {*mapping}
    if keys == {*range(1, len(mapping) + 1)}:
        return tuple(mapping[each] for each in range(1, len(mapping) + 1))
    return Function(mapping.items())


def record(**fields: TlaValue) -> TlaValue:
    return function(fields)


_TOKEN: Final = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<int>-?\d+(?!\w))|(?P<name>\w+)|(?P<op><<|>>|\|->|:>|@@|\.\.|[{}\[\](),]))'
)
_ESCAPE: Final = re.compile(r"\\(.)")


class ParseError(ValueError):
    """The text is not a value as TLC prints it."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        at = 0
        end = len(text.rstrip())
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise ParseError(f"unexpected {text[at : at + 20]!r} in {text!r}")
            kind = match.lastgroup or ""
            self.tokens.append((kind, match[kind]))
            at = match.end()
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, expected: str) -> None:
        if self.peek() != expected:
            raise ParseError(f"expected {expected!r}, found {self.peek()!r} in {self.text!r}")
        self.at += 1

    def value(self) -> TlaValue:
        if self.at >= len(self.tokens):
            raise ParseError(f"{self.text!r} ends too early")
        kind, token = self.tokens[self.at]
        self.at += 1
        if kind == "string":
            return _ESCAPE.sub(r"\1", token[1:-1])
        if kind == "int":
            first = int(token)
            if self.peek() != "..":
                return first
            self.at += 1
            last = self.value()
            if not isinstance(last, int):
                raise ParseError(f"not an interval in {self.text!r}")
            return frozenset(range(first, last + 1))
        if kind == "name":
            return {"TRUE": True, "FALSE": False}.get(token, token)
        if token == "<<":
            return tuple(self._list(">>"))
        if token == "{":
            return frozenset(self._list("}"))
        if token == "[":
            return function(self._pairs("|->", "]", ","))
        if token == "(":
            return function(self._pairs(":>", ")", "@@"))
        raise ParseError(f"unexpected {token!r} in {self.text!r}")

    def _list(self, end: str) -> list[TlaValue]:
        found: list[TlaValue] = []
        while self.peek() != end:
            if found:
                self.take(",")
            found.append(self.value())
        self.take(end)
        return found

    def _pairs(self, arrow: str, end: str, separator: str) -> list[tuple[TlaValue, TlaValue]]:
        found: list[tuple[TlaValue, TlaValue]] = []
        while self.peek() != end:
            if found:
                self.take(separator)
            key = self.value()
            self.take(arrow)
            found.append((key, self.value()))
        self.take(end)
        return found


def parse(text: str) -> TlaValue:
    """Parse one value. Raises ParseError."""
    reader = _Reader(text)
    value = reader.value()
    if reader.at < len(reader.tokens):
        raise ParseError(f"more than a value: {text!r}")
    return value


def parse_state(text: str) -> dict[str, TlaValue]:
    """Parse a state as TLC prints it: ``/\\ x = 1`` per line, or ``x = 1`` if there is only one variable."""
    found: dict[str, TlaValue] = {}
    for part in re.split(r"(?:^|\n)\s*/\\ ", text):
        if part.strip():
            name, equals, value = part.partition(" = ")
            if not equals:
                raise ParseError(f"no variable in {part!r}")
            found[name.strip()] = parse(value)
    return found


def show(value: Any) -> str:
    """Return the value in TLA+ notation, with sets and functions in a fixed order."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"<<{', '.join(map(show, value))}>>"
    if isinstance(value, Function):
        pairs = sorted(value, key=repr)
        if all(isinstance(key, str) and key.isidentifier() for key, _ in pairs):
            return f"[{', '.join(f'{key} |-> {show(each)}' for key, each in pairs)}]"
        return f"({' @@ '.join(f'{show(key)} :> {show(each)}' for key, each in pairs)})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(show, value)))}}}"
    return str(value)


#: The first letters of names of clients, members, partitions … ("c1"), which are arguments of functions.
_NAMED: Final = frozenset({"b", "c", "h", "i", "k", "m", "p"})


def is_field(key: Any) -> bool:
    """Return whether the argument is a field of a record. TLC prints a function on strings and a record alike."""
    return isinstance(key, str) and key.isidentifier() and not (key[0] in _NAMED and key[1:].isdigit())
