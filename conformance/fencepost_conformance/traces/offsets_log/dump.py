"""A dump: one JSON object a line for each record, as ``fencepost decode`` prints it.

``key_bytes`` and ``value_bytes`` (base64) are the record; the other fields show what they contain. So a dump has all
that the log had, also records of unknown types, and a reader needs only ``partition``, ``offset``, ``at_ms`` and the
bytes.
"""

from __future__ import annotations

import binascii
import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter

from fencepost.codec import Codec, CodecError, Opaque
from fencepost.protocol.offset_records import Producer

from ..record_form import RecordField
from .rows import NO_TIME, LogRow, Notices

#: bytes of a piece of a dump that a task reads
_PIECE: Final = 64 << 20
_BUFFER: Final = 1 << 20
_FORM: Final[TypeAdapter[Any]] = TypeAdapter(RecordField)


def line_of(row: LogRow, codec: Codec) -> dict[str, Any]:
    """Return the object of a record. A record that cannot be decoded has ``problem`` instead of ``key`` and
    ``value``."""
    line: dict[str, Any] = {
        "partition": row.partition,
        "offset": row.offset,
        "at_ms": row.at_ms,
        "at": iso(row.at_ms),
        "type": None,
        **_record_fields(row, codec),
    }
    if row.producer is not None:
        line["producer"] = {
            "producer_id": row.producer.producer_id,
            "producer_epoch": row.producer.producer_epoch,
        }
    line["control"] = row.control
    line["key_bytes"] = None if row.key is None else b64encode(row.key).decode()
    line["value_bytes"] = None if row.value is None else b64encode(row.value).decode()
    return line


def _record_fields(row: LogRow, codec: Codec) -> dict[str, Any]:
    try:
        if row.control:
            record: Any = codec.decode_marker(row.key, row.value, row.producer)
        else:
            record = codec.decode(row.key, row.value, row.producer)
    except CodecError as wrong:
        return {"problem": str(wrong)}
    if record is None:
        return {"problem": "a control record that ends no transaction"}
    if isinstance(record, Opaque):
        return {"type": record.name, "problem": "records of this type are not decoded"}
    document: dict[str, Any] = _FORM.dump_python(record, mode="json")
    return {"type": document.get("type", "GroupMetadata"), "key": document["key"], "value": document["value"]}


def iso(at_ms: int) -> str | None:
    """Return a time as a date in UTC; None for no time, or one that is not a date."""
    if at_ms < 0:
        return None
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def read_dump(path: Path, notices: Notices) -> Iterator[LogRow]:
    """Yield the records of a dump; lines that are none are noted. Raises ``OSError``."""
    for _, row in read_piece(path, Piece(0, path.stat().st_size), 0, notices):
        yield row


class Piece(NamedTuple):
    """The lines of a dump that begin at a byte from ``begin`` to below ``end``."""

    begin: int
    end: int


def pieces(size: int, most: int = _PIECE) -> list[Piece]:
    """Divide a dump of ``size`` bytes into pieces of at most ``most`` bytes."""
    return [Piece(begin, min(begin + most, size)) for begin in range(0, size, most)]


def line_ends(path: Path, piece: Piece) -> int:
    """Count the line ends in the bytes of a piece. Raises ``OSError``."""
    found = 0
    with path.open("rb") as file:
        file.seek(piece.begin)
        left = piece.end - piece.begin
        while left > 0 and (data := file.read(min(left, _BUFFER))):
            found += data.count(b"\n")
            left -= len(data)
    return found


def read_piece(path: Path, piece: Piece, before: int, notices: Notices) -> Iterator[tuple[int, LogRow]]:
    """Yield the records of a piece, each with the number of its line; lines that are none are noted. ``before``: the
    number of line ends before the piece. Raises ``OSError``."""
    with path.open("rb") as file:
        at = max(piece.begin - 1, 0)
        file.seek(at)
        if piece.begin:  # to the first line that begins in the piece
            rest = file.readline()
            at += len(rest)
            before += at > piece.begin
        for number, text in enumerate(file, before + 1):
            if at >= piece.end:
                return
            at += len(text)
            if text.isspace():
                continue
            try:
                yield number, row_of(json.loads(text))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as wrong:
                said = f"no field {wrong}" if isinstance(wrong, KeyError) else str(wrong).split("\n", maxsplit=1)[0]
                notices.add(f"{path}:{number}: not a record of fencepost decode: {said}")


def row_of(line: Any) -> LogRow:
    """Return the record of a line. Raises ``ValueError``, ``TypeError``, ``KeyError`` or ``AttributeError``."""
    fields = line.get("producer")
    producer = None if fields is None else Producer(_number(fields, "producer_id"), _number(fields, "producer_epoch"))
    at_ms = _number(line, "at_ms") if "at_ms" in line else NO_TIME
    return LogRow(
        _number(line, "partition"),
        _number(line, "offset"),
        max(at_ms, NO_TIME),
        _bytes(line["key_bytes"]),
        _bytes(line["value_bytes"]),
        producer,
        line.get("control") is True,
    )


def _number(line: Any, name: str) -> int:
    value = line[name]
    if type(value) is not int:
        raise ValueError(f"{name} must be a number (got {value!r})")
    return value


def _bytes(text: Any) -> bytes | None:
    if text is None:
        return None
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise ValueError(f"not base64: {text!r:.40}") from None


def is_dump(path: Path) -> bool:
    """Return whether the file begins like a dump. Raises ``OSError``."""
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"{")
