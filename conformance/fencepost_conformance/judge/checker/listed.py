"""Whether the rows of ListGroups fit the filters of its request, the version and each other (C-ADM-04, C-ADM-05).

A row has a state from version 4 on and a type from version 5 on. A filter keeps only rows that it names, in upper or
lower case; spaces around the name of a state do not count. The type, state and protocol type of a row must fit each
other. ``listings`` compares a row with the history of its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fencepost_model.machines import COMPLETING, DEAD, EMPTY, PREPARING, STABLE

from ...traces.files import WireTrace
from ...traces.lines import ReceivedLine, SentLine
from .difference import Difference
from .listings import LIST_GROUPS, STATE_VERSION, TYPE_VERSION
from .verdict import Refusal

_CLASSIC, _CONSUMER = "classic", "consumer"
#: the states of each type of group; other types, such as share groups, are not judged
_STATES: Final = {
    _CLASSIC: (EMPTY, PREPARING, COMPLETING, STABLE, DEAD),
    _CONSUMER: (EMPTY, "Assigning", "Reconciling", STABLE, DEAD),
}


def wrong_listings(trace: WireTrace) -> Iterator[Refusal]:
    """The first wrong row of each answer."""
    asked: dict[tuple[int, int], SentLine] = {}
    for number, line in enumerate(trace.lines, 1):
        if not isinstance(line, SentLine | ReceivedLine) or line.api_key != LIST_GROUPS or "undecoded" in line.body:
            continue
        if isinstance(line, SentLine):
            asked[line.connection, line.correlation_id] = line
            continue
        ask = asked.pop((line.connection, line.correlation_id), None)
        if ask is None or line.body.get("error_code"):
            continue
        rows: Any = line.body.get("groups") or ()
        for row in rows:
            found = _wrong(line.api_version, ask.body, row)
            if found is not None:
                yield _refusal(number, line, row, *found)
                break


def _wrong(version: int, ask: Mapping[str, Any], row: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """The field of a row that is wrong, what was expected, and the rule."""
    state, kind = str(row.get("group_state") or ""), str(row.get("group_type") or "").lower()
    if version >= TYPE_VERSION:
        types = [str(name) for name in ask.get("types_filter") or ()]
        if types and kind not in map(str.lower, types):
            return "group_type", _either(types), "C-ADM-05"
        if kind == _CONSUMER and row.get("protocol_type") != _CONSUMER:
            return "protocol_type", repr(_CONSUMER), "C-ADM-05"
    if version >= STATE_VERSION:
        states = [str(name) for name in ask.get("states_filter") or ()]
        if states and state.lower() not in {name.strip().lower() for name in states}:
            return "group_state", _either(states), "C-ADM-05"
        possible = _STATES.get(kind, () if kind else tuple({name for each in _STATES.values() for name in each}))
        if possible and state not in possible:
            return "group_state", _either(possible), "C-ADM-04"
    return None


def _either(names: Iterable[str]) -> str:
    return " or ".join(sorted(map(repr, names)))


def _refusal(  # noqa: PLR0917
    number: int, line: ReceivedLine, row: Mapping[str, Any], field: str, expected: str, rule: str
) -> Refusal:
    group_id, value = str(row["group_id"]), repr(row.get(field))
    of = f"connection {line.connection} about group {group_id!r}"
    difference = Difference("ListGroups", line.api_version, of, field, value, expected)
    seen = f"ListGroups v{line.api_version} on connection {line.connection} listed {group_id!r} with {field} {value}"
    return Refusal(group_id, number, line.at_ms, seen, (expected,), (rule,), difference=difference)
