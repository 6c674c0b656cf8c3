"""One member of a group, in a process of its own: ``python -m fencepost_conformance.corpus.member CONFIG``.

CONFIG is ``MemberConfig`` as JSON. Standard input takes one command a line, standard output tells one JSON object
a line:

    subscribe A,B    subscribe to these topics instead
    stall SECONDS    do not poll for so long (heartbeats go on)
    slow SECONDS     from now on, block for so long in each rebalance callback
    unsubscribe      leave the group but stay alive
    close            leave as the library does on close, and end

    {"event": "ready"}                                    the client exists and polls
    {"event": "assigned", "partitions": [["t", 0], …]}    what it owns changed
    {"event": "error", "text": …}                         the library raised; the member goes on
    {"event": "closed"}                                   it has left, and ends

The parent ends it in the rough ways itself: SIGKILL (crash), SIGSTOP and SIGCONT (a machine that stops).
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class MemberConfig:
    """``assignors`` by their names on the wire; times in milliseconds.

    With the protocol ``consumer`` (KIP-848) the broker decides about sessions and heartbeats, and ``assignors`` are
    those of the broker. A topic that begins with ``^`` is a regular expression, then for the broker to resolve.
    """

    library: str
    bootstrap: str
    group: str
    topics: tuple[str, ...]
    name: str
    assignors: tuple[str, ...] = ("range",)
    instance_id: str | None = None
    session_timeout_ms: int = 6_000
    poll_interval_ms: int = 8_000
    heartbeat_ms: int = 500
    api_version: str | None = None  #: kafka-python only: speak as to a broker of that release
    protocol: str = "classic"


def tell(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


class Client(Protocol):
    """A library behind the few calls that the scenarios need; ``poll`` blocks for at most a tenth of a second."""

    slow: float

    def poll(self) -> None: ...
    def owned(self) -> Iterable[tuple[str, int]]: ...
    def subscribe(self, topics: list[str]) -> None: ...
    def unsubscribe(self) -> None: ...
    def close(self) -> None: ...


class _Consuming:
    """What the consumers of all libraries have in common."""

    _consumer: Any

    def owned(self) -> Iterable[tuple[str, int]]:
        return [(part.topic, part.partition) for part in self._consumer.assignment()]

    def unsubscribe(self) -> None:
        self._consumer.unsubscribe()

    def close(self) -> None:
        self._consumer.close()


def _python_settings(config: MemberConfig) -> dict[str, Any]:
    """Settings that kafka-python and aiokafka give the same names."""
    return {
        "bootstrap_servers": config.bootstrap,
        "group_id": config.group,
        "client_id": config.name,
        "group_instance_id": config.instance_id,
        "session_timeout_ms": config.session_timeout_ms,
        "max_poll_interval_ms": config.poll_interval_ms,
        "heartbeat_interval_ms": config.heartbeat_ms,
        "auto_offset_reset": "earliest",
        "metadata_max_age_ms": 1_000,
    }


class Confluent(_Consuming):
    def __init__(self, config: MemberConfig) -> None:
        from confluent_kafka import Consumer  # noqa: PLC0415

        settings: dict[str, Any] = {
            "bootstrap.servers": config.bootstrap,
            "group.id": config.group,
            "client.id": config.name,
            "max.poll.interval.ms": config.poll_interval_ms,
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1_000,
        }
        if config.protocol == "consumer":
            settings |= {"group.protocol": "consumer", "group.remote.assignor": config.assignors[0]}
        else:
            settings |= {
                "session.timeout.ms": config.session_timeout_ms,
                "heartbeat.interval.ms": config.heartbeat_ms,
                "partition.assignment.strategy": ",".join(config.assignors),
            }
        if config.instance_id is not None:
            settings["group.instance.id"] = config.instance_id
        self.slow = 0.0
        self._cooperative = config.protocol == "consumer" or "cooperative-sticky" in config.assignors
        self._consumer = Consumer(settings)
        self.subscribe(list(config.topics))

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics, on_assign=self._assigned, on_revoke=self._revoked)

    def _assigned(self, consumer: Any, partitions: list[Any]) -> None:
        time.sleep(self.slow)
        (consumer.incremental_assign if self._cooperative else consumer.assign)(partitions)

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        time.sleep(self.slow)
        if self._cooperative:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def poll(self) -> None:
        message = self._consumer.poll(0.1)
        if message is not None and message.error():
            tell("error", text=str(message.error()))


class KafkaPython(_Consuming):
    def __init__(self, config: MemberConfig) -> None:
        from kafka import ConsumerRebalanceListener, KafkaConsumer  # noqa: PLC0415

        outer = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                time.sleep(outer.slow)

            def on_partitions_assigned(self, assigned: Any) -> None:
                time.sleep(outer.slow)

        self.slow = 0.0
        self._listener = Listener()
        self._consumer = KafkaConsumer(
            **_python_settings(config),
            partition_assignment_strategy=tuple(_kafka_python_assignors()[name] for name in config.assignors),
            api_version=tuple(map(int, config.api_version.split("."))) if config.api_version else None,
        )
        self.subscribe(list(config.topics))

    def subscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics=topics, listener=self._listener)

    def poll(self) -> None:
        self._consumer.poll(timeout_ms=100)


def _kafka_python_assignors() -> dict[str, Any]:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor  # noqa: PLC0415
    from kafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: PLC0415
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: PLC0415

    return {
        "range": RangePartitionAssignor,
        "roundrobin": RoundRobinPartitionAssignor,
        "sticky": StickyPartitionAssignor,
        "cooperative-sticky": CooperativeStickyAssignor,
    }


class AioKafka(_Consuming):
    """Runs its event loop only while it is asked to do something, and all of the time of a ``stall``."""

    def __init__(self, config: MemberConfig) -> None:
        from aiokafka import AIOKafkaConsumer  # noqa: PLC0415
        from aiokafka.abc import ConsumerRebalanceListener  # noqa: PLC0415
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor  # noqa: PLC0415
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor  # noqa: PLC0415
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor  # noqa: PLC0415

        outer = self

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            async def on_partitions_revoked(self, revoked: Any) -> None:
                await asyncio.sleep(outer.slow)

            async def on_partitions_assigned(self, assigned: Any) -> None:
                await asyncio.sleep(outer.slow)

        known = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        self.slow = 0.0
        self.loop = asyncio.new_event_loop()
        self._listener = Listener()

        async def start() -> Any:
            consumer = AIOKafkaConsumer(
                **_python_settings(config),
                rebalance_timeout_ms=config.poll_interval_ms,
                partition_assignment_strategy=tuple(known[name] for name in config.assignors),
            )
            consumer.subscribe(topics=list(config.topics), listener=self._listener)
            await consumer.start()
            return consumer

        self._consumer = self.loop.run_until_complete(start())

    async def _resubscribe(self, topics: list[str]) -> None:
        self._consumer.subscribe(topics=topics, listener=self._listener)

    def subscribe(self, topics: list[str]) -> None:
        self.loop.run_until_complete(self._resubscribe(topics))

    def poll(self) -> None:
        self.loop.run_until_complete(self._consumer.getmany(timeout_ms=100))

    def sleep(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def unsubscribe(self) -> None:
        async def run() -> None:
            self._consumer.unsubscribe()

        self.loop.run_until_complete(run())

    def close(self) -> None:
        self.loop.run_until_complete(self._consumer.stop())


LIBRARIES: dict[str, Callable[[MemberConfig], Client]] = {
    "confluent-kafka": Confluent,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}


class Commands:
    """The lines of standard input that have come so far."""

    def __init__(self) -> None:
        self._rest = b""

    def next(self, wait: float) -> str | None:
        """The next line, None if there is none yet; ``close`` at the end of the input."""
        while b"\n" not in self._rest:
            if not select.select([0], [], [], wait)[0]:
                return None
            chunk = os.read(0, 4096)
            if not chunk:
                return "close"
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()


def _command(client: Client, line: str) -> bool:
    """Do what a line says; False when the member is to end."""
    word, _, rest = line.strip().partition(" ")
    if word == "subscribe":
        client.subscribe(rest.split(","))
    elif word == "stall":
        getattr(client, "sleep", time.sleep)(float(rest))
    elif word == "slow":
        client.slow = float(rest)
    elif word == "unsubscribe":
        client.unsubscribe()
    else:
        return False
    return True


def run(config: MemberConfig) -> None:
    client = LIBRARIES[config.library](config)
    commands = Commands()
    tell("ready")
    owned: list[tuple[str, int]] | None = None
    subscribed, alive = True, True
    while alive:
        try:
            if subscribed:
                client.poll()
            now = sorted(client.owned())
            if now != owned:
                owned = now
                tell("assigned", partitions=owned)
        except Exception as error:  # whatever the library raises is part of the scenario
            tell("error", text=f"{type(error).__name__}: {error}")
            time.sleep(0.1)
        line = commands.next(0 if subscribed else 0.1)
        if line is not None:
            alive = _command(client, line)
            subscribed = line.startswith("subscribe") or (subscribed and not line.startswith("unsubscribe"))
    client.close()
    tell("closed")


if __name__ == "__main__":
    run(TypeAdapter(MemberConfig).validate_json(sys.argv[1]))
