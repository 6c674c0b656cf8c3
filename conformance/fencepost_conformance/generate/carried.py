"""Requests as a version of their API can carry them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from fencepost.protocol.carried import ALONE, CARRIED, Row

Body = TypeVar("Body")


def as_carried(body: Body, version: int) -> Body:
    """Return the request with defaults in each field that the version does not carry, in rows too. Where the version
    has a single row, only the first of several is kept."""
    made: Any = _as_carried(body, type(body), version)
    alone = ALONE.get(type(body))
    if alone is not None and version <= alone.last:
        made = replace(made, **{alone.field: getattr(made, alone.field)[:1]})
    kept: Body = made
    return kept


def _as_carried(value: Any, api: type, version: int) -> Any:
    kind = type(value)
    carried = CARRIED.get(kind if kind is api else Row(api, kind), {})
    changes = {name: each.absent for name, each in carried.items() if not each.first <= version <= each.last}
    for field in fields(kind):
        held = getattr(value, field.name)
        if isinstance(held, tuple) and held and is_dataclass(held[0]):
            changes[field.name] = tuple([_as_carried(row, api, version) for row in held])
    return replace(value, **changes) if changes else value
