"""When a committed offset may have expired, and when it must have.

The coordinator checks for expired offsets every ``offsets.retention.check.interval.ms``. The retention of an offset
counts from its commit, or from the time at which a classic group lost its last member (O-EXP-02). A commit of version 2
to 4 may give a retention time (O-EXP-01). While the group has members, offsets of their topics stay (O-EXP-10). So an
offset may be gone as soon as its retention is over. It must be gone one check later if its group certainly has no
members.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.settings import Settings

from ....traces.files import WireTrace
from ....traces.lines import DisconnectedLine, ReceivedLine, SentLine
from ..coordination import NOT_HERE
from .register import NEVER

JOIN_GROUP: Final = 11
#: The requests of members: of the classic protocol, of KIP-848 and of streams groups.
_OF_MEMBERS: Final = frozenset({JOIN_GROUP, 12, 14, 68, 88})
_TIMEOUTS: Final = ("session_timeout_ms", "rebalance_timeout_ms")


@dataclass(slots=True)
class Company:
    """When one group has members. ``first_ms``: when the first one may have joined. ``last_ms``: the last request or
    answer of a member. ``patience_ms``: how long after that it may still be a member."""

    first_ms: int
    last_ms: int
    patience_ms: int


@dataclass(frozen=True, slots=True)
class Times:
    """Bounds for events without a request, in lines of the trace.

    ``steady``: the trace shows no change of the coordinator. ``slack_ms``: how late any event may be. ``tolerance_ms``:
    by how much clocks may differ.
    """

    at_ms: tuple[int, ...]
    settings: Settings
    slack_ms: int
    tolerance_ms: int
    company: Mapping[str, Company]
    steady: bool

    def line_at(self, at_ms: int) -> int:
        """The first line at that time or later: an event that is not earlier than that time is not before this line."""
        at = bisect_left(self.at_ms, at_ms)
        return at + 1 if at < len(self.at_ms) else NEVER

    def line_upto(self, at_ms: int) -> int:
        """The last line at that time or earlier: an event that is not later than that time is before the next line."""
        at = bisect_right(self.at_ms, at_ms)
        return at if at < len(self.at_ms) else NEVER

    def written_by(self, over_ms: int) -> int:
        """For a request that was answered or cut off at this time: the line by which it has taken effect, or never
        will."""
        if over_ms == NEVER:
            return NEVER
        return self.line_upto(over_ms + self.settings.offsets_commit_timeout_ms + self.slack_ms)

    def known_by(self, done_ms: int) -> int:
        """For an action at this time (a marker written, a topic cleaned up): the line by which all brokers know of
        it."""
        return self.line_upto(done_ms + self.slack_ms) if self.steady and done_ms != NEVER else NEVER

    def old_from(self, group_id: str, begin_ms: int, asked_ms: int | None) -> int:
        """The line from which on an offset may have expired, if it was committed at this time or later.

        Args:
            asked_ms: the retention time in the commit; None, or -1: the broker's setting.
        """
        if asked_ms is not None and asked_ms >= 0:
            return self.line_at(begin_ms + asked_ms - self.tolerance_ms)
        members = self.company.get(group_id)
        since_ms = begin_ms if members is None else min(begin_ms, members.first_ms)
        return self.line_at(since_ms + self.settings.offsets_retention_ms - self.tolerance_ms)

    def gone_by(self, group_id: str, end_ms: int, asked_ms: int | None) -> int:
        """The line from which on an offset has expired, if it was committed at this time or earlier."""
        if not self.steady or end_ms == NEVER:
            return NEVER
        kept_ms = self.settings.offsets_retention_ms if asked_ms is None or asked_ms < 0 else asked_ms
        members = self.company.get(group_id)
        since_ms = end_ms
        if members is not None:
            empty_ms = members.last_ms + members.patience_ms
            # the retention time in a commit counts from the commit, but nothing expires while there may be members
            since_ms = max(end_ms, empty_ms if asked_ms is None or asked_ms < 0 else empty_ms - kept_ms)
        wait_ms = self.settings.offsets_retention_check_interval_ms + self.slack_ms
        return self.line_upto(since_ms + kept_ms + wait_ms)


def times(trace: WireTrace, settings: Settings, slack_ms: int, tolerance_ms: int) -> Times:
    """The bounds of a whole trace."""
    steady = not any(
        (isinstance(line, DisconnectedLine) and line.by == "server") or _away(line) for line in trace.lines
    )
    at_ms = tuple(line.at_ms for line in trace.lines)
    return Times(at_ms, settings, slack_ms, tolerance_ms, _company(trace, settings), steady)


def _away(line: object) -> bool:
    return isinstance(line, ReceivedLine) and line.body.get("error_code") in {int(code) for code in NOT_HERE}


def _company(trace: WireTrace, settings: Settings) -> dict[str, Company]:
    found: dict[str, Company] = {}
    least_ms = max(settings.new_member_join_timeout_ms, settings.group_consumer_max_session_timeout_ms)
    open_: dict[tuple[int, int], Company] = {}
    for line in trace.lines:
        if isinstance(line, SentLine) and line.api_key in _OF_MEMBERS:
            group_id = str(line.body.get("group_id", ""))
            company = found.setdefault(group_id, Company(line.at_ms, line.at_ms, least_ms))
            company.last_ms = line.at_ms
            given = [line.body.get(name) for name in _TIMEOUTS]
            company.patience_ms = max([company.patience_ms, *(each for each in given if isinstance(each, int))])
            open_[line.connection, line.correlation_id] = company
        elif isinstance(line, ReceivedLine) and (line.connection, line.correlation_id) in open_:
            open_.pop((line.connection, line.correlation_id)).last_ms = line.at_ms
    return found
