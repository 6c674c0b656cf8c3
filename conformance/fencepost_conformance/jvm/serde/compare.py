"""The codec beside Kafka's serde: the same bytes for a record, the same record or the same refusal for bytes."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from random import Random
from typing import NamedTuple

from fencepost.codec import Codec, CodecError, Opaque, TornRecord, UnknownType, UnknownVersion
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record

from . import client, draw
from .client import Answer, KafkaSerde
from .json_form import Told, as_json, filled


class Refusal(StrEnum):
    """Why bytes are no record."""

    TYPE = "unknown type"
    VERSION = "unknown version"
    TORN = "torn"


class Meaning(NamedTuple):
    """What bytes say. ``number``: the type, of which 0 means what 1 means."""

    number: int
    key: Told
    value: Told | None


class Difference(NamedTuple):
    """``given``: what the codec and Kafka were given; then what each made of it."""

    given: object
    ours: object
    kafkas: object


def of_kafka(answer: Answer) -> Meaning | Refusal:
    """What Kafka's serde made of bytes."""
    if "refused" in answer:
        kind = answer["refused"]
        if kind == "UnknownRecordTypeException":
            return Refusal.TYPE
        return Refusal.VERSION if kind == "UnknownRecordVersionException" else Refusal.TORN
    number = answer["type"]
    return Meaning(max(number, 1), answer["key"], filled(number, answer["value"]))


def of_codec(codec: Codec, key: bytes | None, value: bytes | None) -> Meaning | Refusal | Opaque:
    """What the codec makes of them."""
    try:
        told = codec.decode(key, value)
    except UnknownType:
        return Refusal.TYPE
    except UnknownVersion:
        return Refusal.VERSION
    except TornRecord:
        return Refusal.TORN
    return told if isinstance(told, Opaque) else Meaning(*as_json(told))


def reading(kafka: KafkaSerde, codec: Codec, seed: str, count: int) -> Iterator[Difference]:
    """Bytes of records, whole and damaged. Those of types that the project does not read have to be known to Kafka."""
    rng = Random(f"{seed} read")
    rows = [*draw.pointed(), *(draw.damaged(rng, codec) for _ in range(count))]
    for given, answer in zip(rows, kafka.ask([client.read(*row) for row in rows]), strict=True):
        ours, kafkas = of_codec(codec, *given), of_kafka(answer)
        if isinstance(ours, Opaque):
            if kafkas is Refusal.TYPE or (ours.key, ours.value) != given:
                yield Difference(given, ours, kafkas)
        elif ours != kafkas:
            yield Difference(given, ours, kafkas)


def writing(kafka: KafkaSerde, codec: Codec, seed: str, count: int) -> Iterator[Difference]:
    """Records, in any version of their values; commits also in the version that Kafka chooses (F-REC-20)."""
    rng = Random(f"{seed} write")
    records = [draw.record(rng) for _ in range(count)]
    rows = [(record, draw.version(rng, record)) for record in records]
    for row, answer in zip(rows, kafka.ask([client.write(*row) for row in rows]), strict=True):
        yield from _written(row, codec, *row, answer)
    commits = [
        (record, record.key, record.value)
        for record in records
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue)
    ]
    answers = kafka.ask([client.commit(key, value) for _, key, value in commits])
    for (record, _, _), answer in zip(commits, answers, strict=True):
        yield from _written(record, codec, record, None, answer)


def _written(given: object, codec: Codec, record: Record, version: int | None, answer: Answer) -> Iterator[Difference]:
    try:
        ours = codec.encode(record, version)
    except CodecError as refused:
        yield Difference(given, refused, answer)
        return
    if ours != client.written(answer):
        yield Difference(given, ours, answer)


def names(kafka: KafkaSerde, codec: Codec) -> Iterator[Difference]:
    """Which types there are, and what they are called (F-REC-00…F-REC-16)."""
    numbers = range(-2, 40)
    for number, answer in zip(numbers, kafka.ask([client.name(each) for each in numbers]), strict=True):
        ours, kafkas = codec.name_of(number), answer.get("name", "").removesuffix("Key") or None
        if number == 0 and kafkas == "OffsetCommit":  # up to 4.0
            kafkas = "LegacyOffsetCommit"
        if ours != kafkas:
            yield Difference(number, ours, kafkas)


def markers(kafka: KafkaSerde, codec: Codec, seed: str, count: int) -> Iterator[Difference]:
    """What ends transactions, written and read (F-REC-26)."""
    rng = Random(f"{seed} markers")
    for committed in (True, False):
        for epoch in (0, 7, 2**31 - 1, -1):
            (answer,) = kafka.ask([client.write_marker(committed, epoch)])
            record = Record(ControlKey(committed), ControlValue(epoch))
            yield from _written(record, codec, record, None, answer)
    rows = [draw.marker(rng) for _ in range(count)]
    for given, answer in zip(rows, kafka.ask([client.read_marker(*row) for row in rows]), strict=True):
        ours, kafkas = marker_of_codec(codec, *given), marker_of_kafka(answer)
        if ours != kafkas:
            yield Difference(given, ours, kafkas)


def marker_of_kafka(answer: Answer) -> Record | Refusal | None:
    """What a load and the marker's class made of a control record."""
    if "refused" in answer:
        return Refusal.TORN
    if answer["kind"] not in ("COMMIT", "ABORT"):
        return None
    epoch = answer.get("epoch")
    return Record(ControlKey(answer["kind"] == "COMMIT"), None if epoch is None else ControlValue(epoch))


def marker_of_codec(codec: Codec, key: bytes, value: bytes | None) -> Record | Refusal | None:
    """What the codec makes of it."""
    try:
        return codec.decode_marker(key, value)
    except TornRecord:
        return Refusal.TORN
