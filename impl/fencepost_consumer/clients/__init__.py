"""The client libraries whose behaviour a reader can follow, one class each."""

from __future__ import annotations

from typing import Final

from fencepost_consumer.clients.background import JavaAsyncConsumer
from fencepost_consumer.clients.foreground import JavaClassicConsumer, KafkaPythonConsumer
from fencepost_consumer.settings import Client
from fencepost_consumer.state import Reader
from fencepost_consumer.turn import Turn

#: The class that takes a step as each library does.
LIBRARIES: Final[dict[Client, type[Turn]]] = {
    Client.CLASSIC: JavaClassicConsumer,
    Client.CONSUMER: JavaAsyncConsumer,
    Client.KAFKA_PYTHON: KafkaPythonConsumer,
}


def turn_of(reader: Reader, now: int, jitter: float) -> Turn:
    """Return a step of this reader, as its client library takes it. ``now``: the event's time in ms; ``jitter``: the
    factor of back-offs that the step starts."""
    return LIBRARIES[reader.settings.client](reader, now, jitter)
