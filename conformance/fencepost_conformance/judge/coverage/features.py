"""The features that one step reaches, derived from the event and its observation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol import offset_messages as om
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.consumer_view import ConsumerGroupState, ConsumerGroupView, MemberState
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.records import RecordKey
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView

from ...traces.answers import errors_of
from ...traces.observation import Observation
from .catalogue import FEATURES, INSIDE
from .consumer_situation import ConsumerSituation
from .open_rules import OpenRules
from .rules import rules_of
from .rules_of_group import consumer_rules_of
from .rules_offsets import Groups, offset_rules_of
from .situation import LeaderSync, Situation

#: names of features by their subject, so that steps need not build strings
_EVENTS = {kind: f"event {kind.__name__}" for kind in get_args(ev.Event)}
_VERSIONS = {
    kind: {version: f"version {kind.__name__.removesuffix('Request')} {version}" for version in range(first, last + 1)}
    for kind, (first, last) in m.VERSIONS.items()
}
_ERRORS = {
    kind: {error: f"error {kind.__name__.removesuffix('Response')} {error.name}" for error in ErrorCode}
    for kind in get_args(m.ResponseBody)
}
_TIMERS = {
    kind: {what: f"timer {kind.name} {what}" for what in ("set", "moved", "cancelled", "fired")}
    for kind in ev.TimerKind
}
_RECORDS = {
    kind: tuple(f"{what} {kind.__name__.removesuffix('Key')}" for what in ("record", "tombstone"))
    for kind in get_args(RecordKey)
}
_STATES = {state: f"state {state.value}" for state in GroupState}
_CONSUMER_STATES = {state: f"consumer-state {state.value}" for state in ConsumerGroupState}
_MEMBER_STATES = {state: f"member-state {state.name}" for state in MemberState}
_RULES = {name.removeprefix("rule "): name for name in FEATURES if name.startswith("rule ")}

_OFFSET_BODIES = (
    om.OffsetCommitRequest,
    om.OffsetFetchRequest,
    om.OffsetDeleteRequest,
    om.TxnOffsetCommitRequest,
    om.WriteTxnMarkerRequest,
)
_OF_CLASSIC = (m.JoinGroupRequest, m.SyncGroupRequest, m.HeartbeatRequest, m.LeaveGroupRequest)


def _of_offsets(event: ev.Event) -> bool:
    """Whether the event can concern offsets."""
    if isinstance(event, ev.Request):
        return isinstance(event.body, _OFFSET_BODIES)
    return isinstance(event, ev.TopicsChanged | ev.TimerFired)


def features_of(settings: Settings, events: Sequence[ev.Event], observations: Sequence[Observation]) -> set[str]:
    """Return every feature of the catalogue that the trace reached. ``observations`` may be shorter than ``events``."""
    watcher = Watcher(settings)
    for event, seen in zip(events, observations, strict=False):
        watcher.feed(event, seen)
    return watcher.reached


class Watcher:
    """Follows a trace; ``reached`` grows."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._groups: dict[str, GroupView] = {}
        self._consumer_groups: dict[str, ConsumerGroupView] = {}
        self._armed: dict[ev.TimerKey, int] = {}
        self._open: dict[int, ev.Request] = {}
        self._classic_requests: dict[int, ev.Request] = {}  # likewise, that met a consumer group
        self._downgrades: dict[str, int] = {}
        self._rules = OpenRules()
        self._consumers = False  # the consumer protocol has been used; its rules are not tested before
        self._loading = False
        self._start = self._end = 0  # end of the log, before and after the last step
        self._leader_syncs: tuple[LeaderSync, ...] = ()
        self._reached: set[str] = set()  # reached features, and names outside the catalogue
        self.reached: set[str] = set()

    def feed(self, event: ev.Event, seen: Observation) -> None:
        """Follow one more step."""
        to_consumer_group = self._meets(event)
        if isinstance(event, ev.Request):
            (self._classic_requests if to_consumer_group else self._open)[event.id] = event
        elif isinstance(event, ev.TimerFired):
            self._armed.pop(event.key, None)
        new = self._step(event, seen, to_consumer_group=to_consumer_group) - self._reached
        if new:
            self._reached |= new
            self.reached.update(new & INSIDE)
        self._follow(event, seen)

    def _meets(self, event: ev.Event) -> bool:
        """Whether a request of the classic protocol meets a consumer group; for a JoinGroup an empty one does not count
        (C-JOIN-10)."""
        if not isinstance(event, ev.Request) or not isinstance(event.body, _OF_CLASSIC):
            return False
        group = self._consumer_groups.get(event.body.group_id)
        return group is not None and (bool(group.members) or not isinstance(event.body, m.JoinGroupRequest))

    def _step(self, event: ev.Event, seen: Observation, *, to_consumer_group: bool) -> set[str]:
        names = {_EVENTS[type(event)]}
        if isinstance(event, ev.Request):
            names.add(_VERSIONS[type(event.body)].get(event.version, ""))
        elif isinstance(event, ev.TimerFired):
            names.add(_TIMERS[event.key.kind]["fired"])
        elif isinstance(event, ev.AppendFailed):
            names.add(f"append fails {event.error.name}")
        for reply in seen.replies:
            errors = _ERRORS[type(reply.body)]
            for error in errors_of(reply.body):
                names.add(errors[error])
        for key, deadline in seen.timers.items():
            names.add(_TIMERS[key.kind]["cancelled" if deadline is None else "moved" if key in self._armed else "set"])
        for record in seen.records:
            written, removed = _RECORDS[type(record.key)]
            names.add(removed if record.value is None else written)
        of_groups: set[str] = set()
        for group_id, view in seen.groups.items():
            of_groups.update(transitions(self._groups.get(group_id), view))
        names |= of_groups
        if isinstance(event, ev.Request | ev.TimerFired):  # an event that undoes a conversion does not count
            names.update(self._conversions(seen))
        situation = Situation(
            self._settings,
            event,
            seen,
            self._groups,
            self._armed,
            requests=self._open,
            loading=self._loading,
            leader_syncs=self._leader_syncs,
        )
        rules = rules_of(situation, of_groups, self._rules, to_consumer_group=to_consumer_group)
        self._consumers = self._consumers or bool(seen.consumer_groups) or _of_consumers(event)
        if self._consumers and (self._consumer_groups or seen.consumer_groups or isinstance(event, ev.Request)):
            for group_id, consumers in seen.consumer_groups.items():
                names.update(consumer_transitions(self._consumer_groups.get(group_id), consumers))
            rules += self._of_consumers(event, seen, to_consumer_group=to_consumer_group)
        if _of_offsets(event):
            rules += offset_rules_of(event, seen, Groups(self._groups, self._consumer_groups))
        names.update([_RULES[rule] for rule in rules])
        return names

    def _conversions(self, seen: Observation) -> Iterator[str]:
        """Yield conversions of groups from one kind to the other."""
        for group_id, view in seen.consumer_groups.items():
            classic, consumers = self._groups.get(group_id), self._consumer_groups.get(group_id)
            now = seen.groups.get(group_id)
            if view is not None and classic is not None:
                yield f"conversion {classic.state.value} → consumer"
            elif view is None and consumers is not None and now is not None:
                if consumers.members:
                    self._downgrades[group_id] = now.generation_id
                yield f"conversion {'consumer' if consumers.members else 'Empty consumer'} → {now.state.value}"

    def _of_consumers(self, event: ev.Event, seen: Observation, *, to_consumer_group: bool) -> list[str]:
        situation = ConsumerSituation(
            self._settings,
            event,
            seen,
            self._consumer_groups,
            self._armed,
            requests=self._open,
            classic_requests=self._classic_requests,
            classic=self._groups,
            downgrades=self._downgrades,
            leader_syncs=self._leader_syncs,
        )
        return consumer_rules_of(situation, self._rules, to_consumer_group=to_consumer_group)

    def _follow(self, event: ev.Event, seen: Observation) -> None:
        for key, deadline in seen.timers.items():
            if deadline is None:
                self._armed.pop(key, None)
            else:
                self._armed[key] = deadline
        for group_id, view in seen.groups.items():
            if view is None:
                self._groups.pop(group_id, None)
                self._downgrades.pop(group_id, None)
            else:
                self._groups[group_id] = view
        for group_id, consumers in seen.consumer_groups.items():
            if consumers is None:
                self._consumer_groups.pop(group_id, None)
            else:
                self._consumer_groups[group_id] = consumers
        for reply in seen.replies:
            self._open.pop(reply.request_id, None)
            self._classic_requests.pop(reply.request_id, None)
        self._follow_log(event, seen)

    def _follow_log(self, event: ev.Event, seen: Observation) -> None:
        if isinstance(event, ev.LoadStarted):
            self._loading = True
        elif isinstance(event, ev.LoadFailed | ev.Unload):
            self._loading, self._leader_syncs = False, ()
        elif isinstance(event, ev.Load):
            self._loading, self._leader_syncs, self._end = False, (), len(event.records)
        elif isinstance(event, ev.Appended):
            self._leader_syncs = tuple(sync for sync in self._leader_syncs if sync.offset > event.offset)
        elif isinstance(event, ev.AppendFailed):
            self._end = self._start
            self._leader_syncs = tuple(sync for sync in self._leader_syncs if sync.offset <= self._end)
        self._start = self._end
        self._end += len(seen.records)
        if seen.records and isinstance(event, ev.Request) and isinstance(event.body, m.SyncGroupRequest):
            sync = LeaderSync(event.body.group_id, event.body.generation_id, self._end)
            self._leader_syncs = (*self._leader_syncs, sync)


