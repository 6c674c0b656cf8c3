"""Falsehoods about the positions from which members read, with the reason for each."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any, Final

from ...judge.checker.positions.judge import Judged, judged
from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine
from .exchanges import Exchange
from .kinds import Made, falsehood

_FAR: Final = 1_000_000
_FETCH: Final = 1


def _made(trace: WireTrace, row: Judged, offset: int) -> tuple[WireTrace, int, int]:
    lines = list(trace.lines)
    line = lines[row.line - 1]
    assert isinstance(line, SentLine)
    body: Any = deepcopy(line.body)
    rows = [each for topic in body["topics"] for each in topic["partitions"]]
    rows[row.at]["fetch_offset"] = offset
    lines[row.line - 1] = line.model_copy(update={"body": body})
    return replace(trace, lines=tuple(lines), numbers=()), row.line - 1, row.line - 1


@falsehood
def read_from_nowhere(trace: WireTrace, _: list[Exchange]) -> Made:
    """No answer gave the member so high an offset (K-POS-01, K-FETCH-02)."""
    for row in judged(trace):
        yield _made(trace, row, _FAR)


@falsehood
def read_again_behind(trace: WireTrace, _: list[Exchange]) -> Made:
    """The member has read past this offset, and nothing moved it back (K-POS-05, K-FETCH-02)."""
    rows: dict[object, list[Judged]] = {}
    for row in judged(trace):
        rows.setdefault((row.client, row.place), []).append(row)
    for mine in rows.values():
        for first, then, last in zip(mine, mine[1:], mine[2:], strict=False):
            if first.offset < then.offset and _only_fetches(trace, then.line, last.line):
                yield _made(trace, last, first.offset)


def _only_fetches(trace: WireTrace, begin: int, end: int) -> bool:
    """Whether no answer between these lines can change a position or an assignment."""
    between = trace.lines[begin : end - 1]
    return all(line.api_key == _FETCH for line in between if isinstance(line, ReceivedLine))
