"""A count of one has no plural."""

from __future__ import annotations

import pytest

from fencepost_conformance.common.counting import counted


@pytest.mark.parametrize(
    ("number", "things", "text"),
    [
        (0, "traces", "0 traces"),
        (1, "traces", "1 trace"),
        (1_500, "traces", "1,500 traces"),
        (1, "false alarms", "1 false alarm"),
        (1, "events per second", "1 event per second"),
        (1, "in scope", "1 in scope"),
        (1, "graphs compared", "1 graph compared"),
        (2, "graphs compared", "2 graphs compared"),
        (1, "class as is", "1 class as is"),
        (1.5, "seconds", "1.5 seconds"),
    ],
)
def test_counted(number: float, things: str, text: str) -> None:
    assert counted(number, things) == text
