"""Numbers with nouns: ``1 trace``, ``1,500 traces``."""

from __future__ import annotations

import re

#: A plural, of three letters at least; ``class`` is not one.
_PLURAL = re.compile(r"\b(\w{2,}[^\Ws])s\b")


def counted(number: float, things: str) -> str:
    """Return the number with its noun. ``things``: the plural, perhaps of several words (``false alarms``, ``events per
    second``); words that end in s lose it if the number is one."""
    if number == 1:
        things = _PLURAL.sub(r"\1", things)
    return f"{number:,} {things}"
