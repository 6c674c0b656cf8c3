"""Answers of a broker as plain data, and what a case expects of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

#: an answer: mappings, lists, strings, numbers, bytes, booleans and None
Plain: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer. ``answer`` is None if there was none. ``at_s``: seconds since the case began, when it
    was sent; ``took_s``: seconds until the answer."""

    number: int
    client: str
    api: str
    version: int
    request: Mapping[str, Any]
    answer: Plain
    at_s: float
    took_s: float


@dataclass(frozen=True, slots=True)
class Matches:
    """A condition on a value, with the words that a failure shows."""

    words: str
    holds: Callable[[Any], bool]


def one_of(*values: Any) -> Matches:
    """Match any of these values."""
    return Matches(" or ".join(map(repr, values)), lambda value: value in values)


#: matches a string or list that is not empty
SOMETHING: Final = Matches("something", bool)


class NotSupported(Exception):
    """The broker does not announce what the case needs."""


@dataclass(frozen=True, slots=True)
class Mismatch(Exception):
    """An answer is not what the case expects. ``path``: the field, such as ``members.0.member_id``."""

    exchange: Exchange
    path: str
    expected: str
    received: str

    def __str__(self) -> str:
        asked = self.exchange
        return f"{asked.api} v{asked.version}: {self.path} is {self.received}; expected {self.expected}"


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, or a part of one. ``path``: where the part is in the whole answer."""

    exchange: Exchange
    value: Plain
    path: str = ""
    #: hears of the fields that cases read and compare, for the test that falsifies them
    compared: Callable[[Exchange, str], None] = lambda exchange, path: None

    def __getitem__(self, name: str) -> Any:
        where = f"{self.path}.{name}".lstrip(".")
        self.compared(self.exchange, where)
        self._require(self.value, name, where)
        return self.value[name]

    def at(self, path: str) -> Answer:
        """Return the part at a path, such as ``topics.0.partitions.1``. Raises ``Mismatch`` if there is none, and
        ``NotSupported`` if answers of this version have no such field."""
        value, where = self.value, self.path
        for step in path.split("."):
            where = f"{where}.{step}".lstrip(".")
            self._require(value, step, where)
            try:
                value = value[int(step)] if isinstance(value, list) else value[step]
            except (IndexError, KeyError, TypeError, ValueError):
                raise Mismatch(self.exchange, where, "to be there", "absent") from None
        return Answer(self.exchange, value, where, self.compared)

    def _require(self, value: Plain, name: str, where: str) -> None:
        if isinstance(value, Mapping) and name not in value:
            asked = self.exchange
            raise NotSupported(f"{asked.api} v{asked.version} has no field {where}; this case needs another version")

    def expect(self, **wanted: Any) -> Answer:
        """Compare fields with values, or with ``Matches``; error codes are compared by their names. Return this answer.
        Raises ``Mismatch`` for the first field that differs."""
        for name, value in wanted.items():
            part = self.at(name)
            self.compared(self.exchange, part.path)
            if isinstance(value, Matches):
                if not value.holds(part.value):
                    raise Mismatch(self.exchange, part.path, value.words, repr(part.value))
            elif part.value != value:
                raise Mismatch(self.exchange, part.path, repr(value), repr(part.value))
        return self

    def rows(self, path: str, *, number: int) -> list[Answer]:
        """Return the rows of a list that must have this many. Raises ``Mismatch``."""
        part = self.at(path)
        self.compared(self.exchange, part.path)
        if len(part.value) != number:
            raise Mismatch(self.exchange, part.path, f"{number} rows", f"{len(part.value)} rows")
        return [part.at(str(index)) for index in range(number)]


def plain(value: Any) -> Plain:
    """Return one of kio's messages as plain data: error codes by Kafka's names, topic ids as text, durations in
    milliseconds."""
    if isinstance(value, ErrorCode):
        return value.name.upper()
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, str | bytes) or value is None:
        return value
    if isinstance(value, Sequence):
        return [plain(each) for each in value]
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, UUID):
        return str(value)
    return value if isinstance(value, bool | float) else int(value)
