"""Records as bytes that Kafka's serde wrote and read, kept in a file, so that the codec is tested without a JVM.

``python -m tools.serde`` asks Kafka again and writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from fencepost.codec import LAYOUTS, Codec, CodecError, Opaque, RecordBytes
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from . import client, draw
from .client import KafkaSerde
from .compare import Meaning, Refusal, marker_of_codec, marker_of_kafka, of_codec, of_kafka, rules_of
from .json_form import JsonObject

FILE: Final = Path(__file__).with_name("kafka-records.json")
#: the newest release of each layout, by the name of its profile
RELEASES: Final[Mapping[str, str]] = {
    "kafka-4.0": "4.0.2",
    "kafka-4.1": "4.1.2",
    "kafka-4.2": "4.2.1",
    "kafka-4.2.2": "4.2.2",
    "kafka-4.3": "4.3.1",
    "kafka-4.4": "4.4.0",
}
#: How many records of each type, damaged ones, and control records to keep; maximum number of bytes of one.
EACH, DAMAGED, MARKERS = 3, 60, 12
_LONG, _SHORT = 350, 150
_CHOSEN: Final = -1


class Row(NamedTuple):
    """Bytes of a record, and Kafka's reading of them. ``version``: Kafka wrote them, as a value of this version; -1:
    and chose the version itself; None: Kafka did not write them."""

    key: bytes | None
    value: bytes | None
    means: Meaning | Refusal
    version: int | None


class MarkerRow(NamedTuple):
    """Bytes of a control record, and Kafka's reading: the result of the transaction and the coordinator's epoch, or
    nothing for a record of another kind."""

    key: bytes
    value: bytes | None
    means: tuple[bool, int | None] | Refusal | None


class Kept(NamedTuple):
    """The kept rows of a release."""

    records: tuple[Row, ...]
    markers: tuple[MarkerRow, ...]


@cache
def kept() -> Mapping[str, Kept]:
    """Return the contents of the file, by release."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        release: Kept(
            tuple(Row(_bytes(row[0]), _bytes(row[1]), _meaning(row[2]), row[3]) for row in rows["records"]),
            tuple(MarkerRow(bytes.fromhex(row[0]), _bytes(row[1]), _end(row[2])) for row in rows["markers"]),
        )
        for release, rows in document.items()
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


def _meaning(value: str | tuple[int, JsonObject, JsonObject | None]) -> Meaning | Refusal:
    return Refusal(value) if isinstance(value, str) else Meaning(*value)


def _end(value: str | tuple[bool, int | None] | None) -> tuple[bool, int | None] | Refusal | None:
    if value is None or isinstance(value, str):
        return None if value is None else Refusal(value)
    committed, epoch = value
    return committed, epoch


def asked(kafka: KafkaSerde, codec: Codec, seed: str) -> Kept:
    """Return some records of every type as Kafka writes them, and some damaged bytes, each with Kafka's reading."""
    rng = Random(f"{seed} kept")
    records = [make(rng) for make in draw.RECORDS for _ in range(EACH)]
    rows = [(record, draw.version(rng, record)) for record in records]
    written = [
        (client.written(answer), version)
        for answer, (_, version) in zip(kafka.ask([client.write(*row) for row in rows]), rows, strict=True)
    ]
    commits = [
        client.commit(record.key, record.value)
        for record in records
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue)
    ]
    written += [(client.written(answer), _CHOSEN) for answer in kafka.ask(commits)]
    given: list[tuple[bytes | None, bytes | None, int | None]] = [
        (*each, version) for each, version in written if each is not None
    ]
    given += [(key, value, None) for _, key, value in draw.pointed()]
    given += [(*draw.damaged(rng, codec), None) for _ in range(DAMAGED)]
    short = [
        each for each in given if len(each[0] or b"") + len(each[1] or b"") <= (_SHORT if each[2] is None else _LONG)
    ]
    answers = kafka.ask([client.read(key, value) for key, value, _ in short])
    return Kept(
        tuple(
            Row(key, value, of_kafka(answer), version)
            for (key, value, version), answer in zip(short, answers, strict=True)
        ),
        tuple(_markers(kafka, rng)),
    )


