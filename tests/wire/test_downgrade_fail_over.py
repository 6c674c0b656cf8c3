"""A downgrade, and a restart of the broker before the members rejoin, on a whole Kafka broker with real clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.clients, pytest.mark.slow, pytest.mark.all]

#: interval of the classic member's heartbeats: time to restart the broker before it learns of the rebalance, in s
BEAT_S = 12.0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    try:
        started = Broker("4.4.0", initial_rebalance_delay_ms=0).start()
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    try:
        for topic in ("t", "u"):
            started.create_topic(topic)
        yield started
    finally:
        started.stop()


def consumer(broker: Broker, group: str, protocol: str, *topics: str, **more: object) -> Any:
    from confluent_kafka import Consumer  # noqa: PLC0415

    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol, "log_level": 0}
    made = Consumer({**settings, **more})
    made.subscribe(list(topics))
    return made


def polled(seconds: float, *consumers: Any, until: Callable[..., bool]) -> bool:
    """Poll the consumers for a while; return whether ``until`` came true of them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for each in consumers:
            each.poll(0.1)
        if until(*consumers):
            return True
    return False


def owned(*consumers: Any) -> set[str]:
    return {each.topic for member in consumers for each in member.assignment()}


def state(broker: Broker, group: str) -> tuple[str, str]:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    row = admin.describe_consumer_groups([group], request_timeout=20)[group].result()
    return row.type.name, row.state.name


@pytest.mark.parametrize("restarts", [False, True], ids=["no restart", "restart"])
def test_a_restart_ends_the_rebalance_of_a_downgrade(broker: Broker, restarts: bool) -> None:
    """X-DOWN-06; ``docs/findings/consumer/downgrade-rebalance-lost-by-fail-over.jsonl``.
    A leave downgrades the group."""
    group = f"restarts-{restarts}"
    slow = {"partition.assignment.strategy": "range", "heartbeat.interval.ms": int(1_000 * BEAT_S)}
    leaver = consumer(broker, group, "consumer", "t")
    with closing(consumer(broker, group, "classic", "t", "u", **slow)) as stays:
        assert polled(30, leaver, until=lambda each: owned(each) == {"t"})
        assert polled(45, leaver, stays, until=lambda *both: [owned(each) for each in both] == [{"t"}, {"u"}])
        leaver.close()
        assert state(broker, group) == ("CLASSIC", "PREPARING_REBALANCING")
        if not restarts:
            assert polled(3 * BEAT_S, stays, until=lambda each: owned(each) == {"t", "u"})
            return
        broker.restart(cleanly=True)
        assert not polled(3 * BEAT_S, stays, until=lambda each: owned(each) != {"u"})
        assert state(broker, group) == ("CLASSIC", "STABLE")
        with closing(consumer(broker, group, "classic", "t", "u", **slow)) as comes:
            assert polled(4 * BEAT_S, stays, comes, until=lambda *both: owned(*both) == {"t", "u"})
