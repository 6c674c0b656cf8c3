"""A session as a trace: the coordinator's events, or the messages as a proxy beside the clients records them."""

from __future__ import annotations

from uuid import UUID

from ...traces import convert
from ...traces.files import EventTrace, WireTrace
from ...traces.lines import API_OF_TYPE, EVENT_APIS, ConnectedLine, NamesLine, ReceivedLine, SentLine, WireLine
from ..simulate.network import VERSIONS
from .journal import COORDINATOR, Message
from .lab import Lab

_NAME = "laboratory"


def events_trace(lab: Lab) -> EventTrace:
    """Return the coordinator's events and what they did. ``fencepost replay`` plays them again, on the core or on
    Kafka."""
    steps = lab.journal.steps
    return EventTrace(
        lab.plan.settings,
        lab.plan.profile,
        tuple(step.event for step in steps),
        tuple(step.seen for step in steps),
        lab.start.seed,
        _NAME,
        _provenance(),
    )


def wire_trace(lab: Lab) -> WireTrace:
    """Return the messages of the clients, as ``fencepost validate`` reads them. Lost messages are missing."""
    return WireTrace(
        lab.plan.settings, lab.plan.profile, tuple(_Recorder(lab).lines), lab.start.seed, _NAME, _provenance()
    )


def _provenance() -> tuple[tuple[str, str], ...]:
    return (("target", "core"), ("recorder", "fencepost lab"))


class _Recorder:
    """Writes the lines. A client's process has one connection; a message that the user moved has a separate one, since
    requests of one connection arrive in order."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._connections: dict[object, int] = {}
        self.lines: list[WireLine] = []
        for at_ms, number in lab.journal.wire:
            self._write(at_ms, lab.journal.message(number))

    def _write(self, at_ms: int, message: Message) -> None:
        if message.receiver == COORDINATOR:
            request = message
        elif message.asked is not None:
            request = self._lab.journal.message(message.asked)
        else:
            return
        connection, key = self._connection(at_ms, request), EVENT_APIS[API_OF_TYPE[type(request.body)]][0]
        version, body = VERSIONS[type(request.body)], convert.wire_body(message.body)
        if request is message:
            self.lines.append(
                SentLine(
                    at_ms=at_ms,
                    connection=connection,
                    correlation_id=request.number,
                    api_key=key,
                    api_version=version,
                    client_id=request.sender,
                    body=body,
                )
            )
        else:
            self.lines.append(
                ReceivedLine(
                    at_ms=at_ms,
                    connection=connection,
                    correlation_id=request.number,
                    api_key=key,
                    api_version=version,
                    body=body,
                )
            )

    def _connection(self, at_ms: int, request: Message) -> int:
        alone = request.copy or request.moved
        key = request.number if alone else (request.sender, request.process)
        if key not in self._connections:
            number = self._connections[key] = len(self._connections) + 1
            names = {str(UUID(bytes=topic.topic_id)): topic.name for topic in self._lab.broker.topics.values()}
            self.lines += [
                ConnectedLine(at_ms=at_ms, connection=number, client=request.sender),
                NamesLine(at_ms=at_ms, connection=number, names=names),
            ]
        return self._connections[key]
