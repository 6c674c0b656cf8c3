"""An answer that no coordinator can have given."""

from __future__ import annotations

from typing import Any, Final

from ..difference import differing, in_words
from ..history import Op

#: Stands for the value that the answer itself has in the field.
_OF_ANSWER: Final = object()


class Wrong(Exception):
    """A ``field`` of an answer has a value that it cannot have.

    ``allowed`` is what could have been seen there instead, in words, and ``rules`` say so. ``seen`` is the value; that
    of the answer's own field if it is not given.
    """

    def __init__(self, op: Op, allowed: str, *rules: str, field: str = "error_code", seen: Any = _OF_ANSWER) -> None:
        super().__init__(allowed)
        self.op = op
        self.allowed = allowed
        self.rules = rules
        self.field = field
        self.seen = _field(op, field) if seen is _OF_ANSWER else seen


def differs(op: Op, expected: Any, *rules: str, seen: Any = None) -> Wrong:
    """The first field in which the answer (or ``seen``, a form of it) differs from the one that was expected."""
    field, value, wanted = next(differing(op.answer if seen is None else seen, expected))
    return Wrong(op, in_words(field, wanted, {}), *rules, field=field, seen=value)


def _field(op: Op, field: str) -> Any:
    """Of an answer with rows, that of its first row that has the field."""
    answer: Any = op.answer
    rows = [row for name in ("results", "groups", "members") for row in getattr(answer, name, ())]
    return next((getattr(each, field) for each in (answer, *rows) if hasattr(each, field)), None)
