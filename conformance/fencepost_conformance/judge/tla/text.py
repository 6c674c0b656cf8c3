"""TLA+ expressions for plain Python values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from ..checker.difference import in_words

Data: TypeAlias = "str | bool | int | tuple[Data, ...] | frozenset[Data] | Mapping[str, Data]"

_WORDS: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def string(value: str) -> str:
    """The string as TLA+ writes it. Characters beyond ASCII, which TLC's reader does not take, become ``u+`` codes."""
    return '"' + "".join(_WORDS.get(each, each) if each.isascii() else f"u+{ord(each):x}" for each in value) + '"'


def expression(value: Data) -> str:
    """The value as a TLA+ expression: tuples are sequences, frozensets are sets, mappings are functions of strings."""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, Mapping):
        if value and all(name.isidentifier() for name in value):
            return f"[{', '.join(f'{name} |-> {expression(each)}' for name, each in value.items())}]"
        rows = " @@ ".join(f"{string(name)} :> {expression(each)}" for name, each in value.items())
        return f"({rows})" if value else "<< >>"
    if isinstance(value, tuple):
        return f"<<{', '.join(map(expression, value))}>>" if value else "<< >>"
    return f"{{{', '.join(sorted(map(expression, value)))}}}"


class Tokens:
    """Names of byte strings: what they contain in words, and a number if other bytes contain the same."""

    def __init__(self, field: str) -> None:
        self._field = field
        self._names: dict[bytes, str] = {}
        self._used: dict[str, int] = {}

    def __getitem__(self, content: bytes) -> str:
        if content not in self._names:
            words = in_words(self._field, content, {})
            self._used[words] = self._used.get(words, 0) + 1
            self._names[content] = words if self._used[words] == 1 else f"{words} (variant {self._used[words]})"
        return self._names[content]
