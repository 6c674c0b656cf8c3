"""An impossible answer, and the field that is wrong."""

from __future__ import annotations

from typing import Any, Final

from ..difference import differing, in_words
from ..history import Op

#: Stands for the value that the answer itself has in the field.
_OF_ANSWER: Final = object()


class Wrong(Exception):
    """A ``field`` of an answer has an impossible value.

    ``allowed`` is what was possible instead, in words, by these ``rules``. ``seen`` is the value; by default that of
    the answer's field.
    """

    def __init__(self, op: Op, allowed: str, *rules: str, field: str = "error_code", seen: Any = _OF_ANSWER) -> None:
        super().__init__(allowed)
        self.op = op
        self.allowed = allowed
        self.rules = rules
        self.field = field
        self.seen = _field(op, field) if seen is _OF_ANSWER else seen


def differs(op: Op, expected: Any, *rules: str, seen: Any = None) -> Wrong:
    """The first field in which the answer (or ``seen``, a form of it) differs from the expected one."""
    field, value, wanted = next(differing(op.answer if seen is None else seen, expected))
    return Wrong(op, in_words(field, wanted, {}), *rules, field=field, seen=value)


def _field(op: Op, field: str) -> Any:
    """The value of the field; in an answer with rows, that of the first row that has the field."""
    answer: Any = op.answer
    rows = [row for name in ("results", "groups", "members") for row in getattr(answer, name, ())]
    return next((getattr(each, field) for each in (answer, *rows) if hasattr(each, field)), None)
