"""Probes: events after the end of a trace that show its effects."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.events import Appended, Event, Load, Request, TaskDone, Unload
from fencepost.protocol.messages import VERSIONS, HeartbeatRequest, JoinGroupResponse, RequestBody

from ..shrink.references import TrackedSession
from .play import Probe
from .played_trace import PlayedTrace

_NUMBER = 1_000_000  # id of the first request, above those of any trace
_EPOCH = 1_000_000  # leader epoch of the load, likewise


def ask(played: PlayedTrace, body: RequestBody, *, later_ms: int = 0) -> Request:
    """Return a request at the end of the played trace."""
    version = VERSIONS[type(body)][1]
    at_ms = played.last.event.at_ms + later_ms
    return Request(
        at_ms, id=_NUMBER + len(played.steps), version=version, client_id="asks", client_host="/127.0.0.1", body=body
    )


def replicate(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
    """Replicate all written records."""
    return (
        Appended(played.last.event.at_ms, offset=session_state.end)
        if session_state.end > session_state.replicated
        else None
    )


def lose(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
    """Lose the partition."""
    return Unload(played.last.event.at_ms, leader_epoch=None)


def win(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
    """Win the partition again, with the whole log."""
    return Load(played.last.event.at_ms, leader_epoch=_EPOCH, records=played.last.log)


def use_the_generation(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
    """Send a heartbeat with the generation of the last answer, from its member."""
    answered = [(request, played.answers.get(number)) for number, (_, request) in played.requests.items()]
    for request, answer in reversed(answered):
        if answer is not None and isinstance(answer[1], JoinGroupResponse) and answer[1].generation_id >= 0:
            group = getattr(request.body, "group_id", "")
            instance = getattr(request.body, "group_instance_id", None)
            return ask(
                played,
                HeartbeatRequest(
                    group,
                    generation_id=answer[1].generation_id,
                    member_id=answer[1].member_id,
                    group_instance_id=instance,
                ),
            )
    return None


def classic_heartbeats(group: str, count: int) -> tuple[Probe, ...]:
    """Return probes: after a while, one heartbeat of each classic member of a consumer group, at most ``count``."""

    def of(place: int) -> Probe:
        def beat(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
            view = played.last.consumer.get(group)
            rows = [] if view is None else [each for each in view.members if each.classic is not None]
            if place >= len(rows):
                return None
            row = rows[place]
            body = HeartbeatRequest(
                group, generation_id=row.member_epoch, member_id=row.member_id, group_instance_id=row.instance_id
            )
            return ask(played, body, later_ms=0 if place else _WHILE_MS)

        return beat

    return tuple(of(place) for place in range(count))


_WHILE_MS = 5_000  # longer than the assignment interval, shorter than any session


def _beat(place: int) -> Probe:
    """Return a probe: the member at this place in its group reports all its assigned partitions, and none that it must
    revoke."""

    def beat(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
        rows = [(name, row) for name, view in sorted(played.last.consumer.items()) for row in view.members]
        if place >= len(rows) or rows[place][1].classic is not None:
            return None
        name, row = rows[place]
        if row.member_epoch < 0:
            return None
        held = tuple(TopicPartitions(each.topic_id, each.partitions) for each in row.assigned)
        body = ConsumerGroupHeartbeatRequest(
            name, member_id=row.member_id, member_epoch=row.member_epoch, instance_id=row.instance_id
        )
        return ask(played, replace(body, topic_partitions=held))

    return beat


def _resolve(played: PlayedTrace, session_state: TrackedSession) -> Event | None:
    """Finish a background task."""
    return TaskDone(played.last.event.at_ms, min(session_state.tasks, key=str)) if session_state.tasks else None


#: members with nothing new keep sending heartbeats until all are reconciled
SETTLE: tuple[Probe, ...] = (
    replicate,
    *(each for _ in range(3) for place in range(3) for each in (_beat(place), replicate, _resolve, replicate)),
)
