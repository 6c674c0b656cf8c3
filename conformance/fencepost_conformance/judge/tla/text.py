"""TLA+ expressions for plain Python values, and the parts of a trace's data that all groups have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from fencepost.protocol.errors import ErrorCode

from ..checker.difference import in_words
from ..checker.history import Event, History, Op

Data: TypeAlias = "str | bool | int | tuple[Data, ...] | frozenset[Data] | Mapping[str, Data]"

#: constants of a specification that depend on the trace; traces with the same ones can be in one run of TLC
Constants: TypeAlias = "tuple[tuple[str, Data], ...]"

#: Clocks of a broker and of a recorder differ by at most this; a timer may seem to fire so much too early.
TOLERANCE_MS: Final = 20
#: answers of a broker that does not lead the group
NOT_HERE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)

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


class Row(dict[str, Data]):
    """A record that can be in a set."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))


@dataclass(frozen=True, slots=True)
class Inexpressible(Exception):
    """An event that the specification does not have; ``line`` counts the lines of the trace after its header."""

    line: int
    why: str


def name_of(prefix: str, op: Op) -> str:
    """The name of a request: its line, after a prefix that distinguishes traces."""
    return f"{prefix}line_{op.line}"


def lines_of(events: Iterable[Event], prefix: str) -> tuple[Data, ...]:
    return tuple(
        {
            "type": "received" if event.answered else "sent",
            "request": name_of(prefix, event.op),
            "line": event.line,
            "time": event.at_ms,
        }
        for event in events
    )


def signs_of(history: History, events: Iterable[Event]) -> frozenset[Data]:
    """The times at which the broker closes a connection or says that it does not lead the group."""
    turned = {
        event.at_ms for event in events if event.answered and getattr(event.op.answer, "error_code", None) in NOT_HERE
    }
    return frozenset(turned | {at_ms for _, at_ms in history.coordination.signs})
