"""Whether the broker was too slow for a judgement about time.

A timer, an answer or a request may be late by ``Limits.slack_ms``. An overloaded broker or machine may be later, and
would then be refused although only its times are wrong. Requests that a coordinator always answers at once show how
slow the broker was. While it answers them promptly, a session that ends too late is a fault of the broker. The time
until a new topic appears in Metadata shows how long a coordinator may take to learn of topics.

So the checker looks at a refusal once more in two cases: such a request took long just before it, or the refusal is
about topics and a topic took long to appear at any time. It then adds the longest of these times twice to the slack:
once for a late action of the broker, once for a late answer. If that explains the trace, only the time is wrong, and
the trace is undecided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from ...traces.files import WireTrace
from ...traces.lines import DisconnectedLine, ReceivedLine, SentLine
from .search import Exhausted, Limits
from .verdict import Refusal

#: APIs that a broker answers without waiting for other members, a timeout or data
_AT_ONCE: Final = {
    3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator", 12: "Heartbeat", 13: "LeaveGroup",
    15: "DescribeGroups", 16: "ListGroups", 18: "ApiVersions", 28: "TxnOffsetCommit", 68: "ConsumerGroupHeartbeat",
    69: "ConsumerGroupDescribe",
}  # fmt: skip
_METADATA: Final = 3
_CREATE_TOPICS: Final = 19
#: rules about the partitions that the coordinator knows; an assignor may fail on one that it does not know (A-UHET-06)
_OF_TOPICS: Final = {"A-PROP-01", "M-HB-12"}
#: an answer within this time is prompt
_PROMPT_MS: Final = 1_000
#: how often the slack is widened, for delays at several places of a trace
_TIMES: Final = 3


@dataclass(frozen=True, slots=True)
class Slow:
    """Evidence that the broker was slow: a line after the header, what it shows, and by how much it was late."""

    line: int
    what: str
    took_ms: int

    def sentence(self, group_id: str, slack_ms: int) -> str:
        """Why the trace is undecided, and what to do; without the line, which is shown separately."""
        return (
            f"group {group_id!r}: only times are wrong, by more than the {slack_ms} ms that are allowed, and the "
            f"broker was slow: {self.what}; play fewer traces at a time (conform --concurrency), or allow more "
            "(validate --slack-ms)"
        )


def only_late(
    trace: WireTrace, refusal: Refusal, limits: Limits, check: Callable[[Limits], Refusal | None]
) -> Refusal | Slow:
    """The refusal that remains if the broker may be as late as the trace shows; or, if none remains, the slow answer.

    Args:
        refusal: the group's refusal with ``limits``; its line counts from the header.
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
    refused answer itself does not count."""
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
    topic = _latest_topic(trace, refusal.at_ms) if _OF_TOPICS.intersection(refusal.rules) else None
    return max((each for each in (slowest, topic) if each is not None), key=lambda each: each.took_ms, default=None)


def _latest_topic(trace: WireTrace, until_ms: int) -> Slow | None:
    """The topic that took longest from the answer to CreateTopics to the first Metadata answer that contains it, if an
    earlier Metadata answer lacked it."""
    made: dict[str, int] = {}
    missed: set[str] = set()
    latest: Slow | None = None
    for number, line in enumerate(trace.lines, 1):
        if line.at_ms > until_ms:
            break
        if not isinstance(line, ReceivedLine) or line.api_key not in (_METADATA, _CREATE_TOPICS):
            continue
        rows: Any = line.body.get("topics")
        for topic in rows or ():
            name, there = topic.get("name"), topic.get("error_code") == 0
            if line.api_key == _CREATE_TOPICS:
                if there:
                    made[name] = line.at_ms
            elif name in made and not there:
                missed.add(name)
            elif name in missed:
                missed.remove(name)
                took_ms = line.at_ms - made[name]
                if took_ms > (latest.took_ms if latest is not None else _PROMPT_MS):
                    what = f"topic {name!r} appeared in Metadata {took_ms} ms after CreateTopics was answered"
                    latest = Slow(number, what, took_ms)
    return latest


def _slower(slowest: Slow | None, number: int, sent: SentLine, until_ms: int) -> Slow | None:
    took_ms = until_ms - sent.at_ms
    if took_ms <= (slowest.took_ms if slowest is not None else _PROMPT_MS):
        return slowest
    api = f"{_AT_ONCE[sent.api_key]} v{sent.api_version}"
    return Slow(number, f"{api} on connection {sent.connection} was answered after {took_ms} ms", took_ms)
