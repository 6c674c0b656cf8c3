"""The codec compared with Kafka's serde: the same bytes for a record, the same record or the same error for bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from random import Random
from typing import Final, NamedTuple

from fencepost.codec import (
    Codec,
    CodecError,
    Opaque,
    RecordBytes,
    TornRecord,
    UnknownType,
    UnknownVersion,
    Unwritable,
)
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionKey as RegexKey
from fencepost.protocol.consumer_records import ConsumerGroupRegularExpressionValue as RegexValue
from fencepost.protocol.offset_records import ControlKey, ControlValue, OffsetCommitKey, OffsetCommitValue
from fencepost.protocol.records import Record
from fencepost.sharding import partition_for

from . import client, draw
from .client import Answer, KafkaSerde
from .json_form import JsonObject, as_json, filled

#: Rules about the encoding of a type's records, first the rule about its values.
TYPE_RULES: Final[Mapping[int, tuple[str, ...]]] = {
    1: ("F-REC-11", "F-REC-00", "F-REC-10"),
    2: ("F-REC-12", "F-REC-02", "F-REC-10"),
    3: ("F-REC-03", "V-71", "F-REC-10"),
    4: ("F-REC-04", "F-REC-10"),
    5: ("F-REC-13", "F-REC-05", "F-REC-10"),
    6: ("F-REC-06", "V-73", "F-REC-10"),
    7: ("F-REC-07", "F-REC-10"),
    8: ("F-REC-14", "F-REC-08", "V-74", "F-REC-10"),
    16: ("F-REC-16", "F-REC-10"),
}


_POINTED: Final = {"F-REC-23": ("F-REC-23", "V-131")}


class Refusal(StrEnum):
    """Why bytes are not a record."""

    TYPE = "unknown type"
    VERSION = "unknown version"
    TORN = "torn"


class Meaning(NamedTuple):
    """The meaning of bytes. ``number``: the type; 0 means the same as 1."""

    number: int
    key: JsonObject
    value: JsonObject | None


class Difference(NamedTuple):
    """``given``: the input of the codec and of Kafka; then the result of each."""

    given: object
    ours: object
    kafkas: object


def of_kafka(answer: Answer) -> Meaning | Refusal:
    """Return the result of Kafka's serde."""
    if "refused" in answer:
        kind = answer["refused"]
        if kind == "UnknownRecordTypeException":
            return Refusal.TYPE
        return Refusal.VERSION if kind == "UnknownRecordVersionException" else Refusal.TORN
    number = answer["type"]
    return Meaning(max(number, 1), answer["key"], filled(number, answer["value"]))


def of_codec(codec: Codec, key: bytes | None, value: bytes | None) -> Meaning | Refusal | Opaque:
    """Return the codec's result."""
    try:
        decoded = codec.decode(key, value)
    except UnknownType:
        return Refusal.TYPE
    except UnknownVersion:
        return Refusal.VERSION
    except TornRecord:
        return Refusal.TORN
    return decoded if isinstance(decoded, Opaque) else Meaning(*as_json(decoded))


def reading(
    kafka: KafkaSerde, codec: Codec, seed: str, count: int, agreed: Counter[str] | None = None
) -> Iterator[Difference]:
    """Compare reading: bytes of records, whole and damaged. Types that the project does not read must be known to
    Kafka."""
    rng = Random(f"{seed} read")
    rows: list[tuple[str, bytes | None, bytes | None]] = list(draw.pointed())
    rows += [("", *draw.damaged(rng, codec)) for _ in range(count)]
    answers = kafka.ask([client.read(key, value) for _, key, value in rows])
    for (rule, *given), answer in zip(rows, answers, strict=True):
        ours, kafkas = of_codec(codec, *given), of_kafka(answer)
        if isinstance(ours, Opaque):
            same = kafkas is not Refusal.TYPE and [ours.key, ours.value] == given
        else:
            same = ours == kafkas
        if not same:
            yield Difference(given, ours, kafkas)
        elif agreed is not None:
            agreed.update(_POINTED.get(rule, (rule,)) if rule else rules_of(ours, given[0]))


def writing(
    kafka: KafkaSerde, codec: Codec, seed: str, count: int, agreed: Counter[str] | None = None
) -> Iterator[Difference]:
    """Compare writing: records, in any version of their values; commits also in the version that Kafka chooses
    (F-REC-20)."""
    rng = Random(f"{seed} write")
    records = [draw.record(rng) for _ in range(count)]
    rows = [(record, draw.version(rng, record)) for record in records]
    for row, answer in zip(rows, kafka.ask([client.write(*row) for row in rows]), strict=True):
        yield from _written(codec, *row, answer, rules=TYPE_RULES[as_json(row[0])[0]], agreed=agreed)
    commits = [
        (record, record.key, record.value)
        for record in records
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue)
    ]
    answers = kafka.ask([client.commit(key, value) for _, key, value in commits])
    for (record, _, _), answer in zip(commits, answers, strict=True):
        yield from _written(codec, record, None, answer, rules=("F-REC-20", "V-70"), agreed=agreed)
    for text in ("x" * 0x7FFF, "x" * 0x8000, "a\ud800b"):
        record = Record(RegexKey("g", "r"), RegexValue((text,), version=1, timestamp=2))
        (answer,) = kafka.ask([client.write(record, 0)])
        yield from _written(codec, record, 0, answer, rules=("F-REC-25",), agreed=agreed)


