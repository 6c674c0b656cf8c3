"""Check that messages, records and events match their annotations.

Dataclasses do not check their arguments, so a string in place of a number would fail much later, somewhere inside.
Code that takes messages from outside therefore checks them once, at the boundary. This is on the path of every request.
So one expression is compiled for each class from its annotations, as ``dataclasses`` does for its methods; it only
returns true or false. After a false, the fields are checked one by one, to report which is wrong and what it must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

#: Size in bits of integer fields with these names, where Kafka stores or sends them; all others have 32.
BITS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("at_ms", "id", "operation", "offset", "version", "timestamp", "metadata_hash"), 64),
    **dict.fromkeys(("assignment_timestamp", "current_state_timestamp", "commit_timestamp", "expire_timestamp"), 64),
    **dict.fromkeys(("committed_offset", "producer_id", "retention_time_ms", "record_offset", "base", "below"), 64),
    "producer_epoch": 16,
    "state": 8,
}
_USUAL: Final = 32
_UUID_BYTES: Final = 16


def bounds(name: str) -> tuple[int, int]:
    """Return the least and the greatest integer for a field with this name."""
    most = (1 << (BITS.get(name, _USUAL) - 1)) - 1
    return -most - 1, most


def fault(value: object) -> str | None:
    """Return what is wrong with a message, record or event, with the field's name; None if it is valid."""
    kind: Any = type(value)
    if _test_of(kind)(value):
        return None
    found = _explain(kind, "", value)
    return None if found is None else kind.__name__ + found


@cache
def _test_of(kind: Any) -> Callable[[Any], bool]:
    """Return the compiled check for objects of exactly this class."""
    scope: dict[str, Any] = {"_right": _right}
    hints = get_type_hints(kind)
    tests = [_test(hints[field.name], field.name, f"v.{field.name}", scope) for field in fields(kind)]
    scope["_kind"] = kind
    made: Callable[[Any], bool] = eval(f"lambda v: type(v) is _kind and {' and '.join(tests)}", scope)
    return made


def _wrong(value: Any) -> bool:
    return False


def _right(value: Any) -> bool:
    kind: Any = type(value)
    return _test_of(kind)(value)


def _test(hint: Any, name: str, value: str, scope: dict[str, Any]) -> str:
    """Return the text of an expression that is true if ``value`` matches the annotation."""
    if len(_parts(hint)) > 1:
        parts = [part for part in _parts(hint) if part is not NoneType]
        if len(parts) > 1 and any(get_origin(part) is not None for part in parts):
            test = f"({' or '.join(_test(part, name, value, scope) for part in parts)})"
        elif len(parts) > 1 and all(is_dataclass(part) for part in parts):
            tests = {part: _test_of(part) for part in parts}
            test = f"{_known(tests.get, scope)}(type({value}), {_known(_wrong, scope)})({value})"
        elif len(parts) > 1:
            test = f"type({value}) in {_known(frozenset(parts), scope)} and _right({value})"
        else:
            test = _test(parts[0], name, value, scope)
        return test if len(parts) == len(_parts(hint)) else f"({value} is None or {test})"
    if get_origin(hint) in (tuple, frozenset):
        each = _test(get_args(hint)[0], name, "e", scope)
        return f"type({value}) is {get_origin(hint).__name__} and (not {value} or all([{each} for e in {value}]))"
    if is_dataclass(hint):
        inner: Any = hint
        return f"{_known(_test_of(inner), scope)}({value})"
    test = f"type({value}) is {_known(hint, scope)}"
    if hint is int:
        least, most = bounds(name)
        test += f" and {least} <= {value} <= {most}"
    if name == "topic_id":
        test += f" and len({value}) == {_UUID_BYTES}"
    return test


def _known(thing: Any, scope: dict[str, Any]) -> str:
    name = f"_{len(scope)}"
    scope[name] = thing
    return name


def _explain(hint: Any, name: str, value: Any) -> str | None:
    """Return what is wrong with a value; None if it is valid, as a value of a subclass may be."""
    kinds = _kinds(hint)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join("None" if kind is NoneType else kind.__name__ for kind in kinds)
        shown = repr(value)
        return f" must be {names}, not {type(value).__name__} ({shown if len(shown) <= 60 else shown[:60] + '…'})"
    if isinstance(value, tuple | frozenset):
        inner = next(get_args(part)[0] for part in _parts(hint) if get_origin(part) is not None)
        found = ((place, _explain(inner, name, each)) for place, each in enumerate(value))
        return next((f"[{place}]{what}" for place, what in found if what is not None), None)
    if isinstance(value, int) and int in kinds:
        least, most = bounds(name)
        if not least <= value <= most:
            return f" must be an integer of {BITS.get(name, _USUAL)} bits, from {least} to {most} (got {value})"
    if isinstance(value, bytes) and name == "topic_id" and len(value) != _UUID_BYTES:
        return f" must be {_UUID_BYTES} bytes, not {len(value)}"
    if is_dataclass(value):
        hints = get_type_hints(type(value))
        values = ((field.name, getattr(value, field.name)) for field in fields(value))
        rows = ((field, _explain(hints[field], field, each)) for field, each in values)
        return next((f".{field}{what}" for field, what in rows if what is not None), None)
    return None


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _kinds(hint: Any) -> tuple[type, ...]:
    """Return the classes that a value with this annotation may have."""
    return tuple(get_origin(part) or part for part in _parts(hint))
