"""Whether the broker was too slow for a judgement about time.

A timer, an answer or a request may be late by ``Limits.slack_ms``. A broker that is overloaded, or a machine that is,
exceeds that, and is then refused for what a faster one would have done right. Requests that no coordinator keeps
waiting show how slow it was: while they are answered promptly, a session that ends too late is a fault of the broker.

So a refusal is looked at once more if such a request took long just before it. The longest of these times, twice, goes
on top of the slack: once for what the broker did late, once for an answer that arrived late. If the trace then has an
explanation, only the time is wrong, and the trace is undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from ..trace.files import WireTrace
from ..trace.lines import DisconnectedLine, ReceivedLine, SentLine
from .search import Exhausted, Limits
from .verdict import Refusal

#: APIs that a broker answers without waiting for other members, a timeout or data
_AT_ONCE: Final = {
    3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator", 12: "Heartbeat", 13: "LeaveGroup",
    15: "DescribeGroups", 16: "ListGroups", 18: "ApiVersions", 28: "TxnOffsetCommit", 68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
}  # fmt: skip
#: an answer within this time is prompt
_PROMPT_MS: Final = 1_000
#: so often the slack is widened, for delays at several places of a trace
_TIMES: Final = 3


@dataclass(frozen=True, slots=True)
class Slow:
    """A request that was answered late: its line after the header, its API with version, its connection, and how long
    the answer took."""

    line: int
    api: str
    connection: int
    took_ms: int

    def sentence(self, group_id: str, slack_ms: int) -> str:
        """Why the trace is undecided, and what to do; without the line, which stands beside it."""
        return (
            f"group {group_id!r}: only times are wrong, by more than the {slack_ms} ms that are allowed, and the "
            f"broker was slow: {self.api} on connection {self.connection} was answered after {self.took_ms} ms; play "
            "fewer traces at a time (conform --concurrency), or allow more (validate --slack-ms)"
        )


def only_late(
    trace: WireTrace, refusal: Refusal, limits: Limits, check: Callable[[Limits], Refusal | None]
) -> Refusal | Slow:
    """The refusal that remains if the broker may have been as late as it was seen to be, or the slow answer by which
    nothing remains.

    Args:
        refusal: what the group is refused for with ``limits``; its line counts from the header.
        check: the first refusal of the group with other limits.
    """
    first: Slow | None = None
    wider = limits
    for _ in range(_TIMES):
        slow = _slowest(trace, refusal, limits)
        if slow is None:
            break
        first = first or slow
        wider = replace(wider, slack_ms=wider.slack_ms + 2 * slow.took_ms)
        try:
            remains = check(wider)
        except Exhausted:
            break
        if remains is None:
            return first
        if remains.line <= refusal.line:
            break
        refusal = remains
    return refusal


def _slowest(trace: WireTrace, refusal: Refusal, limits: Limits) -> Slow | None:
    """The slowest request that was under way within the slack before the refused event; None if all were prompt. The
    answer that is refused shows nothing about itself."""
    since_ms, slowest = refusal.at_ms - limits.slack_ms, None
    under_way: dict[tuple[int, int], tuple[int, SentLine]] = {}
    for number, line in enumerate(trace.lines, 1):
        if line.at_ms > refusal.at_ms:
            break
        if isinstance(line, SentLine) and line.api_key in _AT_ONCE:
            under_way[line.connection, line.correlation_id] = number, line
        elif isinstance(line, DisconnectedLine):
            under_way = {key: sent for key, sent in under_way.items() if key[0] != line.connection}
        elif isinstance(line, ReceivedLine):
            sent = under_way.pop((line.connection, line.correlation_id), None)
            if sent is not None and line.at_ms >= since_ms and number != refusal.line:
                slowest = _slower(slowest, *sent, line.at_ms)
    for sent in under_way.values():
        slowest = _slower(slowest, *sent, refusal.at_ms)
    return slowest


def _slower(slowest: Slow | None, number: int, sent: SentLine, until_ms: int) -> Slow | None:
    took_ms = until_ms - sent.at_ms
    if took_ms <= (slowest.took_ms if slowest is not None else _PROMPT_MS):
        return slowest
    return Slow(number, f"{_AT_ONCE[sent.api_key]} v{sent.api_version}", sent.connection, took_ms)
