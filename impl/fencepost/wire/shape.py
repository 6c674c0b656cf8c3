"""The fields of kio's message classes, in the form that readers and writers need."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message. ``kafka_type`` is its type if it is a primitive or an array of primitives; otherwise
    ``entity`` is its class. ``tag``: the number of a tagged field. ``default`` is ``MISSING`` if there is none."""

    name: str
    kafka_type: str
    entity: type | None
    array: bool
    optional: bool
    tag: int | None
    default: Any


@cache
def shape(schema: type) -> tuple[Field, ...]:
    """Return the fields of a class of kio, in the order of the wire."""
    found = []
    for field in fields(schema):
        hint, optional = _without_none(field.type)
        array = get_origin(hint) is tuple
        item = get_args(hint)[0] if array else hint
        kafka_type = field.metadata.get("kafka_type", "")
        entity = None if kafka_type else item
        default = MISSING if field.default is MISSING else field.default
        found.append(Field(field.name, kafka_type, entity, array, optional, field.metadata.get("tag"), default))
    return tuple(found)


def _without_none(hint: Any) -> tuple[Any, bool]:
    parts = get_args(hint)
    if NoneType not in parts:
        return hint, False
    (rest,) = [part for part in parts if part is not NoneType]
    return rest, True
