"""The core and the model after the same events.

DRIVEN: the core, event by event, with its log, timers and tasks. MODELLED: the model's whole coordinator behind a
``Follower``, which must explain each step: reply, records, timers, tasks and the view of the group.

The alphabet is small: a few member ids, two subscriptions, one instance id, few topics. The next events are derived
from the group's view, so both sides get the same. Time is not part of a state: any armed timer may fire, and the clock
then moves to its deadline. A log that is loaded may have been compacted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

from fencepost.functions import KafkaFunctions
from fencepost.log import left
from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    Request,
    TaskDone,
    TaskKey,
    TimerFired,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.messages import (
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupView
from fencepost_model.trace import Follower

from ....targets.core import CoreSession
from ....traces.observation import Observation
from ..broken import Broken
from ..choices import Smallest
from ..consumer_group_rules import check_consumer_change, check_consumer_group
from ..group_rules import check_change, check_group
from .bounds import GROUP, Bounds, Moves, Scene

VERSIONS = {
    JoinGroupRequest: 9,
    SyncGroupRequest: 5,
    HeartbeatRequest: 4,
    LeaveGroupRequest: 5,
    DeleteGroupsRequest: 2,
    ConsumerGroupHeartbeatRequest: 1,
}
_MATCHER = KafkaFunctions().matcher


class PossibleEvent(NamedTuple):
    """A possible next event; ``who`` it concerns, ``what`` it is."""

    who: str
    what: str
    event: Event


class Both:
    """Core and model. ``after`` leaves this object unchanged."""

    def __init__(self, bounds: Bounds, moves: Sequence[Moves]) -> None:
        self.bounds = bounds
        self.moves = moves
        settings = replace(bounds.settings, group_max_size=bounds.max_size)
        self.choices = Smallest()
        self.core = CoreSession(settings, bounds.profile, self.choices)
        self.model = Follower(settings, bounds.profile, _MATCHER)
        self.now = 1  # an assignment's time is never 0 (G-DATA-32)
        self.log: tuple[Record, ...] = ()
        self.replicated = 0
        self.last: tuple[Record, ...] = ()
        self.deletions: frozenset[int] = frozenset()  #: open requests to delete the group
        self.as_one = True  #: ``last`` was one append, so one failure can undo all of it
        self.owned = False
        self.image = 0  #: the topics are ``bounds.images[image]``
        self.tasks: tuple[TaskKey, ...] = ()
        self.requests = 0
        self.answers: tuple[str, ...] = ()

    @property
    def classic(self) -> GroupView | None:
        return self.core.groups.get(GROUP)

    @property
    def consumer(self) -> ConsumerGroupView | None:
        return self.core.consumer_groups.get(GROUP)

    def loaded(self) -> Both:
        """Return the pair after the topics are known and an empty log is loaded."""
        return self.after(self._topics(0)).after(Load(self.now, leader_epoch=1, records=()))

    def after(self, event: Event) -> Both:
        """Give the event to both; raises ``Broken`` if they differ or a property does not hold."""
        other = copy(self)
        other.choices = Smallest(self.choices.made)
        other.core = copy(self.core)
        vars(other.core).update(
            _choices=other.choices,
            _versions=dict(self.core._versions),
            armed=dict(self.core.armed),
            groups=dict(self.core.groups),
            consumer_groups=dict(self.core.consumer_groups),
        )
        other.model = copy(self.model)
        other.model._versions = dict(self.model._versions)
        other._take(event)
        return other

    def _take(self, event: Event) -> None:
        before = self.classic, self.consumer
        self.now = event.at_ms
        seen = self.core.feed(event)
        verdict = self.model.feed(event, seen)
        if not verdict.ok:
            raise Broken("E2", str(verdict))
        self._keep_log(event, seen)
        self._keep_tasks(event, seen)
        # Concurrent deletions are appended one by one (C-ADM-09); AppendFailed cannot say which append failed.
        self.as_one = not (isinstance(event, Appended) and len(self.deletions) > 1)
        if isinstance(event, Request):
            self.requests = event.id
            if isinstance(event.body, DeleteGroupsRequest):
                self.deletions |= {event.id}
        self.deletions -= {reply.request_id for reply in seen.replies}
        self.answers = tuple(getattr(reply.body, "error_code", ErrorCode.NONE).name for reply in seen.replies)
        if self.bounds.profile is INTENDED:  # a release has its faults
            self._check(event, before)

    def _check(self, event: Event, before: tuple[GroupView | None, ConsumerGroupView | None]) -> None:
        classic, consumer = self.classic, self.consumer
        moved = isinstance(event, Load | Unload)
        if classic is not None:
            check_group(classic)
            if before[0] is not None and not moved:
                check_change(before[0], classic)
        if consumer is not None:
            check_consumer_group(consumer)
            if before[1] is not None and not moved and not isinstance(event, AppendFailed):
                check_consumer_change(before[1], consumer)

    def _keep_log(self, event: Event, seen: Observation) -> None:
        if isinstance(event, Load):
            self.log, self.replicated, self.owned = tuple(event.records), len(event.records), True
        elif isinstance(event, Unload):
            self.owned = False
        elif isinstance(event, Appended):
            self.replicated = event.offset
        elif isinstance(event, AppendFailed):
            self.log = self.log[: len(self.log) - len(self.last)]
        self.last = seen.records
        self.log += seen.records

    def _keep_tasks(self, event: Event, seen: Observation) -> None:
        if isinstance(event, TopicsChanged):
            self.image = self.bounds.images.index(event.topics)
        elif isinstance(event, Load | Unload):
            self.tasks = ()
        elif isinstance(event, TaskDone):
            self.tasks = tuple(key for key in self.tasks if key != event.key)
        self.tasks += seen.tasks

    def _topics(self, image: int) -> TopicsChanged:
        return TopicsChanged(self.now, self.bounds.images[image], version=image + 1)

    def events(self) -> Iterator[PossibleEvent]:
        """Yield every possible next event."""
        if self.last and self.as_one:  # directly after the step that wrote, or never
            yield PossibleEvent("", "append fails", AppendFailed(self.now, ErrorCode.NOT_ENOUGH_REPLICAS))
        if not self.owned:
            kept = self.log[: self.replicated]
            yield PossibleEvent("", "loads", Load(self.now, leader_epoch=1 + len(self.log), records=kept))
            if (less := tuple(left(kept))) != kept:
                yield PossibleEvent(
                    "", "loads what a cleaner left", Load(self.now, leader_epoch=1 + len(self.log), records=less)
                )
            return
        if self.replicated < len(self.log):
            yield PossibleEvent("", "replicated", Appended(self.now, offset=len(self.log)))
            if self.bounds.prompt:
                return
        scene = Scene(self.classic, self.consumer, self.choices.made, self.now)
        for moves in self.moves:
            for who, what, body, wait_ms in moves(self.bounds, scene):
                request = Request(
                    self.now + wait_ms,
                    id=self.requests + 1,
                    version=VERSIONS[type(body)],
                    client_id="c",
                    client_host="/h",
                    body=body,
                )
                yield PossibleEvent(who, what, request)
        for key, at in sorted(self.core.armed.items(), key=lambda row: str(row[0])):
            yield PossibleEvent(key.member_id, f"timer {key.kind.value}", TimerFired(max(self.now, at), key))
        for task in self.tasks:
            yield PossibleEvent("", "task is done", TaskDone(self.now, task))
            yield PossibleEvent("", "task fails", TaskDone(self.now, task, failed=True))
        if self.image + 1 < len(self.bounds.images):
            yield PossibleEvent("", "topics change", self._topics(self.image + 1))
        yield PossibleEvent("", "moves", Unload(self.now, leader_epoch=None))
