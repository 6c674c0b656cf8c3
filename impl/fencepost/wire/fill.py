"""Conversion of plain values, or of the coordinator's messages, to kio's classes. Values that a version does not have
are left out, and missing values get Kafka's default. ``convert`` is the other direction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from kio.schema.errors import ErrorCode

from fencepost.wire.shape import Field, shape

_ZERO: Final = bytes(16)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES: Final = ("timedelta_i32", "timedelta_i64")
_EMPTY: Final = {"string": "", "bytes": b"", "records": None, "uuid": None, "bool": False}
_CODES: Final[dict[int, ErrorCode]] = {each.value: each for each in ErrorCode}

_Make: TypeAlias = Callable[[Any], Any]


def fill(schema: Any, values: Any) -> Any:
    """Return a message of kio's class ``schema``. ``values`` is a mapping, or an object with attributes, with the
    fields by kio's names. Durations are in milliseconds (under that name, or with ``_ms`` appended), topic ids are 16
    bytes, error codes are numbers, and rows are further mappings or objects. A message that has only rows may be given
    as a sequence of them."""
    source: Any = dict if isinstance(values, Mapping) else type(values)
    return _filler(schema, source)(values)


@cache
def _filler(schema: Any, source: type) -> _Make:
    rows = [(field.name, given(field, source), _maker(field), absent(field)) for field in shape(schema)]

    if source is dict:

        def from_mapping(values: Any) -> Any:
            made = {}
            for name, key, make, usual in rows:
                value = values.get(key, MISSING)
                made[name] = usual if value is MISSING else make(value)
            return schema(**made)

        return from_mapping

    def from_object(values: Any) -> Any:
        return schema(**{name: usual if key is None else make(getattr(values, key)) for name, key, make, usual in rows})

    return from_object


def given(field: Field, source: type) -> str | None:
    """Return the name of a field in the source; None if the source does not have it."""
    name = field.name
    if source is dict:
        return name
    there = getattr(source, "__dataclass_fields__", {})
    return next((each for each in (name, f"{name}_ms") if each in there), None)


def absent(field: Field) -> Any:
    """Return the value of a field that is not given."""
    if field.default is not MISSING:
        return field.default
    if field.array:
        return None if field.optional else ()
    if field.optional or field.entity is not None:
        return None
    if field.kafka_type == "error_code":
        return ErrorCode.none
    return timedelta(0) if field.kafka_type in _TIMES else _EMPTY.get(field.kafka_type, 0)


def _maker(field: Field) -> _Make:
    one = _one(field)
    if not field.array:
        return one
    plain = one is _same

    def many(values: Any) -> Any:
        if values is None:
            return None if field.optional else ()
        return tuple(values) if plain else tuple([one(value) for value in values])

    return many


def _one(field: Field) -> _Make:
    kind = field.kafka_type
    if field.entity is not None:
        return _entity(field.entity)
    if kind == "error_code":
        return lambda value: _CODES.get(int(value), ErrorCode.unknown_server_error)
    if kind in _TIMES:
        return lambda value: timedelta(milliseconds=value)
    if kind == "uuid":
        return lambda value: None if value is None or value == _ZERO else UUID(bytes=value)
    if kind == "datetime_i64":
        return lambda value: None if value is None or value < 0 else _EPOCH + timedelta(milliseconds=value)
    if kind == "string" and not field.optional:
        return lambda value: "" if value is None else value
    return _same


def _same(value: Any) -> Any:
    return int(value) if isinstance(value, IntEnum) else value


def _entity(entity: Any) -> _Make:
    def make(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, tuple | list):  # a message that has only rows
            value = {shape(entity)[0].name: value}
        elif not is_dataclass(value) and not isinstance(value, Mapping):
            raise TypeError(f"{entity.__name__} needs a mapping, a dataclass or rows (got {type(value).__name__})")
        return fill(entity, value)

    return make
