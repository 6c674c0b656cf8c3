"""The stage of a scenario: its own group and recorder, and members that are child processes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from fencepost.wire.frames import RequestHeader
from fencepost_conformance.common.addresses import Address
from fencepost_conformance.targets.broker import Broker

from .asking import create_topic, describe, monitor
from .config import MemberConfig

#: Time limit for everything that must happen in a scenario, in seconds.
PATIENCE = 60.0

JAVA_ASSIGNORS = {
    "range": "RangeAssignor",
    "roundrobin": "RoundRobinAssignor",
    "sticky": "StickyAssignor",
    "cooperative-sticky": "CooperativeStickyAssignor",
}

#: Assignors of members with another protocol than their scenario.
USUAL_ASSIGNORS = {"classic": ("range",), "consumer": ("uniform",)}


class Stuck(Exception):
    """The scenario did not do what it must; its recording is discarded."""


@dataclass(frozen=True, slots=True)
class Java:
    """How to run the Java member: the program, and the class path with its compiled class."""

    program: str
    class_path: str


def java_command(java: Java, config: MemberConfig) -> list[str]:
    package = "org.apache.kafka.clients.consumer."
    properties: dict[str, Any] = {
        "bootstrap.servers": config.bootstrap,
        "group.id": config.group,
        "group.protocol": config.protocol,
        "client.id": config.name,
        "max.poll.interval.ms": config.poll_interval_ms,
        "auto.offset.reset": config.reset,
        "enable.auto.commit": str(config.auto_commit).lower(),
        "auto.commit.interval.ms": 700,
        "metadata.max.age.ms": 1_000,
        "default.api.timeout.ms": 10_000,
    }
    if config.protocol == "consumer":
        properties["group.remote.assignor"] = config.assignors[0]
    else:
        properties |= {
            "session.timeout.ms": config.session_timeout_ms,
            "heartbeat.interval.ms": config.heartbeat_ms,
            "partition.assignment.strategy": ",".join(package + JAVA_ASSIGNORS[name] for name in config.assignors),
        }
    if config.instance_id is not None:
        properties["group.instance.id"] = config.instance_id
    options = ["-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    if config.transactional_id is not None:
        properties["transactional.id"] = config.transactional_id
    pairs = [f"{name}={value}" for name, value in properties.items()]
    return [java.program, *options, "-cp", java.class_path, "Member", ",".join(config.topics), *pairs]


@dataclass(slots=True)
class Player:
    """One running member."""

    config: MemberConfig
    process: asyncio.subprocess.Process
    owned: tuple[tuple[str, int], ...] = ()
    errors: list[str] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    readers: list[asyncio.Task[None]] = field(default_factory=list)
    last_words: str = ""  #: the last line of its standard error
    assignments: int = 0  #: number of its assignment events
    read: int = 0  #: records received
    done: int = 0  #: offset commands that succeeded or failed

    async def listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if not line.startswith(b"{"):
                continue
            event = json.loads(line)
            async with self.changed:
                if event["event"] == "assigned":
                    self.owned = tuple((topic, number) for topic, number in event["partitions"])
                    self.assignments += 1
                elif event["event"] == "read":
                    self.read = event["count"]
                elif event["event"] == "done":
                    self.done += 1
                elif event["event"] == "error":
                    self.errors.append(event["text"])
                    self.done += 1
                self.changed.notify_all()
        async with self.changed:
            self.owned = ()
            self.changed.notify_all()

    async def overhear(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.last_words = line.decode(errors="replace").strip()

    async def say(self, command: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(command.encode() + b"\n")
        await self.process.stdin.drain()

    async def does(self, command: str) -> None:
        """Let it carry out an offset command, and wait until it succeeded or failed."""
        before = self.done
        await self.say(command)
        async with self.changed:
            await _patiently(self.changed.wait_for(lambda: self.done > before), f"{command} does not end")

    async def reads(self, count: int) -> None:
        """Wait until it has read so many records in total."""
        async with self.changed:
            await _patiently(
                self.changed.wait_for(lambda: self.read >= count), f"{self.config.name} read {self.read} of {count}"
            )

    async def owns(self, number: int | None = None) -> None:
        """Wait until it owns exactly so many partitions, or (None) any."""

        def there() -> bool:
            return bool(self.owned) if number is None else len(self.owned) == number

        async with self.changed:
            await _patiently(self.changed.wait_for(there), f"{self.config.name} owns {self.owned}, expected {number}")

    async def fails(self) -> None:
        """Wait until the library raised an exception, or the process ended."""
        async with self.changed:
            await _patiently(
                self.changed.wait_for(lambda: bool(self.errors) or self.process.returncode is not None),
                f"{self.config.name} did not fail",
            )

    def crash(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        """Close as the library does, and wait for the end."""
        with contextlib.suppress(ConnectionError):
            await self.say("close")
        await self.ended()

    async def ended(self) -> None:
        await _patiently(self.process.wait(), f"{self.config.name} does not end")


async def _patiently(waiting: Any, complaint: str) -> None:
    try:
        await asyncio.wait_for(waiting, PATIENCE)
    except TimeoutError:
        raise Stuck(complaint) from None


@dataclass(slots=True)
class Stage:
    """``library``, ``assignors`` and ``protocol`` are defaults of its members."""

    bootstrap: str
    group: str
    topics: dict[str, int]  #: name -> partitions
    library: str
    assignors: tuple[str, ...]
    java: Java | None
    protocol: str = "classic"
    players: list[Player] = field(default_factory=list)
    broker: Broker | None = None  #: if the scenario has its own
    _fates: dict[tuple[str, str, str], int] = field(default_factory=dict)

    @property
    def topic(self) -> str:
        return next(iter(self.topics))

    def crash_at(self, name: str, kind: str, api: str, count: int) -> None:
        """Kill the member of that name when its count-th request of an API is ``sent``, or answered (``received``).

        It is killed before the recorder passes the request on to the broker, which still gets it, or before the
        recorder passes the answer on to the member, which never gets it.
        """
        self._fates[name, kind, api] = count

    def watch(self, kind: str, header: RequestHeader) -> None:
        """Look at each message that passes the recorder."""
        key = header.client_id or "", kind, header.api
        if key in self._fates:
            self._fates[key] -= 1
            if self._fates[key] == 0:
                next(player for player in self.players if player.config.name == key[0]).crash()

    async def administer(self, *words: str) -> None:
        """Run an administrator's action through the recorder; see ``admin.py``."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", f"{__package__}.admin", self.bootstrap, *words, stderr=asyncio.subprocess.DEVNULL
        )
        await _patiently(process.wait(), f"the administrator does not end: {words}")

    @property
    def _address(self) -> Address:
        host, _, port = self.bootstrap.rpartition(":")
        return Address(host, int(port))

    async def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic through the recorder, so that the trace contains the topic's id."""
        await asyncio.to_thread(create_topic, self._address, name, partitions)
        self.topics[name] = partitions

    async def fill(self, count: int, topic: str | None = None) -> None:
        """Write so many records to each partition of the topic."""
        topic = topic or self.topic
        await self.administer("fill", topic, str(self.topics[topic]), str(count))

    async def restart_broker(self) -> None:
        """Kill the broker and start it again with its stored data."""
        assert self.broker is not None
        await asyncio.to_thread(self.broker.restart)

    async def describe(self) -> None:
        """Let an administrator request the consumer group's description."""
        await asyncio.to_thread(describe, self._address, self.group)

    async def monitor(self) -> None:
        """Let an administrator's tool inspect the group; see ``asking.monitor``."""
        await asyncio.to_thread(monitor, self._address, self.group)

    async def member(
        self,
        name: str,
        *,
        library: str | None = None,
        topics: Sequence[str] | None = None,
        assignors: tuple[str, ...] | None = None,
        instance_id: str | None = None,
        session_timeout_ms: int = 6_000,
        poll_interval_ms: int = 8_000,
        api_version: str | None = None,
        protocol: str | None = None,
        auto_commit: bool = True,
        reset: str = "earliest",
        transactional_id: str | None = None,
    ) -> Player:
        """Start a member; it joins by itself."""
        protocol = protocol or self.protocol
        usual = self.assignors if protocol == self.protocol else USUAL_ASSIGNORS[protocol]
        config = MemberConfig(
            library=library or self.library,
            bootstrap=self.bootstrap,
            group=self.group,
            topics=tuple(topics or [self.topic]),
            name=name,
            assignors=assignors or usual,
            instance_id=instance_id,
            session_timeout_ms=session_timeout_ms,
            poll_interval_ms=poll_interval_ms,
            api_version=api_version,
            protocol=protocol,
            auto_commit=auto_commit,
            reset=reset,
            transactional_id=transactional_id,
        )
        if config.library == "java":
            if self.java is None:
                raise Stuck("no Java client")
            command = java_command(self.java, config)
        else:
            command = [sys.executable, "-m", f"{__package__}.member", json.dumps(asdict(config))]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        player = Player(config, process)
        player.readers = [asyncio.create_task(player.listen()), asyncio.create_task(player.overhear())]
        self.players.append(player)
        return player

    def _gone(self) -> str | None:
        """Return a sentence about a member that ended without a command to, or None."""
        for player in self.players:
            if player.process.returncode not in (None, 0, -signal.SIGKILL):
                return f"{player.config.name} ended with status {player.process.returncode}: {player.last_words}"
        return None

    async def settled(self, *players: Player, topics: Sequence[str] | None = None, partitions: int = 0) -> None:
        """Wait until these members own all partitions of the topics, each partition once, and each member has one.

        ``partitions`` is for topics that have got more partitions.
        """
        counts = {topic: partitions or self.topics[topic] for topic in topics or [self.topic]}
        wanted = sorted((topic, n) for topic, count in counts.items() for n in range(count))

        async def watch() -> None:
            while not all(player.owned for player in players) or wanted != sorted(
                part for player in players for part in player.owned
            ):
                if (gone := self._gone()) is not None:
                    raise Stuck(gone)
                await asyncio.sleep(0.05)

        await _patiently(watch(), f"{[(player.config.name, player.owned, player.errors) for player in players]}")

    async def clear(self) -> None:
        """End all processes that still run."""
        for player in self.players:
            if player.process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    player.process.kill()
            await player.process.wait()
            await asyncio.gather(*player.readers)
