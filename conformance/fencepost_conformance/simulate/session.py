"""A core that is watched: every event is checked against the properties of section 12.1 and 12.5."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.choices import Choices
from fencepost.protocol.events import AppendFailed, Event, Load, Request, Unload
from fencepost.protocol.messages import JoinGroupRequest, SyncGroupRequest
from fencepost.protocol.records import Record
from fencepost.protocol.settings import Profile, Settings
from fencepost.protocol.view import GroupView

from ..targets.base import Observation
from ..targets.core import CoreSession
from .answer_rules import AnswerRules
from .broken import demand
from .group_rules import check_change, check_group, check_independence


class WatchedSession(CoreSession):
    """Raises ``Broken`` at the first event after which a property does not hold. ``log``: the records, in order."""

    def __init__(self, settings: Settings, profile: Profile, choices: Choices) -> None:
        super().__init__(settings, profile, choices)
        self.log: list[Record] = []
        self._rules = AnswerRules()
        self._last = 0
        self._overwritten: set[int] = set()  #: parked requests that a later one of the member took the place of
        self._parked: dict[tuple[str, str, type], int] = {}

    def feed(self, event: Event) -> Observation:
        before = dict(self.groups)
        seen = super().feed(event)
        self._write(event, seen)
        for name, group in seen.groups.items():
            if group is not None:
                check_group(group)
                if name in before and not isinstance(event, Load | Unload):
                    check_change(before[name], group)
        check_independence(event, seen.groups, before)
        self._rules.observe(event, seen, before, self.groups)
        self._park(event)
        self._check_parked(before)
        return seen

    def _write(self, event: Event, seen: Observation) -> None:
        if isinstance(event, Load):
            self.log = list(event.records)
        elif isinstance(event, AppendFailed) and self._last:
            del self.log[-self._last :]
        self.log += seen.records
        self._last = len(seen.records)

    def _park(self, event: Event) -> None:
        """A second request of the same member takes the place of the first, which gets no answer (C-JOIN-59)."""
        if isinstance(event, Request) and isinstance(event.body, JoinGroupRequest | SyncGroupRequest):
            key = (event.body.group_id, event.body.member_id, type(event.body))
            if event.body.member_id and event.id in self._rules.unanswered:
                earlier = self._parked.get(key)
                if earlier is not None:
                    self._overwritten.add(earlier)
                self._parked[key] = event.id

    def _check_parked(self, before: Mapping[str, GroupView]) -> None:
        """LIV-01, where it can be seen at once: nobody waits for an answer that no group holds any more."""
        for number, request in self._rules.unanswered.items():
            body = request.body
            if number in self._overwritten or not isinstance(body, JoinGroupRequest | SyncGroupRequest):
                continue
            group = self.groups.get(body.group_id)
            joins = isinstance(body, JoinGroupRequest)
            waiting = group is not None and any(
                member.awaiting_join if joins else member.awaiting_sync for member in group.members
            )
            rule = "LIV-01" if joins else "LIV-03"
            demand(waiting, rule, f"{body.group_id}: request {number} of {body.member_id!r} will never be answered")

    @property
    def unanswered(self) -> list[Request]:
        """Requests that still wait and that no later one took the place of."""
        return [request for number, request in self._rules.unanswered.items() if number not in self._overwritten]
