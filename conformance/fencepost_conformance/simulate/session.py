"""A core that is watched: every event is checked against the properties of section 12.1 and 12.5."""

from __future__ import annotations

from fencepost.coordinator.state import ClassicGroup
from fencepost.protocol.choices import Choices
from fencepost.protocol.events import AppendFailed, Event, Load, Request, Unload
from fencepost.protocol.messages import JoinGroupRequest, SyncGroupRequest
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Profile, Settings

from ..targets.base import Observation
from ..targets.core import CoreSession
from .answer_rules import AnswerRules
from .broken import demand
from .consumer_rules import check_consumer_group
from .group_rules import check_change, check_group, check_independence


class WatchedSession(CoreSession):
    """Raises ``Broken`` at the first event after which a property does not hold. ``log``: the records, in order."""

    def __init__(self, settings: Settings, profile: Profile, choices: Choices) -> None:
        super().__init__(settings, profile, choices)
        self.log: list[Record] = []
        self._rules = AnswerRules()
        self._last = 0
        self._overwritten: set[int] = set()  #: parked requests that a later one of the member took the place of
        self._held: dict[int, tuple[str, str, str]] = {}  #: parked requests: group, member, what for

    def feed(self, event: Event) -> Observation:
        before = dict(self.groups)
        seen = super().feed(event)
        self._write(event, seen)
        for name, group in seen.groups.items():
            if group is not None:
                check_group(group)
                if name in before and not isinstance(event, Load | Unload):
                    check_change(before[name], group)
        for view in seen.consumer_groups.values():
            if view is not None:
                check_consumer_group(view)
        check_independence(event, seen.groups, before)
        self._rules.observe(event, seen, before, self.groups)
        self._check_parked(event)
        return seen

    def _write(self, event: Event, seen: Observation) -> None:
        if isinstance(event, Load):
            self.log = list(event.records)
        elif isinstance(event, AppendFailed) and self._last:
            del self.log[-self._last :]
        self.log += seen.records
        self._last = len(seen.records)

    def _check_parked(self, event: Event) -> None:
        """LIV-01, LIV-03, where it can be seen at once: nobody waits for an answer that no group holds any more.

        The exception is a request whose place a later one of the same member took (C-JOIN-59, C-SYNC-19).
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
            demand(False, "LIV-01" if joins else "LIV-03", f"request {number} ({place}) will never be answered")
        self._held = held

    @property
    def unanswered(self) -> list[Request]:
        """Requests that still wait and that no later one took the place of."""
        return [request for number, request in self._rules.unanswered.items() if number not in self._overwritten]
