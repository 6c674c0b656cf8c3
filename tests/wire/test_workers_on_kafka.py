"""Workers of this library on a broker of Kafka: they log in, share a topic, join, leave, crash, and continue at their
commits; logins that expire are renewed meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from fencepost.protocol.partitions import TopicPartition
from fencepost.remote import Groups, Refused, Sasl
from fencepost.remote.connection import Connection
from fencepost.work import Share, ShareLost, Worker
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.targets.broker import Broker
from fencepost_conformance.targets.jvm import jars
from fencepost_conformance.targets.jvm.releases import broker_artifacts

pytestmark = [pytest.mark.broker, pytest.mark.slow]
RELEASE = "4.4.0"
PARTITIONS = 6
ALICE, BOB = Sasl("alice", "in the clear", "PLAIN"), Sasl("bob", "s,a=lted", "SCRAM-SHA-256")
_MODULES = "org.apache.kafka.common.security"
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "connections.max.reauth.ms": "1500",
    "listener.name.plaintext.plain.sasl.jaas.config": f"{_MODULES}.plain.PlainLoginModule required "
    f'username="{ALICE.username}" password="{ALICE.password}" user_{ALICE.username}="{ALICE.password}";',
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": f"{_MODULES}.scram.ScramLoginModule required;",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
}
OPTIONS: dict[str, dict[str, Any]] = {
    "consumer": {"protocol": "consumer"},
    "classic": {"protocol": "classic", "session_timeout_ms": 1_500, "heartbeat_interval_ms": 200},
}


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """Return the address of a broker that requires a login, with its topic; bob may log in too."""
    admin = pytest.importorskip("confluent_kafka.admin", reason="needs confluent-kafka: pip install -e '.[clients]'")
    try:
        jars.fetch(*broker_artifacts(RELEASE))
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with Broker(RELEASE, initial_rebalance_delay_ms=0, settings=SETTINGS) as running:
        client = admin.AdminClient(
            {
                "bootstrap.servers": running.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": ALICE.mechanism,
                "sasl.username": ALICE.username,
                "sasl.password": ALICE.password,
            }
        )
        for done in client.create_topics([admin.NewTopic("orders", PARTITIONS)]).values():
            done.result(120)
        bob = admin.UserScramCredentialUpsertion(
            BOB.username, admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_256, 4_096), BOB.password.encode()
        )
        for done in client.alter_user_scram_credentials([bob]).values():
            done.result(120)
        asyncio.run(known(running.bootstrap))
        yield running.bootstrap


async def known(bootstrap: str) -> None:
    """Wait until the broker has learned of bob from its controller."""
    async with asyncio.timeout(30):
        while True:
            with suppress(Refused):
                async with Groups(bootstrap, sasl=BOB):
                    return
            await asyncio.sleep(0.1)


class Crew:
    """The work of the workers: the progress of each partition, its worker, and partitions on which two worked at a
    time."""

    def __init__(self) -> None:
        self.done = {TopicPartition("orders", number): 0 for number in range(PARTITIONS)}
        self.busy: dict[TopicPartition, str] = {}
        self.wrong: list[str] = []

    async def works(self, name: str, worker: Worker) -> None:
        """Continue at the commit, and commit each step."""
        async for share in worker:
            at = await share.committed()
            for each in share:
                if (other := self.busy.setdefault(each, name)) != name:
                    self.wrong.append(f"{each} of {other} is worked on by {name}")
                if at.get(each, 0) < self.done[each]:
                    self.wrong.append(f"{each} is at {at.get(each, 0)}, and {self.done[each]} was committed")
            with suppress(ShareLost):
                await self._steps(share, at)
            for each in share:
                if self.busy.get(each) == name:
                    del self.busy[each]

    async def _steps(self, share: Share, at: dict[TopicPartition, int]) -> None:
        while await share.rest(0.05):
            at |= {each: at.get(each, 0) + 1 for each in share}
            await share.commit({each: at[each] for each in share})
            for each in share:
                self.done[each] = max(self.done[each], at[each])

    def holds(self, name: str) -> int:
        """Return the number of partitions that it works on."""
        return sum(who == name for who in self.busy.values())

    async def until(self, *shares: tuple[str, int]) -> None:
        """Wait until these workers have so many partitions, and each partition has advanced."""
        async with asyncio.timeout(30):
            while any(self.holds(name) != number for name, number in shares):
                await asyncio.sleep(0.02)
            before = dict(self.done)
            while any(self.done[each] <= before[each] for each in before):
                await asyncio.sleep(0.02)


@pytest.mark.parametrize(("protocol", "sasl"), [("consumer", BOB), ("classic", ALICE)])
def test_workers_share_work_through_kafka(
    broker: str, protocol: str, sasl: Sasl, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins: list[int] = []  # of connections
    dropped: list[str] = []  # a broker disconnects a client that does not renew its login
    logs_in, exchanges = Connection._log_in, Connection._exchange

    async def counted(connection: Connection) -> None:
        logins.append(id(connection))
        await logs_in(connection)

    async def watched(connection: Connection, *asked: Any) -> Any:
        try:
            return await exchanges(connection, *asked)
        except ConnectionError as gone:
            dropped.append(str(gone))
            raise

    monkeypatch.setattr(Connection, "_log_in", counted)
    monkeypatch.setattr(Connection, "_exchange", watched)

    async def story() -> Crew:
        crew = Crew()
        group = f"{protocol}-{sasl.username}"
        async with (
            Groups(broker, sasl=sasl) as groups,
            asyncio.TaskGroup() as running,
            groups.worker(group, re.compile("ord.rs"), **OPTIONS[protocol]) as one,
        ):
            running.create_task(crew.works("one", one))
            await crew.until(("one", 6))
            async with groups.worker(group, ["orders"], **OPTIONS[protocol]) as two:
                running.create_task(crew.works("two", two))
                await crew.until(("one", 3), ("two", 3))
                two.crash()
                for each in [each for each, who in crew.busy.items() if who == "two"]:
                    del crew.busy[each]
            await crew.until(("one", 6))
            async with groups.worker(group, ["orders"], **OPTIONS[protocol]) as three:
                running.create_task(crew.works("three", three))
                await crew.until(("one", 3), ("three", 3))
                await one.leave()
                await crew.until(("three", 6))
        return crew

    assert asyncio.run(story()).wrong == []
    assert max(Counter(logins).values()) > 1
    assert [each for each in dropped if "the broker closed the connection" in each] == []


def test_a_wrong_password_is_reported(broker: str) -> None:
    async def tries(sasl: Sasl) -> None:
        async with Groups(broker, sasl=sasl):
            pass

    for sasl in (Sasl("alice", "guess", "PLAIN"), Sasl("bob", "guess", "SCRAM-SHA-256")):
        with pytest.raises(Refused, match=f"rejects the login of {sasl.username}: Authentication failed"):
            asyncio.run(tries(sasl))
    with pytest.raises(Refused, match="does not support SASL mechanism SCRAM-SHA-512; it supports "):
        asyncio.run(tries(Sasl("bob", "guess")))
