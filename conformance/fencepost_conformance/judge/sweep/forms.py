"""Forms of a request: each field that may be absent, null or empty, changed one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Final

from fencepost.wire.shape import Field, shape

_SAMPLE_ID: Final = bytes(range(16))
#: Values for a field that the plain form omits, by Kafka's type.
_SAMPLES: Final[dict[str, Any]] = {"string": "other", "uuid": _SAMPLE_ID, "bytes": b"\x00\x01"}
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a request. ``label``: the difference from the plain form, such as ``topics.partitions empty``."""

    label: str
    values: Mapping[str, Any]


def forms(schema: Any, plain: Mapping[str, Any]) -> Iterator[Form]:
    """The plain form of a request, then its others.

    Args:
        schema: kio's class of the request.
        plain: values of its fields, as ``fill`` takes them; fields that the class does not have are ignored.
    """
    yield Form("plain", plain)
    yield from _others(schema, plain)


def _others(schema: Any, values: Mapping[str, Any]) -> Iterator[Form]:
    for field in shape(schema):
        given = values.get(field.name, MISSING)
        for word, value in _alternatives(field, given):
            changed = {name: each for name, each in values.items() if name != field.name}
            if value is not _ABSENT:
                changed[field.name] = value
            yield Form(f"{field.name} {word}", changed)
        if field.entity is None or given is MISSING or not given:
            continue
        first, rest = (given[0], list(given[1:])) if field.array else (given, [])
        for inner in _others(field.entity, first):
            value = [inner.values, *rest] if field.array else inner.values
            yield Form(f"{field.name}.{inner.label}", {**values, field.name: value})


def _alternatives(field: Field, given: Any) -> Iterator[tuple[str, Any]]:
    there = given is not MISSING and given is not None
    if field.array and given != []:
        yield "empty", []
    elif field.kafka_type == "string" and not field.array and given != "":
        yield "empty", ""
    if field.optional and there:
        yield "null", None
    if field.kafka_type == "bool":
        yield ("false", False) if given is True else ("true", True)
    elif not there and (field.optional or field.tag is not None) and field.kafka_type in _SAMPLES:
        sample = _SAMPLES[field.kafka_type]
        yield "present", [sample] if field.array else sample
    if there and (field.tag is not None or field.default is not MISSING):
        yield "absent", _ABSENT
