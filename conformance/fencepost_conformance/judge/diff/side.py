"""One side of a comparison, event by event, with the log around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.profile import Profile
from fencepost.protocol.settings import Settings
from fencepost.protocol.view import GroupView

from ...generate.world import Session
from ...targets.core import CoreSession
from ...targets.ids import MemberIds
from ...targets.java_order import JavaOrder
from ...targets.tracked_log import TrackedLog
from ...traces.observation import Observation
from ..compare.choices import Answer, Call, Place, WatchedChoices
from ..compare.leaves import base_of


class Live(Session, Protocol):
    """A coordinator that takes one event at a time. ``drawn``: number of member ids that it has made; it may be set."""

    drawn: int

    def start(self, event: ev.Event) -> None:
        """Announce an event, so that its handling may begin; ``feed`` of it follows."""

    def redrawn(self, event: ev.Event, drawn: int) -> Observation:
        """Repeat the last step, with that number for its first member id."""


class CoreLive:
    """The core; a step can be repeated with other choices."""

    def __init__(self, settings: Settings, profile: Profile) -> None:
        self._ids = MemberIds()
        self._given: dict[Place, Answer] = {}
        self._watched = WatchedChoices(JavaOrder(self._ids), self._given)
        self._session = CoreSession(settings, profile, self._watched)
        self._before = (self._session.mark(), 0)

    @property
    def drawn(self) -> int:
        return self._ids.drawn

    @drawn.setter
    def drawn(self, count: int) -> None:
        self._ids.drawn = count

    @property
    def armed(self) -> dict[ev.TimerKey, int]:
        return self._session.armed

    @property
    def groups(self) -> dict[str, GroupView]:
        return self._session.groups

    @property
    def consumer_groups(self) -> dict[str, ConsumerGroupView]:
        return self._session.consumer_groups

    @property
    def calls(self) -> Sequence[Call]:
        """Return the choices of the last step."""
        return tuple(self._watched.calls)

    def start(self, event: ev.Event) -> None:
        """Do nothing: the core needs no head start."""

    def feed(self, event: ev.Event) -> Observation:
        self._before = (self._session.mark(), self._ids.drawn)
        self._given.clear()
        self._watched.calls.clear()
        return self._session.feed(event)

    def again(self, event: ev.Event, given: Mapping[Place, Answer]) -> Observation:
        """Repeat the last step, with these answers to its choices."""
        mark, self._ids.drawn = self._before
        self._session.back_to(mark)
        self._given.clear()
        self._given.update(given)
        self._watched.calls.clear()
        return self._session.feed(event)

    def redrawn(self, event: ev.Event, drawn: int) -> Observation:
        mark, _ = self._before
        self._before = mark, drawn
        return self.again(event, {})


class Side(TrackedLog):
    """A side with its open requests, each with its group; writes that a timer caused are listed by the id of their
    operation."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self.live = live
        self.handled = 0  #: number of events
        self.asked: dict[int, str] = {}
        self.open: set[int] = set()

    @property
    def unreplicated(self) -> int:
        """Number of records that are written and not yet replicated."""
        return len(self.log) - self.replicated

    def bases(self) -> dict[str, int]:
        """Return the generation or group epoch of each group."""
        known = {name: base_of(view) for name, view in self.live.groups.items()}
        return known | {name: base_of(view) for name, view in self.live.consumer_groups.items()}

    def feed(self, event: ev.Event) -> Observation:
        """Handle the event; an impossible one (the end of a task that does not run) has no effect. Raises what the
        target raises."""
        group = about(event)
        if isinstance(event, ev.Request):
            self.asked[event.id] = group
            self.open.add(event.id)
        else:
            self.asked[-(self.handled + 1)] = group
        taken = self.takes(event)
        seen = self.live.feed(event)
        self.handled += 1
        self.note(event, seen, taken=taken, groups=bool(self.live.groups or self.live.consumer_groups))
        self.open.difference_update(reply.request_id for reply in seen.replies)
        return seen

    def take_back(self, seen: Observation, instead: Observation) -> None:
        super().take_back(seen, instead)
        self.open.update(reply.request_id for reply in seen.replies)
        self.open.difference_update(reply.request_id for reply in instead.replies)


def about(event: ev.Event) -> str:
    """Return the group that an event concerns, ``""`` if it concerns none, or several."""
    if isinstance(event, ev.Request):
        return getattr(event.body, "group_id", "")
    if isinstance(event, ev.TimerFired | ev.TaskDone):
        return event.key.group_id
    return event.group_id if isinstance(event, ev.GroupConfigChanged) else ""
