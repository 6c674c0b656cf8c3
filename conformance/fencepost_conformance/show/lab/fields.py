"""The fields of a message, as JSON data that people can read: topics by name, subscriptions and assignments decoded."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from fencepost.member.consumer_protocol import SchemaError, decode_subscription

from ..report.names import Names, assignment_words, compact


def fields_of(value: Any, names: Names, name: str = "") -> Any:
    """Return the value as JSON data. ``name``: that of the field that holds it."""
    if is_dataclass(value):
        return {each.name: fields_of(getattr(value, each.name), names, each.name) for each in fields(value)}
    if isinstance(value, tuple | list):
        return [fields_of(each, names, name) for each in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return _bytes(value, names, name)
    return names.short(value) if isinstance(value, str) else value


def _bytes(value: bytes, names: Names, name: str) -> str:
    if name == "topic_id":
        return names.topic(value) if any(value) else "(none)"
    if name == "metadata":
        try:
            read = decode_subscription(value)
        except SchemaError:
            return value.hex()
        owned = compact((each.topic, each.partition) for each in read.owned_partitions)
        generation = "" if read.generation_id < 0 else f", generation {read.generation_id}"
        return f"topics {', '.join(read.topics)}; owned {owned}{generation}"
    return assignment_words(value) if name == "assignment" else value.hex()
