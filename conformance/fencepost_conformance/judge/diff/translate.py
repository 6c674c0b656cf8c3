"""Translates events for the other side.

Events are made for the first side. The other may have counted differently, set other timers, written more or fewer
records. So the references in an event are put in its own terms:

* an epoch or generation keeps its distance from the member's or the group's own, also inside a subscription;
* a timer must be set there and due, a task must run, a failed append must have been made; otherwise that side gets no
  such event;
* replication, and the loss of unreplicated records, reach as far as on the first side, counted in steps, not records;
* a loaded log is its own, truncated and compacted in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.records import Record

from ...generate.cleaner import compacted
from ...generate.subscription_generations import with_generations
from .side import Side

#: an epoch further than this from the member's is a number, not a distance
_NEAR = 3


class Translation:
    """Translates from one side to the other. Call ``taken`` and ``step`` after what was handled."""

    def __init__(self, one: Side, other: Side) -> None:
        self._one, self._other = one, other
        self._ends = [(0, 0)]  #: lengths of both logs after each step
        self._operations: dict[int, int] = {}  #: ids of writes without a request

    def taken(self, event: ev.Event) -> None:
        """Note that both have just handled the event: the writes of either are one operation."""
        if not isinstance(event, ev.Request):
            self._operations[-self._one.handled] = -self._other.handled

    def back(self, key: ev.TimerKey) -> ev.TimerKey:
        """Return the first side's key of this timer of the other side."""
        if key.operation >= 0:
            return key
        named = (mine for mine, theirs in self._operations.items() if theirs == key.operation)
        return replace(key, operation=next(named, key.operation))

    def step(self) -> None:
        """Call after each step of either side."""
        one, other = self._one, self._other
        if one.loaded:
            self._ends = [(0, 0)]
        while self._ends and (self._ends[-1][0] > one.before or self._ends[-1][1] > other.before):
            self._ends.pop()
        self._ends.append((len(one.log), len(other.log)))

    def of(self, event: ev.Event, *, log_as_it_is: bool) -> ev.Event | None:
        """Return the event for the other side, None if it gets none. ``log_as_it_is``: a loaded log is the first
        side's, record by record."""
        other = self._other
        if isinstance(event, ev.Request):
            return self._request(event)
        if isinstance(event, ev.TimerFired):
            key = event.key
            if key.operation < 0:
                key = replace(key, operation=self._operations.get(key.operation, key.operation))
            deadline = other.live.armed.get(key)
            return replace(event, key=key) if deadline is not None and deadline <= event.at_ms else None
        if isinstance(event, ev.TaskDone):
            return event if event.key in other.tasks else None
        if isinstance(event, ev.AppendFailed):
            return event if len(other.log) > other.before else None
        if isinstance(event, ev.Appended):
            offset = self._place(event.offset)
            return replace(event, offset=offset) if offset > other.replicated else None
        if isinstance(event, ev.Load) and not log_as_it_is:
            return replace(event, records=tuple(self._log(list(event.records))))
        return event

    # --- epochs ------------------------------------------------------------------------------------------------------

    def _request(self, event: ev.Request) -> ev.Request:
        body: Any = event.body
        if isinstance(body, JoinGroupRequest):
            moved = with_generations(body, lambda epoch: self._epoch(body.group_id, body.member_id, epoch))
            return event if moved is body else replace(event, body=moved)
        name = "member_epoch" if isinstance(body, ConsumerGroupHeartbeatRequest) else "generation_id"
        epoch = getattr(body, name, None)
        theirs = epoch if epoch is None else self._epoch(body.group_id, body.member_id, epoch)
        return event if theirs == epoch else replace(event, body=replace(body, **{name: theirs}))

    def _epoch(self, group: str, member: str, epoch: int) -> int:
        """Return the other side's number for an epoch or generation of the member."""
        if epoch > 0:
            for mine, theirs in self._counted(group, member):
                if abs(epoch - mine) <= _NEAR and theirs + epoch - mine > 0:
                    return theirs + epoch - mine
        return epoch

    def _counted(self, group: str, member: str) -> list[tuple[int, int]]:
        """Return corresponding epochs of both sides: of the member, then of the group."""
        pairs = []
        one, other = (side.live.consumer_groups.get(group) for side in (self._one, self._other))
        if one is not None and other is not None:
            rows, others = ({row.member_id: row for row in view.members} for view in (one, other))
            if member in rows and member in others:
                pairs.append((rows[member].member_epoch, others[member].member_epoch))
        base, theirs = self._one.bases().get(group), self._other.bases().get(group)
        if base is not None and theirs is not None:
            pairs.append((base, theirs))
        return pairs

    # --- the log -----------------------------------------------------------------------------------------------------

    def _place(self, offset: int) -> int:
        """Return the corresponding place in the other log; within a step, as many records into it."""
        mine, theirs = max((pair for pair in self._ends if pair[0] <= offset), default=(0, 0))
        following = next((pair[1] for pair in self._ends if pair[0] > offset), len(self._other.log))
        return min(theirs + offset - mine, following)

    def _log(self, records: list[Record]) -> list[Record]:
        """Return the other log, truncated and compacted alike; the records themselves if they are not of this log."""
        log = self._one.log
        if records == log[: len(records)]:
            return self._other.log[: self._place(len(records))] if log else records
        for end in range(len(log), len(records) - 1, -1):
            for tombstones in (True, False):
                if list(compacted(log[:end], tombstones=tombstones)) == records:
                    return list(compacted(self._other.log[: self._place(end)], tombstones=tombstones))
        return records