def _markers(kafka: KafkaSerde, rng: Random) -> Iterator[MarkerRow]:
    rows: list[tuple[bytes, bytes | None]] = [
        each
        for answer in kafka.ask([client.write_marker(committed, 7) for committed in (True, False)])
        if (each := client.written(answer)) is not None
    ]
    rows += [draw.marker(rng) for _ in range(MARKERS)]
    for row, answer in zip(rows, kafka.ask([client.read_marker(*row) for row in rows]), strict=True):
        yield MarkerRow(*row, _result_of(marker_of_kafka(answer)))


def _result_of(read: Record | Refusal | None) -> tuple[bool, int | None] | Refusal | None:
    """Return the result of the transaction, and the epoch of its coordinator."""
    if not isinstance(read, Record):
        return read
    assert isinstance(read.key, ControlKey)
    return read.key.committed, read.value.coordinator_epoch if isinstance(read.value, ControlValue) else None


def write(releases: Mapping[str, Kept]) -> None:
    """Write the file."""
    parts = []
    for release, samples in releases.items():
        lists = {"records": list(map(_of_record, samples.records)), "markers": list(map(_of_marker, samples.markers))}
        shown = [f"{json.dumps(name)}:[\n" + ",\n".join(map(json.dumps, rows)) + "\n]" for name, rows in lists.items()]
        parts.append(f"{json.dumps(release)}:{{" + ",\n".join(shown) + "}")
    FILE.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _of_record(row: Row) -> list[object]:
    return [_hex(row.key), _hex(row.value), row.means, row.version]


def _of_marker(row: MarkerRow) -> list[object]:
    return [_hex(row.key), _hex(row.value), row.means]


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


class Wrong(NamedTuple):
    """A row of the file on which the codec differs. ``at``: number of rows checked so far; ``rule``: of records of its
    type."""

    at: int
    rule: str
    text: str


def wrongs() -> Iterator[Wrong]:
    """Yield the rows that the codec reads or writes differently from Kafka."""
    at = 0
    for name, release in RELEASES.items():
        codec = Codec(LAYOUTS[name])
        for row in kept()[release].records:
            at += 1
            text = _wrong_record(codec, *row)
            if text is not None:
                rule = rules_of(row.means, row.key)[0]
                yield Wrong(at, rule, f"Kafka {release}, {_shown(row.key, row.value)}: {text}")
        for marker in kept()[release].markers:
            at += 1
            text = _wrong_marker(codec, *marker)
            if text is not None:
                yield Wrong(at, "F-REC-26", f"Kafka {release}, {_shown(marker.key, marker.value)}: {text}")


def _wrong_record(
    codec: Codec, key: bytes | None, value: bytes | None, means: Meaning | Refusal, version: int | None
) -> str | None:
    ours = of_codec(codec, key, value)
    if ours != means and not isinstance(ours, Opaque):
        return f"Kafka reads {means}, but the codec reads {ours}"
    if version is not None and key is not None:
        again = _again(codec, key, value, None if version == _CHOSEN else version)
        if again != (key, value):
            return f"Kafka writes these bytes, but the codec writes {again}"
    return None


def _wrong_marker(
    codec: Codec, key: bytes, value: bytes | None, means: tuple[bool, int | None] | Refusal | None
) -> str | None:
    ours = _result_of(marker_of_codec(codec, key, value))
    if ours != means:
        return f"Kafka reads {means}, but the codec reads {ours}"
    if isinstance(means, tuple) and means[1] is not None and key[:2] == b"\0\0":
        again = codec.encode(Record(ControlKey(means[0]), ControlValue(means[1])))
        if again[0] != key[:4]:
            return f"Kafka writes these bytes, but the codec writes {again}"
    return None


def _again(codec: Codec, key: bytes, value: bytes | None, version: int | None) -> RecordBytes | CodecError | None:
    record = codec.decode(key, value)
    if isinstance(record, Opaque):
        return None
    try:
        return codec.encode(record, version)
    except CodecError as refused:
        return refused


def _shown(key: bytes | None, value: bytes | None) -> str:
    return f"{_hex(key) or '-'} {_hex(value) or '-'}"
