"""The coordinators of one broker as a pure function over (broker, event)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from fencepost.coordinator import CoordinatorState, initial_state
from fencepost.coordinator import step as step_one
from fencepost.protocol.choices import Choices, Functions
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import Event, GroupConfigChanged, Outcome, Reply, Request, TopicsChanged
from fencepost.protocol.frozen import quick
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.profile import Profile
from fencepost.protocol.server_assignor import Assignor
from fencepost.protocol.settings import Settings

from .parts import merge, only, split


@quick
@dataclass(frozen=True, slots=True)
class OnPartition:
    """An event of one partition: leadership, load and unload, the end of an append, a timer, a task, or the end of a
    transaction."""

    partition: int
    event: Event


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """A request to several partitions: its body, the partitions without a response, and the responses."""

    body: RequestBody
    missing: frozenset[int]
    answers: Mapping[int, ResponseBody]


@quick
@dataclass(frozen=True, slots=True)
class Broker:
    """``coordinators``: one for each partition of the offsets topic, led here or not (F-LOC-04). ``waiting``: requests
    to several partitions, by id."""

    coordinators: tuple[CoordinatorState, ...]
    waiting: Mapping[int, SplitRequest]


@quick
@dataclass(frozen=True, slots=True)
class Served:
    """``parts``: the outcome of each partition, in order. Its records are for the partition's own log; its timers and
    tasks come back in ``OnPartition``. ``replies``: the responses to clients; those of several partitions are
    merged."""

    parts: tuple[tuple[int, Outcome], ...]
    replies: tuple[Reply, ...]


HostEvent: TypeAlias = OnPartition | Request | TopicsChanged | GroupConfigChanged


def initial_broker(
    partitions: int,
    settings: Settings,
    profile: Profile,
    *,
    functions: Functions | None = None,
    assignors: Mapping[str, Assignor] | None = None,
) -> Broker:
    """Return a broker that leads no partition. ``partitions``: number of partitions of the offsets topic, at least one;
    it never changes (F-LOC-04)."""
    if partitions < 1:
        raise ValueError(f"partitions must be >= 1 (got {partitions})")
    return Broker((initial_state(settings, profile, functions=functions, assignors=assignors),) * partitions, {})


def step(broker: Broker, event: HostEvent, choices: Choices) -> tuple[Broker, Served]:
    """Pass an event to its coordinators. A request goes to those of its groups; a coordinator that does not lead its
    partition responds with NOT_COORDINATOR (F-FIND-05, F-RT-02). Request ids are unique among open requests. Raises
    ``IllegalEvent`` for an event that a broker cannot get; the broker is then unchanged."""
    if not broker.waiting:
        place = _only(broker, event)
        if place is not None:
            one = event.event if isinstance(event, OnPartition) else event
            state, outcome = step_one(broker.coordinators[place], one, choices)
            before, behind = broker.coordinators[:place], broker.coordinators[place + 1 :]
            return Broker((*before, state, *behind), broker.waiting), Served(((place, outcome),), outcome.replies)
    coordinators = list(broker.coordinators)
    waiting = dict(broker.waiting)
    replies: list[Reply] = []
    parts: list[tuple[int, Outcome]] = []
    if isinstance(event, Request):
        bodies = split(event.body, len(coordinators))
        if not bodies:
            replies.append(Reply(event.id, merge(event.body, {})))
        elif len(bodies) > 1:
            waiting[event.id] = SplitRequest(event.body, frozenset(bodies), {})
        todo: list[tuple[int, Event]] = [(place, replace(event, body=body)) for place, body in sorted(bodies.items())]
    elif isinstance(event, OnPartition):
        if not 0 <= event.partition < len(coordinators):
            raise IllegalEvent(
                f"OnPartition.partition must be from 0 to {len(coordinators) - 1} (got {event.partition})"
            )
        todo = [(event.partition, event.event)]
    else:
        todo = [(place, event) for place in range(len(coordinators))]
    for place, each in todo:
        coordinators[place], outcome = step_one(coordinators[place], each, choices)
        parts.append((place, outcome))
        for reply in outcome.replies:
            open_one = waiting.get(reply.request_id)
            if open_one is None or place not in open_one.missing:
                replies.append(reply)
                continue
            answers = {**open_one.answers, place: reply.body}
            missing = open_one.missing - {place}
            if missing:
                waiting[reply.request_id] = replace(open_one, missing=missing, answers=answers)
            else:
                del waiting[reply.request_id]
                replies.append(Reply(reply.request_id, merge(open_one.body, answers)))
    return Broker(tuple(coordinators), waiting), Served(tuple(parts), tuple(replies))


def _only(broker: Broker, event: HostEvent) -> int | None:
    """Return the only partition that handles the event unchanged; None if it needs more work."""
    count = len(broker.coordinators)
    if isinstance(event, OnPartition):
        return event.partition if 0 <= event.partition < count else None
    if isinstance(event, Request):
        return only(event.body, count)
    return None