def _of_consumers(event: ev.Event) -> bool:
    return isinstance(event, ev.Request) and isinstance(
        event.body, ConsumerGroupHeartbeatRequest | ConsumerGroupDescribeRequest
    )


def transitions(before: GroupView | None, after: GroupView | None) -> Iterator[str]:
    """Yield states and transitions between two views of a group; one event may pass through Preparing (C-ST-12…14)."""
    if after is None:
        return
    yield _STATES[after.state]
    if before is None:
        return
    if before.state is not after.state or before.generation_id != after.generation_id:
        if before.state is not after.previous_state and after.previous_state is not GroupState.DEAD:
            yield f"transition {before.state.value} → {after.previous_state.value}"
        if after.previous_state is not after.state:
            yield f"transition {after.previous_state.value} → {after.state.value}"


def consumer_transitions(before: ConsumerGroupView | None, after: ConsumerGroupView | None) -> Iterator[str]:
    """Yield states and transitions of a consumer group and its members between two views."""
    if after is None:
        return
    yield _CONSUMER_STATES[after.state]
    if before is not None and before.state is not after.state:
        yield f"consumer-transition {before.state.value} → {after.state.value}"
    were = {row.member_id: row.state for row in before.members} if before is not None else {}
    for row in after.members:
        yield _MEMBER_STATES[row.state]
        was = were.get(row.member_id, row.state)
        if was is not row.state:
            yield f"member-transition {was.name} → {row.state.name}"
