"""How many of what, in words: ``1 trace``, ``1,500 traces``."""

from __future__ import annotations

import re

#: A plural, of three letters at least; ``class`` is none.
_PLURAL = re.compile(r"\b(\w{2,}[^\Ws])s\b")


def counted(number: float, things: str) -> str:
    """The number with what it counts. ``things``: the plural, with more words if need be (``false alarms``,
    ``events per second``); the words that end in s lose it where the number is one."""
    if number == 1:
        things = _PLURAL.sub(r"\1", things)
    return f"{number:,} {things}"
