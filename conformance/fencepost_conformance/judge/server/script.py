"""A script: requests as values, with names in place of the random ids of a broker.

A script does not depend on answers, so any part of it can be played on any broker. These values stand for others that
are known only during a run:

- ``At``: a time, counted from the beginning of the run;
- ``Kept``: a topic id, producer id or epoch that an earlier answer contained;
- ``Records``: the bytes of record batches, whose producer may be kept;
- a string that begins with ``~``: a name of this script, which gets the prefix of the run in place of ``~``.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias
from uuid import UUID

import crc32c

#: in place of an API: the bytes of ``data`` are sent
RAW: Final = "raw"
#: the first character of the names of a script
OWN: Final = "~"
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
GZIP: Final = 1
NOBODY: Final = -1

_BEFORE_LENGTH: Final = 12
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")


@dataclass(frozen=True, slots=True)
class Kept:
    """A value of an earlier answer, by its name; ``otherwise`` if no answer had it. ``plus`` is added to it."""

    name: str
    otherwise: Any = NOBODY
    plus: int = 0


@dataclass(frozen=True, slots=True)
class Records:
    """One record batch, or bytes in place of one.

    ``at_ms``: its time, from the beginning of the run. ``codec``: Kafka's number. ``damage``: a key of ``DAMAGES``;
    empty for a valid batch.
    """

    count: int = 1
    producer_id: Any = NOBODY
    epoch: Any = NOBODY
    sequence: int = NOBODY
    at_ms: int = 0
    step_ms: int = 0
    flags: int = 0
    codec: int = 0
    value_bytes: int = 0
    key: bool = False
    damage: str = ""


Value: TypeAlias = Any


class Sent(StrEnum):
    """How a request is sent."""

    WHOLE = "whole"
    PIECES = "in pieces"
    AHEAD = "in one packet with the next"
    CUT = "without its end, and then the connection is closed"


@dataclass(frozen=True, slots=True)
class Move:
    """One request. ``keeps``: by name of ``Kept``, the path in the answer; a step is a field or the number of a row.
    ``user``: the sender; empty on brokers without log-in. ``line``: the number of the user's connection."""

    api: str
    version: int
    values: Mapping[str, Value]
    keeps: Mapping[str, tuple[str | int, ...]] = field(default_factory=dict)
    user: str = ""
    line: int = 0
    sent: Sent = Sent.WHOLE

    def __str__(self) -> str:
        keeps = f"keeps {', '.join(self.keeps)}" if self.keeps else ""
        line = f"on connection {self.line}" if self.line else ""
        sent = "" if self.sent is Sent.WHOLE else self.sent
        notes = ", ".join(filter(None, (keeps, line, sent)))
        user = f"{self.user}: " if self.user else ""
        return f"{user}{self.api} v{self.version} {dict(self.values)}{notes and f'  # {notes}'}"


Script: TypeAlias = tuple[Move, ...]


@dataclass(slots=True)
class Run:
    """One run of a script on one broker. ``prefix``: of its names. ``began_ms``: the time from which all others count.
    ``ids``: the names of kept topic ids, by their text."""

    prefix: str
    began_ms: int
    kept: dict[str, Any] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)

    def keep(self, name: str, value: Any) -> None:
        """Note a value of an answer."""
        if isinstance(value, UUID):
            same = sum(each.startswith(f"<{name}") for each in self.ids.values())
            self.ids.setdefault(str(value), f"<{name} {same}>")
            value = value.bytes
        self.kept[name] = value

    def resolve(self, value: Value) -> Value:
        """The value to send, for a value of the script."""
        if isinstance(value, int):
            return value
        if isinstance(value, str):
            return self.prefix + value[1:] if value.startswith(OWN) else value
        if isinstance(value, Kept):
            found = self.kept.get(value.name, value.otherwise)
            return found + value.plus if value.plus else found
        if isinstance(value, Records):
            return self._bytes(value)
        if isinstance(value, At):
            return self.began_ms + value.ms
        if isinstance(value, Mapping):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.resolve(item) for item in value]
        return value

    def _bytes(self, records: Records) -> bytes:
        producer_id, epoch = self.resolve(records.producer_id), self.resolve(records.epoch)
        first = self.began_ms + records.at_ms
        data: bytes = DAMAGES[records.damage](batch(records, first, int(producer_id), int(epoch)))
        return data


@dataclass(frozen=True, slots=True)
class At:
    """A time: milliseconds from the beginning of the run."""

    ms: int


def _varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def batch(records: Records, first_ms: int, producer_id: int, epoch: int) -> bytes:
    """A batch of magic 2."""
    body = bytearray()
    for at in range(records.count):
        key = _varint(2) + b"k%d" % (at % 10) if records.key else _varint(-1)
        value = _varint(records.value_bytes) + bytes(records.value_bytes)
        record = b"\x00" + _varint(at * records.step_ms) + _varint(at) + key + value + _varint(0)
        body += _varint(len(record)) + record
    payload = gzip.compress(bytes(body), mtime=0) if records.codec == GZIP else bytes(body)
    delta = records.count - 1
    attributes, times = records.flags | records.codec, (first_ms, first_ms + max(delta, 0) * records.step_ms)
    length = _HEADER.size - _BEFORE_LENGTH + len(payload)
    producer = (producer_id, epoch, records.sequence)
    head = _HEADER.pack(0, length, -1, 2, 0, attributes, delta, *times, *producer, records.count)
    return _with_checksum(bytearray(head + payload))


def _with_checksum(data: bytearray) -> bytes:
    struct.pack_into(">I", data, 17, crc32c.crc32c(bytes(data[21:])))
    return bytes(data)


def _changed(at: int, code: str, value: int, *, checked: bool = True) -> Any:
    """Change a number in the header; ``checked``: and correct the checksum."""

    def change(data: bytes) -> bytes:
        made = bytearray(data)
        struct.pack_into(code, made, at, value)
        return _with_checksum(made) if checked else bytes(made)

    return change


#: By name: a function that changes the bytes of a valid batch.
DAMAGES: Final[dict[str, Any]] = {
    "": lambda data: data,
    "empty": lambda _: b"",
    "short": lambda data: data[:-1],
    "header alone": lambda data: data[:40],
    "longer": lambda data: data + b"\x00",
    "two batches": lambda data: data + data,
    "second cut": lambda data: data + data[:-3],
    "checksum": _changed(17, ">I", 7, checked=False),
    "magic 1": _changed(16, ">b", 1, checked=False),
    "base offset": _changed(0, ">q", 5, checked=False),
    "leader epoch": _changed(12, ">i", 7, checked=False),
    "count": _changed(57, ">i", 9),
    "last delta": _changed(23, ">i", 9),
    "negative delta": _changed(23, ">i", -1),
}