def _written(
    codec: Codec,
    record: Record,
    version: int | None,
    answer: Answer,
    *,
    rules: Iterable[str],
    agreed: Counter[str] | None,
) -> Iterator[Difference]:
    try:
        ours: RecordBytes | CodecError | None = codec.encode(record, version)
    except Unwritable as refused:
        ours = None if "refused" in answer else refused
    if ours != client.written(answer):
        yield Difference((record, version), ours, answer)
    elif agreed is not None:
        agreed.update(rules)


def names(kafka: KafkaSerde, codec: Codec, agreed: Counter[str] | None = None) -> Iterator[Difference]:
    """Compare the existing types and their names (F-REC-00…F-REC-16)."""
    numbers = range(-2, 40)
    for number, answer in zip(numbers, kafka.ask([client.name(each) for each in numbers]), strict=True):
        ours, kafkas = codec.name_of(number), answer.get("name", "").removesuffix("Key") or None
        if number == 0 and kafkas == "OffsetCommit":  # up to 4.0
            kafkas = "LegacyOffsetCommit"
        if ours != kafkas:
            yield Difference(number, ours, kafkas)
        elif agreed is not None:
            agreed["V-75"] += 1


#: Parts of group names: halves of surrogate pairs, other characters, and the first character behind the surrogates.
_UNITS = ("a", "z", "-", "\0", "ä", "\uffff", "\ud835", "\udcb3", "\U0001d4b3")
_NAMES = ("", "group", "test-group", "polygenelubricants", "\U0001d4b3")


def places(
    kafka: KafkaSerde, seed: str, count: int, agreed: Counter[str] | None = None
) -> Iterator[tuple[str, int, int]]:
    """Yield groups that Kafka puts in another partition: name, ours and Kafka's (F-LOC-01, F-LOC-02, F-LOC-03,
    F-LOC-05)."""
    rng = Random(f"{seed} places")
    names = [*_NAMES, *("".join(rng.choices(_UNITS, k=rng.randint(0, 40))) for _ in range(count))]
    asked = [(name, rng.choice((1, 2, 3, 50, 2**31 - 1))) for name in names] + [(name, 50) for name in _NAMES]
    for (name, number), answer in zip(asked, kafka.ask([client.partition(*each) for each in asked]), strict=True):
        ours, kafkas = partition_for(name, number), answer["partition"]
        if ours != kafkas:
            yield name, ours, kafkas
        elif agreed is not None:
            agreed.update(("F-LOC-01", "F-LOC-02", "F-LOC-03", "F-LOC-05"))


def markers(
    kafka: KafkaSerde, codec: Codec, seed: str, count: int, agreed: Counter[str] | None = None
) -> Iterator[Difference]:
    """Compare writing and reading of transaction ends (F-REC-26)."""
    rng = Random(f"{seed} markers")
    for committed in (True, False):
        for epoch in (0, 7, 2**31 - 1, -1):
            (answer,) = kafka.ask([client.write_marker(committed, epoch)])
            record = Record(ControlKey(committed), ControlValue(epoch))
            yield from _written(codec, record, None, answer, rules=("F-REC-26",), agreed=agreed)
    rows = [draw.marker(rng) for _ in range(count)]
    for given, answer in zip(rows, kafka.ask([client.read_marker(*row) for row in rows]), strict=True):
        ours, kafkas = marker_of_codec(codec, *given), marker_of_kafka(answer)
        if ours != kafkas:
            yield Difference(given, ours, kafkas)
        elif agreed is not None:
            agreed["F-REC-26"] += 1


def rules_of(read: Meaning | Refusal | Opaque, key: bytes | None) -> tuple[str, ...]:
    """Return the rules that decide the meaning of bytes."""
    if isinstance(read, Meaning):
        legacy = ("F-REC-00", "F-REPLAY-17", "V-78") if (key or b"")[:2] == b"\0\0" else ()
        return *TYPE_RULES[read.number], *legacy
    if isinstance(read, Opaque):
        return ("F-REC-09",)
    return {Refusal.TYPE: ("F-REC-09",), Refusal.VERSION: ("F-REC-10",), Refusal.TORN: ("F-REC-22",)}[read]


def marker_of_kafka(answer: Answer) -> Record | Refusal | None:
    """Return how a load and the marker's class read a control record."""
    if "refused" in answer:
        return Refusal.TORN
    if answer["kind"] not in ("COMMIT", "ABORT"):
        return None
    epoch = answer.get("epoch")
    return Record(ControlKey(answer["kind"] == "COMMIT"), None if epoch is None else ControlValue(epoch))


def marker_of_codec(codec: Codec, key: bytes, value: bytes | None) -> Record | Refusal | None:
    """Return how the codec reads it."""
    try:
        return codec.decode_marker(key, value)
    except TornRecord:
        return Refusal.TORN
