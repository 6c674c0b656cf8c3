"""A watched core: every event is checked against the properties of sections 12.1, 12.2 and 12.5."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.coordinator.classic.group import ClassicGroup
from fencepost.protocol.choices import Choices
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.events import AppendFailed, Event, Load, Request, TopicsChanged, Unload
from fencepost.protocol.messages import JoinGroupRequest, SyncGroupRequest
from fencepost.protocol.profile import Profile
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupState, GroupView

from ...targets.core import CoreSession
from ...targets.hard_state import Groups, lost
from ...traces.observation import Observation
from .answer_rules import AnswerRules
from .broken import demand
from .consumer_answer_rules import ConsumerAnswerRules
from .consumer_group_rules import (
    check_consumer_change,
    check_consumer_group,
    check_downgrade,
    check_released,
    check_taken_back,
    check_upgrade,
)
from .group_rules import check_change, check_group, check_independence

Views = Mapping[str, ConsumerGroupView]


class WatchedSession(CoreSession):
    """Raises ``Broken`` at the first event after which a property does not hold. ``log``: the records, in order."""

    def __init__(self, settings: Settings, profile: Profile, choices: Choices) -> None:
        super().__init__(settings, profile, choices)
        self.log: list[Record] = []
        self._elsewhere: set[int] = set()  #: requests that came to a consumer group
        self._rules = AnswerRules(self._elsewhere)
        self._consumer_rules = ConsumerAnswerRules()
        self._last = 0
        self._overwritten: set[int] = set()  #: parked requests that a later one of the same member replaced
        self._held: dict[int, tuple[str, str, str]] = {}  #: parked requests: group, member, kind
        self._before: Views = {}  #: consumer groups before the last step
        self._left: tuple[Groups, list[Record]] = (Groups({}, {}), [])  #: groups and log when the partition was lost
        self._unwritten: set[str] = set()  #: groups whose last record could not be appended
        self._names: dict[bytes, str] = {}  #: topic names by id

    def feed(self, event: Event) -> Observation:
        before, consumers = dict(self.groups), dict(self.consumer_groups)
        seen = super().feed(event)
        if isinstance(event, TopicsChanged):
            self._names = {topic.topic_id: topic.name for topic in event.topics}
        elif isinstance(event, Request) and getattr(event.body, "group_id", None) in consumers:
            self._elsewhere.add(event.id)
        self._check_history(event, before, consumers)
        self._write(event, seen)
        self._check_groups(event, seen, before)
        self._check_consumer_groups(event, seen, consumers)
        if not isinstance(event, AppendFailed | Load | Unload):
            self._check_conversions(seen, before, consumers)
        check_independence(event, {*seen.groups, *seen.consumer_groups}, before)
        self._rules.observe(event, seen, before, self.groups)
        self._consumer_rules.observe(event, seen, consumers, self.consumer_groups)
        self._check_parked(event)
        self._before = consumers
        return seen

    def _check_history(self, event: Event, classic: Mapping[str, GroupView], consumers: Views) -> None:
        """Check the state that a failed append or a load restores."""
        if isinstance(event, AppendFailed):
            for name in self._before.keys() | consumers.keys():
                old, now = self._before.get(name), self.consumer_groups.get(name)
                if old is not None:
                    check_taken_back(old, now)
                else:
                    demand(now is None, "INV-ATOM-01", f"{name} exists, but the append that created it failed")
        elif isinstance(event, Unload):
            self._left = Groups(classic, consumers), list(self.log)
        elif isinstance(event, Load) and list(event.records) == self._left[1]:
            differ = lost(self._left[0], Groups(self.groups, self.consumer_groups), self.log, self._unwritten)
            demand(not differ, "INV-REPLAY-01", f"different from before the partition was lost: {differ}")

    def _check_groups(self, event: Event, seen: Observation, before: Mapping[str, GroupView]) -> None:
        for name, group in seen.groups.items():
            if group is not None:
                check_group(group)
                if name in before and not isinstance(event, Load | Unload):
                    check_change(before[name], group)

    def _check_consumer_groups(self, event: Event, seen: Observation, before: Views) -> None:
        for name, group in seen.consumer_groups.items():
            if group is not None:
                check_consumer_group(group)
                if name in before and not isinstance(event, AppendFailed | Load | Unload):
                    check_consumer_change(before[name], group)
                    check_released(event, before[name], group, self._names)

    def _check_conversions(self, seen: Observation, before: Mapping[str, GroupView], consumers: Views) -> None:
        for name, view in seen.consumer_groups.items():
            old = before.get(name)
            if view is not None and old is not None and old.state is not GroupState.EMPTY:
                check_upgrade(old, view, self._names)
        for name, group in seen.groups.items():
            if group is not None and name in consumers and consumers[name].members:
                check_downgrade(consumers[name], group, self._names)

    def _write(self, event: Event, seen: Observation) -> None:
        if isinstance(event, Load):
            self.log = list(event.records)
            self._unwritten.clear()
        elif isinstance(event, AppendFailed) and self._last:
            self._unwritten |= {record.key.group for record in self.log[-self._last :]}
            del self.log[-self._last :]
        self.log += seen.records
        self._unwritten -= {record.key.group for record in seen.records}
        self._last = len(seen.records)

    def _check_parked(self, event: Event) -> None:
        """LIV-01, LIV-03, as far as a single step shows it: no request waits for an answer that no group holds any
        longer.

        A request that a later one of the same member replaced is the exception (C-JOIN-59, C-SYNC-19). Requests that
        reached a consumer group may wait for the log (X-JOIN-14, X-SYNC-06).
        """
        held = {
            number: (name, member.member_id, what)
            for name, group in self._state.groups.items()
            if isinstance(group, ClassicGroup)
            for member in group.members.values()
            for what, number in (("join", member.join), ("sync", member.sync))
            if number is not None
        }
        for number, request in self._rules.unanswered.items():
            joins = isinstance(request.body, JoinGroupRequest)
            if (
                number in held
                or number in self._overwritten
                or not (joins or isinstance(request.body, SyncGroupRequest))
            ):
                continue
            place = self._held.get(number)
            if place is not None and isinstance(event, Request) and held.get(event.id) == place:
                self._overwritten.add(number)
                continue
            if number in self._elsewhere and number in self._state.operations:
                continue
            demand(False, "LIV-01" if joins else "LIV-03", f"request {number} ({place}) will never be answered")
        self._held = held

    @property
    def unanswered(self) -> list[Request]:
        """Return the requests that still wait and that no later one replaced."""
        return [request for number, request in self._rules.unanswered.items() if number not in self._overwritten]
