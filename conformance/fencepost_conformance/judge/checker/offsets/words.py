"""Describe the field of an OffsetFetch answer that differs."""

from __future__ import annotations

from typing import Final

from ..difference import Difference
from .places import Place
from .reading import Exchange
from .register import NOTHING, Value, Wrong

#: By rule: why another value was expected.
_BECAUSE: Final = {
    "O-COMMIT-11": "an acknowledged commit is kept, and the last one wins",
    "O-COMMIT-14": "no request of the trace committed this",
    "O-TXN-07": "offsets of a transaction show after it has committed",
    "O-FETCH-08": "a fetch for stable offsets waits for a transaction that holds the offset, and only then",
    "O-EXP-01": "the commit has expired",
}


def of_offset(each: Exchange, group_id: str, place: Place, answered: Value | None, wrong: Wrong) -> Difference:
    """The field of one partition's row of OffsetFetch that differs; ``answered`` None: UNSTABLE_OFFSET_COMMIT."""
    why = next((_BECAUSE[rule] for rule in wrong.rules if rule in _BECAUSE), "")
    of = f"group {group_id!r} for {place[0]}-{place[1]}"
    if answered is None or (not wrong.values and wrong.allowed):
        seen = "UNSTABLE_OFFSET_COMMIT" if answered is None else f"NONE with offset {answered}"
        return Difference("OffsetFetch", each.version, of, "error_code", seen, _either(wrong.allowed), why)
    field, seen, expected = "committed_offset", str(answered.offset), [str(value.offset) for value in wrong.values]
    near = [value for value in wrong.values if value.offset == answered.offset]
    if near and all(value.metadata != answered.metadata for value in near):
        field, seen, expected = "metadata", f'"{answered.metadata}"', [f'"{value.metadata}"' for value in near]
    elif near:
        field, seen = "committed_leader_epoch", str(answered.leader_epoch)
        expected = [str(value.leader_epoch) for value in near]
    if not expected:
        expected = [str(NOTHING.offset)] if not answered.shows(NOTHING) else list(wrong.allowed)
    return Difference("OffsetFetch", each.version, of, field, seen, _either(expected), why)


def _either(values: list[str] | tuple[str, ...]) -> str:
    return " or ".join(dict.fromkeys(values)) or "another value"
