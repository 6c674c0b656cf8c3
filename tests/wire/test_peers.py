"""The drivers of foreign clients (``conformance/peers``) on ``fencepost serve``: each reads what was produced, two of
them share the partitions, each leaves its group on SIGTERM, and says with exit status 64 what it does not have."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from served import Served

from fencepost_conformance.run.matrix.clients import (
    ASSIGNORS,
    COMMITS,
    PROTOCOLS,
    Client,
    environment,
    installed,
    peers_folder,
    read_clients,
)

pytestmark = pytest.mark.clients
CLIENTS = read_clients(peers_folder())
PARTITIONS = {("orders", number) for number in range(4)}
RECORDS = {("orders", number, offset) for number in range(4) for offset in range(2)}
COMMITTED = {(*each, 2) for each in PARTITIONS}
#: far beyond the test, so that a group that is empty at its end was left
SESSION_MS = 30_000
WAIT_S = 60


def of_each(*, protocols: bool) -> list[Any]:
    """Return a parameter for each client (and protocol); those beside Python's run in ``make test-all``."""
    return [
        pytest.param(
            *((client, protocol) if protocols else (client,)),
            id=f"{client.name}-{protocol}" if protocols else client.name,
            marks=[] if client.language == "Python" else pytest.mark.all,
        )
        for client in CLIENTS
        for protocol in (client.protocols if protocols else PROTOCOLS[:1])
    ]


@cache
def require(client: Client) -> None:
    here = installed(client)
    if not here.version:
        pytest.skip(here.reason)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    quick = {
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "group.consumer.heartbeat.interval.ms": 500,
    }
    options = [word for name, value in quick.items() for word in ("--setting", f"{name}={value}")]
    with Served(*options, topics=("orders:4",)) as server:
        yield server


@pytest.fixture(scope="module")
def admin(served: Served) -> Any:
    """Produce two records to each partition."""
    confluent = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install -e '.[clients]'")
    producer = confluent.Producer({"bootstrap.servers": served.bootstrap})
    for number in range(8):
        producer.produce("orders", b"value", partition=number % 4)
    assert producer.flush(WAIT_S) == 0
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    return AdminClient({"bootstrap.servers": served.bootstrap})


class Driver:
    """One process of a driver. Its events are read while it runs. ``out``: a new file for them."""

    def __init__(self, out: Path, client: Client, *options: str) -> None:
        self._out, self._errors = out, out.with_suffix(".err")
        command = [*client.command, *options]
        with self._out.open("w") as events, self._errors.open("w") as errors:
            self.process = subprocess.Popen(command, stdout=events, stderr=errors, env=environment())

    @property
    def errors(self) -> str:
        return self._errors.read_text()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._out.read_text().split("\n")[:-1]]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [each for each in self.events() if each["event"] == event]

    def held(self) -> set[tuple[str, int]]:
        """The partitions that the events leave the member with."""
        held: set[tuple[str, int]] = set()
        for each in self.events():
            named = {(topic, number) for topic, number in each.get("partitions", ())}
            if each["event"] == "assigned":
                held |= named
            elif each["event"] in ("revoked", "lost"):
                held -= named
        return held

    def processed(self) -> list[tuple[str, int, int]]:
        return [(each["topic"], each["partition"], each["offset"]) for each in self.of("processed")]

    def stop(self) -> None:
        """End it by SIGTERM and expect a clean end."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(WAIT_S) == 0, self.errors
        assert self.events()[-1] == {"event": "closed"}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def wait_for(condition: Callable[[], bool], drivers: list[Driver]) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < until, [(each.events(), each.errors) for each in drivers]
        assert all(each.process.poll() is None for each in drivers), [each.errors for each in drivers]
        time.sleep(0.05)


@pytest.mark.parametrize(("client", "protocol"), of_each(protocols=True))
def test_a_driver_reads_shares_and_leaves(
    served: Served, admin: Any, tmp_path: Path, client: Client, protocol: str
) -> None:
    require(client)
    group = f"{client.name}-{protocol}"
    words = ["--bootstrap", served.bootstrap, "--group", group, "--topic", "orders", "--protocol", protocol]
    if protocol == "classic":
        words += ["--session-timeout", str(SESSION_MS)]
    members = [Driver(tmp_path / "first", client, *words)]
    try:
        first = members[0]
        wait_for(lambda: set(first.processed()) == RECORDS and first.held() == PARTITIONS, members)
        if "sync" not in client.unconfirmed:
            wait_for(lambda: newest_commits(first) == COMMITTED, members)
        members.append(Driver(tmp_path / "second", client, *words))
        second = members[1]
        wait_for(lambda: len(first.held()) == len(second.held()) == 2, members)
        assert first.held() | second.held() == PARTITIONS
        first.stop()
        wait_for(lambda: second.held() == PARTITIONS, [second])
        assert second.processed() == []  # it resumed where the first had committed
        second.stop()
    finally:
        for each in members:
            each.kill()
    group_described = admin.describe_consumer_groups([group])[group].result(WAIT_S)
    assert (group_described.state.name, group_described.members) == ("EMPTY", [])


def newest_commits(driver: Driver) -> set[tuple[str, int, int]]:
    newest: dict[tuple[str, int], int] = {}
    for each in driver.of("committed"):
        for topic, number, offset in each["offsets"]:
            newest[topic, number] = max(offset, newest.get((topic, number), 0))
    return {(*partition, offset) for partition, offset in newest.items()}


def lacks(client: Client) -> list[tuple[str, str]]:
    """Return each option that the client has no such thing for."""
    options = [("--assignor", each) for each in ASSIGNORS if each not in client.assignors]
    options += [("--commit", each) for each in COMMITS if each not in client.commits]
    options += [("--protocol", each) for each in PROTOCOLS if each not in client.protocols]
    return options if client.static else [*options, ("--instance-id", "worker-1")]


@pytest.mark.parametrize("client", of_each(protocols=False))
def test_a_driver_refuses_what_its_client_does_not_have(client: Client) -> None:
    require(client)
    for option in lacks(client):
        command = [*client.command, "--bootstrap", "127.0.0.1:1", "--group", "g", "--topic", "t", *option]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, env=environment(), check=False)
        assert (ended.returncode, ended.stdout) == (64, ""), (option, ended)
        assert len(ended.stderr.splitlines()) == 1, ended.stderr


@pytest.mark.all
@pytest.mark.parametrize("client", of_each(protocols=False))
def test_a_driver_joins_with_each_assignor_and_way_to_commit(
    served: Served, admin: Any, tmp_path: Path, client: Client
) -> None:
    require(client)
    options = [["--assignor", each] for each in client.assignors] + [["--commit", each] for each in client.commits]
    options += [["--instance-id", "worker-1"]] if client.static else []
    words = ["--bootstrap", served.bootstrap, "--topic", "orders", "--group"]
    members = [
        Driver(tmp_path / f"{at}", client, *words, f"{client.name}{''.join(option)}", *option)
        for at, option in enumerate(options)
    ]
    try:
        for option, member in zip(options, members, strict=True):
            wait_for(lambda member=member: set(member.processed()) == RECORDS, [member])  # type: ignore[misc]
            if option[0] == "--commit" and option[1] not in client.unconfirmed:
                wait_for(lambda member=member: newest_commits(member) == COMMITTED, [member])  # type: ignore[misc]
        for each in members:
            each.stop()
    finally:
        for each in members:
            each.kill()
