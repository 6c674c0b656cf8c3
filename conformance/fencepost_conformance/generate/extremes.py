"""Objects with each integer at the limits of its range, and just beyond; used for sweeps of bounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from fencepost.protocol.shapes import bounds


class Extreme(NamedTuple):
    """``value``: a copy of an object whose integer at ``path`` is ``number``. ``fits``: the field can hold that
    number."""

    path: str
    number: int
    fits: bool
    value: Any


def extremes(value: Any) -> Iterator[Extreme]:
    """Yield the object with each of its integers, in rows too, at: the least, one less, -1, 0, the greatest, one
    more."""
    for field in fields(value):
        held = getattr(value, field.name)
        for extreme in _of(field.name, held):
            yield extreme._replace(value=replace(value, **{field.name: extreme.value}))


def _of(name: str, held: Any) -> Iterator[Extreme]:
    if type(held) is int:
        least, most = bounds(name)
        for number in (least, least - 1, -1, 0, most, most + 1):
            if number != held:
                yield Extreme(name, number, least <= number <= most, number)
    elif type(held) is tuple:
        for place, row in enumerate(held):
            for extreme in _of(name, row):
                path = f"{name}[{place}]{extreme.path.removeprefix(name)}"
                yield extreme._replace(path=path, value=(*held[:place], extreme.value, *held[place + 1 :]))
    elif is_dataclass(held) and not isinstance(held, type):
        for extreme in extremes(held):
            yield extreme._replace(path=f"{name}.{extreme.path}")
