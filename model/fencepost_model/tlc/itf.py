"""TLA+ values in ITF, the JSON format of traces of the TLA+ world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .values import Function, TlaValue, is_field, show


def itf_state(state: Mapping[str, TlaValue]) -> dict[str, Any]:
    """Return a state in ITF."""
    return {name: itf_value(value) for name, value in state.items()}


def itf_value(value: Any) -> Any:
    """Return a value in ITF. Records are objects, other functions are lists of pairs, sequences are lists."""
    if isinstance(value, Function):
        if all(is_field(key) for key, _ in value):
            return {key: itf_value(each) for key, each in sorted(value)}
        return {"#map": [[itf_value(key), itf_value(each)] for key, each in sorted(value, key=repr)]}
    if isinstance(value, frozenset):
        return {"#set": [itf_value(each) for each in sorted(value, key=show)]}
    if isinstance(value, tuple):
        return [itf_value(each) for each in value]
    return value
