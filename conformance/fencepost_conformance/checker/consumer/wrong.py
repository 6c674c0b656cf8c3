"""An answer that no coordinator can have given."""

from __future__ import annotations

from ..history import Op


class Wrong(Exception):
    """``allowed`` is what could have been seen instead, ``rules`` say so."""

    def __init__(self, op: Op, allowed: str, *rules: str) -> None:
        super().__init__(allowed)
        self.op = op
        self.allowed = allowed
        self.rules = rules
