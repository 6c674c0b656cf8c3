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
from fencepost.protocol.settings import Settings

from .parts import merge, only, split


@quick
@dataclass(frozen=True, slots=True)
class OnPartition:
    """An event of one partition: it is won, loaded or lost, its log has grown or not, a timer or a task of it is done,
    or a transaction ends there."""

    partition: int
    event: Event


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that several partitions answer: what was asked, who has still to answer, and what was answered."""

    body: RequestBody
    missing: frozenset[int]
    answers: Mapping[int, ResponseBody]


@quick
@dataclass(frozen=True, slots=True)
class Broker:
    """``coordinators``: one for each partition of the offsets topic, led here or not (F-LOC-04). ``waiting``: requests
    of several partitions, by id."""

    coordinators: tuple[CoordinatorState, ...]
    waiting: Mapping[int, Waiting]


@quick
@dataclass(frozen=True, slots=True)
class Served:
    """``parts``: what each partition has done, in order; its records are for its own log, its timers and tasks for
    ``OnPartition``. ``replies``: what clients are told; those of the parts are in here, put together."""

    parts: tuple[tuple[int, Outcome], ...]
    replies: tuple[Reply, ...]


HostEvent: TypeAlias = OnPartition | Request | TopicsChanged | GroupConfigChanged


def initial_broker(
    partitions: int, settings: Settings, profile: Profile, *, functions: Functions | None = None
) -> Broker:
    """A broker that leads nothing yet. ``partitions`` are those of the offsets topic, at least one, and never change
    (F-LOC-04)."""
    if partitions < 1:
        raise ValueError(f"a topic has at least one partition, not {partitions}")
    return Broker((initial_state(settings, profile, functions=functions),) * partitions, {})


def step(broker: Broker, event: HostEvent, choices: Choices) -> tuple[Broker, Served]:
    """Hands an event to the coordinators that it is for. A request goes to those of its groups, whoever leads them: who
    does not answers NOT_COORDINATOR (F-FIND-05, F-RT-02). Ids of requests are unique among all that are open. Raises
    ``IllegalEvent`` for what is no event of a broker; the broker is then as it was."""
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
            waiting[event.id] = Waiting(event.body, frozenset(bodies), {})
        todo: list[tuple[int, Event]] = [(place, replace(event, body=body)) for place, body in sorted(bodies.items())]
    elif isinstance(event, OnPartition):
        if not 0 <= event.partition < len(coordinators):
            raise IllegalEvent(f"there is no partition {event.partition}; there are {len(coordinators)}")
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
    """The one partition that handles an event as it is; None if it must be looked at closer."""
    count = len(broker.coordinators)
    if isinstance(event, OnPartition):
        return event.partition if 0 <= event.partition < count else None
    if isinstance(event, Request):
        return only(event.body, count)
    return None
