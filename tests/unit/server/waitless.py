"""Run coroutines that wait for nothing without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar, cast

_Value = TypeVar("_Value")


def now(work: Coroutine[Any, Any, _Value]) -> _Value:
    """Return the result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as done:
        return cast("_Value", done.value)
    raise AssertionError("it waits")
