"""When a group certainly has offsets or an open transaction, so that the coordinator keeps it while it is empty
(O-EXP-20, D-26)."""

from __future__ import annotations

from typing import Any

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import Settings

from ....traces.files import WireTrace
from ..search import Limits
from . import reading
from .judge import open_transactions
from .register import NEVER

#: Errors after which the broker may have deleted offsets all the same (F-RT-09).
_PERHAPS = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_COORDINATOR})

#: Requests that may delete offsets.
_TAKE_AWAY = frozenset({reading.OFFSET_DELETE, reading.DELETE_GROUPS, reading.DELETE_TOPICS})


def held(trace: WireTrace, settings: Settings, limits: Limits) -> dict[str, tuple[tuple[int, int], ...]]:
    """By group, the first and last line of each time in which it has offsets or an open transaction.

    Such a time lasts from the answer to a plain commit until a request that may delete offsets, or from the answer to a
    commit in a transaction until a request that may end the transaction. Plain commits do not count if an offset may
    have expired within the trace.
    """
    found = open_transactions(trace, settings, limits)
    lasts_ms = trace.lines[-1].at_ms - trace.lines[0].at_ms if trace.lines else 0
    if settings.offsets_retention_ms <= lasts_ms:
        return found
    every = reading.exchanges(trace)
    ends = [(each.begin, each.end, each) for each in every if each.api in _TAKE_AWAY]
    for each in every:
        if each.api != reading.OFFSET_COMMIT or each.answer is None or each.ask.get("retention_time_ms", -1) >= 0:
            continue
        rows = [row for topic in each.answer.get("topics") or () for row in topic.get("partitions") or ()]
        if not any(row["error_code"] == ErrorCode.NONE for row in rows):
            continue
        group_id = each.ask["group_id"]
        after = [
            begin
            for begin, end, other in ends
            if end > each.begin and _about(other, group_id) and not _did_nothing(other, group_id)
        ]
        last = min(after, default=NEVER)
        if last > each.end:
            found[group_id] = (*found.get(group_id, ()), (each.end, last))
    return found


def _about(each: reading.Exchange, group_id: str) -> bool:
    if each.api == reading.DELETE_GROUPS:
        return group_id in each.ask["groups_names"]
    return each.api == reading.DELETE_TOPICS or each.ask["group_id"] == group_id


def _did_nothing(each: reading.Exchange, group_id: str) -> bool:
    """Whether the answer to a deletion says that it deleted nothing of the group."""
    if each.answer is None:
        return False
    if each.api == reading.DELETE_GROUPS:
        rows: Any = [row for row in each.answer.get("results") or () if row["group_id"] == group_id]
    elif each.api == reading.DELETE_TOPICS:
        rows = each.answer.get("responses") or ()
    else:
        rows = [row for topic in each.answer.get("topics") or () for row in topic.get("partitions") or ()]
    return all(row["error_code"] not in (ErrorCode.NONE, *_PERHAPS) for row in rows)
