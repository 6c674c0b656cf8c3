"""The stage of a case: a broker with trouble, and the processes of the client, each behind its own recorder."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self
from uuid import uuid4

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatResponse
from fencepost.protocol.embedded import decode_assignment
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import SyncGroupResponse
from fencepost.protocol.settings import Settings
from fencepost_server.faults import Fault, Plan
from fencepost_server.options import Address as Listen
from fencepost_server.options import Limits, Options
from fencepost_server.run import Ready, Setup, serve

from ...common.addresses import Address
from ...traces.convert import wire_response
from ...traces.files import WireTrace, read_stream
from ...traces.lines import API_OF_KEY, Line, ReceivedLine, SentLine, parse_line
from ...traces.recorder.journal import Journal
from ...traces.recorder.proxy import Proxy
from ...traces.wire.access import OPEN
from ...traces.wire.settings import Known
from ..cases.answers import NotSupported
from ..cases.peer import NotReached
from ..server.script import Records, batch
from .companion import Companion
from .process import NOT_SUPPORTED, ClientProcess, Said, filled
from .relay import Relay

#: how long a case waits for something that the client must do
PATIENCE_S: Final = 40.0
#: the session timeout of members
SESSION_MS: Final = 6_000
_TICK_S: Final = 0.05
#: kio's names of APIs by key, for what cases wait for
NAMES: Final = {1: "Fetch", 8: "OffsetCommit", 9: "OffsetFetch", 10: "FindCoordinator", **API_OF_KEY}
_ASSIGNING: Final = ("SyncGroup", "ConsumerGroupHeartbeat")
#: the broker's node id
_NODE: Final = 1
#: how many records a case writes to each partition at a time
RECORDS: Final = 5
#: how often a new topic is looked up until it has leaders
_LED_TRIES: Final = 200


@dataclass(frozen=True, slots=True)
class ClientUnderTest:
    """The words of the command, the session timeout that members use, and how long a case waits for something that the
    client must do; to close, it has half as much again, since a request may have to time out. ``broker``: the broker
    that takes the place of the bundled one; it must have the settings of ``settings_for``."""

    words: tuple[str, ...]
    session_ms: int = SESSION_MS
    patience_s: float = PATIENCE_S
    broker: Address | None = None


def settings_for(session_ms: int = SESSION_MS) -> Settings:
    """Return the broker's settings for cases whose members have this session timeout."""
    return Settings(
        group_min_session_timeout_ms=min(1_000, session_ms),
        group_initial_rebalance_delay_ms=0,
        group_consumer_session_timeout_ms=session_ms,
        group_consumer_min_session_timeout_ms=min(1_000, session_ms),
        group_consumer_heartbeat_interval_ms=max(100, session_ms // 8),
        group_consumer_min_heartbeat_interval_ms=100,
        group_consumer_assignment_interval_ms=0,
    )


@dataclass(frozen=True, slots=True)
class Unkept(Exception):
    """The client did not do what the case expects. ``sent``: what it did; ``may``: what was expected."""

    run: str
    sent: str
    may: str

    def __str__(self) -> str:
        return f"{self.sent}; expected {self.may}"


@dataclass(slots=True)
class ClientRun:
    """One process of the client. ``lines``: what its recorder saw so far. ``closing_s``: when it was asked to
    close."""

    name: str
    process: ClientProcess
    began_s: float
    patience_s: float
    text: list[str]
    lines: list[Line] = field(default_factory=list)
    closing_s: float | None = None
    closed: bool | None = None

    @property
    def said(self) -> list[Said]:
        """The events that the client wrote."""
        return self.process.said

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the events of this kind that the client said."""
        return [each.values for each in self.said if each.event == event]

    def sent(self, api: str, **wanted: Any) -> list[SentLine]:
        """Return the requests of an API, by Kafka's name, whose bodies have these values."""
        return [
            line
            for line in self._known()
            if isinstance(line, SentLine) and NAMES.get(line.api_key) == api and _has(line.body, wanted)
        ]

    def received(self, api: str, **wanted: Any) -> list[ReceivedLine]:
        """Return the answers of an API whose bodies have these values."""
        return [
            line
            for line in self._known()
            if isinstance(line, ReceivedLine) and NAMES.get(line.api_key) == api and _has(line.body, wanted)
        ]

    def _known(self) -> list[Line]:
        while len(self.lines) < len(self.text):
            self.lines.append(parse_line(self.text[len(self.lines)]))
        return self.lines

    async def until(
        self, holds: Callable[[], object], expected: str, *, reached: bool = False, may_end: bool = False
    ) -> None:
        """Wait until something holds. ``expected``: what, in words. Raises ``Unkept`` if it does not come; with
        ``reached``, it only leads to what the case tests, so ``NotReached``. ``may_end``: the client may end
        instead."""
        deadline = time.monotonic() + self.patience_s
        while not holds():
            if (status := self.process.ended) is not None and self.closing_s is None:
                if may_end:
                    return
                await self.process.read_out()
                self._died(status, expected)
            if time.monotonic() > deadline:
                text = f"{self.name} did nothing of the kind for {self.patience_s:g} s"
                if reached or not self.sent("FindCoordinator"):
                    raise NotReached(f"{text}: {expected}{self.process.last_words}")
                raise Unkept(self.name, text, expected)
            await asyncio.sleep(_TICK_S)

    def _died(self, status: int, expected: str) -> None:
        words = self.process.last_words
        if status == NOT_SUPPORTED:
            raise NotSupported(f"the client says that it lacks what the case needs{words}")
        if self.process.flooded:
            raise NotReached("the client wrote more than 16 MiB, or a line without an end, and was ended")
        if not self.sent("FindCoordinator"):
            raise NotReached(f"the command exited with status {status} before it looked for its coordinator{words}")
        raise Unkept(self.name, f"{self.name} exited with status {status}{words}", expected)

    def assignment(self) -> set[int] | None:
        """Return the partitions of the last assignment that the coordinator sent; None if it has sent none since the
        last request to join."""
        for line in reversed(self._known()):
            if isinstance(line, SentLine) and (
                NAMES.get(line.api_key) == "JoinGroup" or line.body.get("member_epoch") == 0
            ):
                return None
            if isinstance(line, ReceivedLine) and NAMES.get(line.api_key) in _ASSIGNING:
                match wire_response(line):
                    case SyncGroupResponse(error_code=ErrorCode.NONE, assignment=data):
                        return {each.partition for each in decode_assignment(data).partitions} if data else set()
                    case ConsumerGroupHeartbeatResponse(error_code=ErrorCode.NONE, assignment=rows) if rows is not None:
                        return {index for row in rows for index in row.partitions}
        return None

    def fetched(self) -> set[int]:
        """Return the partitions from which it has fetched."""
        rows: list[Any] = [topic for line in self.sent("Fetch") for topic in line.body["topics"]]  # type: ignore[union-attr]
        return {row["partition"] for topic in rows for row in topic["partitions"]}

    async def assigned(self, count: int | None = None) -> None:
        """Wait until the coordinator has assigned partitions to it: so many, or any."""

        def holds() -> bool:
            now = self.assignment()
            return bool(now) if count is None else now is not None and len(now) == count

        what = "partitions" if count is None else f"{count} partitions"
        await self.until(holds, f"a member that joins, and acts as one until it is assigned {what}")

    async def reads(self) -> None:
        """Wait until it has fetched from each partition that it is assigned."""

        def holds() -> bool:
            now = self.assignment() or set()
            return bool(now) and now <= self.fetched()

        await self.until(holds, "a Fetch from each assigned partition")

    async def commits(self, after: int = 0) -> None:
        """Wait until more than this number of its commits succeeded."""
        await self.until(lambda: len(self.good_commits()) > after, "an OffsetCommit that the coordinator accepts")

    def good_commits(self) -> list[ReceivedLine]:
        """Return the answers to OffsetCommit without an error."""
        return [line for line in self.received("OffsetCommit") if not any(_codes(line.body))]

    def last_committed(self) -> dict[int, int]:
        """Return the offset of the last good commit of each partition, of its only topic."""
        good = {(line.connection, line.correlation_id) for line in self.good_commits()}
        asked: list[Any] = [
            line.body for line in self.sent("OffsetCommit") if (line.connection, line.correlation_id) in good
        ]
        rows = [row for body in asked for topic in body["topics"] for row in topic["partitions"]]
        return {row["partition_index"]: row["committed_offset"] for row in rows}

    def first_fetched(self) -> dict[int, int]:
        """Return the offset at which it began to read each partition."""
        topics: list[Any] = [topic for line in self.sent("Fetch") for topic in line.body["topics"]]  # type: ignore[union-attr]
        found: dict[int, int] = {}
        for row in (row for topic in topics for row in topic["partitions"]):
            found.setdefault(row["partition"], row["fetch_offset"])
        return found

    async def settled(self) -> None:
        """Wait until it is assigned partitions, reads and commits."""
        await self.assigned()
        await self.reads()
        await self.commits()

    def joins(self) -> list[SentLine]:
        """Return its requests to join: JoinGroup, or a heartbeat with epoch 0."""
        return [*self.sent("JoinGroup"), *self.sent("ConsumerGroupHeartbeat", member_epoch=0)]

    async def troubled(self, *codes: ErrorCode) -> ReceivedLine:
        """Wait for the first answer with one of these errors, which the case brings about; return it. Raises
        ``NotReached``."""
        words = " or ".join(each.name for each in codes)
        await self.until(lambda: self.refusals(*codes), f"an answer {words}, which the case makes", reached=True)
        return self.refusals(*codes)[0]

    def refusals(self, *codes: ErrorCode) -> list[ReceivedLine]:
        """Return the answers that have one of these error codes anywhere."""
        numbers = {int(each) for each in codes}
        return [line for line in self._known() if isinstance(line, ReceivedLine) and numbers & _codes(line.body)]

    async def rejoins(self, after: ReceivedLine) -> None:
        """Wait until it joins again after an answer."""
        expected = "a JoinGroup, or a heartbeat with epoch 0, after this answer"
        await self.until(lambda: any(each.at_ms >= after.at_ms for each in self.joins()), expected)

    async def stays(self, seconds: float) -> None:
        """Let time pass. Raises ``Unkept`` if it joins again meanwhile: nothing gives it a reason to."""
        before = len(self.joins())
        await self.rests(seconds)
        if more := len(self.joins()) - before:
            text = f"{self.name} joined {more} more times within {seconds:g} s, though the group was stable"
            raise Unkept(self.name, text, "that a member of a stable group stays")

    async def rests(self, seconds: float, *, may_end: bool = False) -> None:
        """Let time pass. Raises ``Unkept`` if the client ends, unless it may."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (status := self.process.ended) is not None and not may_end:
                await self.process.read_out()
                self._died(status, "a client that runs until it is asked to close")
            await asyncio.sleep(_TICK_S)

    async def comes(self, holds: Callable[[], object], within_s: float) -> None:
        """Wait until something holds, the client ends, or the time is over."""
        deadline = time.monotonic() + within_s
        while not holds() and self.process.ended is None and time.monotonic() < deadline:
            await asyncio.sleep(_TICK_S)

    async def close(self) -> None:
        """Ask the client to close, and wait for its end. Raises ``Unkept`` if it does not end."""
        self.closing_s = time.monotonic()
        self.closed = await self.process.close(1.5 * self.patience_s)
        if not self.closed:
            raise Unkept(
                self.name,
                f"{self.name} was still running {1.5 * self.patience_s:g} s after SIGTERM",
                "that it closes and ends",
            )

    async def kill(self) -> None:
        """Kill the client, as a crash does."""
        self.closing_s = time.monotonic()
        await self.process.kill()

    def trace(self) -> WireTrace:
        """Return what its recorder saw."""
        (found,) = read_stream(self.name, io.BytesIO("\n".join(self.text).encode() + b"\n"))
        if not isinstance(found, WireTrace):
            raise NotReached(f"the recording of {self.name} cannot be read: {found}")
        return found

    def until_ms(self) -> int:
        """The end of the time in which it was running, in the clock of its trace."""
        return round(((self.closing_s or time.monotonic()) - self.began_s) * 1000)


def _codes(value: object) -> set[int]:
    """Return the error codes in a body."""
    if isinstance(value, list):
        return {code for each in value for code in _codes(each)}
    if not isinstance(value, dict):
        return set()
    inner = {code for each in value.values() for code in _codes(each)}
    return inner | ({value["error_code"]} if isinstance(value.get("error_code"), int) else set())


def _has(body: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(body.get(name) == value for name, value in wanted.items())


class Stage:
    """The broker and the clients of a case. ``group`` and ``topic`` belong to the case alone. ``remark``: what its
    result says although it passes."""

    def __init__(self, client: ClientUnderTest) -> None:
        self.client = client
        self.group, self.topic = f"group-{uuid4().hex[:12]}", f"topic-{uuid4().hex[:12]}"
        self.runs: list[ClientRun] = []
        self.remark = ""
        self._open = AsyncExitStack()
        self._broker = Address("", 0)  # for the suite itself
        self._address: Address | None = None  # for the recorders
        self._partitions = 0
        self._began_s = 0.0
        self.settings = Settings()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for run in self.runs:
            await run.process.kill()
        await self._open.aclose()

    @property
    def session_s(self) -> float:
        """The session timeout of members in seconds."""
        return self.client.session_ms / 1000

    async def broker(self, *faults: Fault, partitions: int = 4) -> None:
        """Start the broker with these faults, and put records into each partition of the topic."""
        self.settings = settings_for(self.client.session_ms)
        self._partitions = partitions
        if self.client.broker is None:
            self._broker = self._address = await self._bundled(faults)
        else:
            self._broker = self.client.broker
            await self._create_topic()
            relay = Relay(self._broker, faults)
            self._address = await relay.start()
            self._open.push_async_callback(relay.stop)
        self._began_s = time.monotonic()
        await self.write()

    async def _bundled(self, faults: Sequence[Fault]) -> Address:
        options = Options(
            node_id=_NODE, listen=Listen(host="127.0.0.1", port=0), offsets_partitions=4, limits=Limits(drain_s=0.2)
        )
        topics = {self.topic: self._partitions}
        setup = Setup(options=options, settings=self.settings, topics=topics, faults=Plan(tuple(faults)))
        ready = await self._open.enter_async_context(served(setup))
        return Address("127.0.0.1", ready.listen.port)

    async def _create_topic(self) -> None:
        """Create the topic on a broker of others, and wait until it is led. Raises ``NotReached``."""
        rows = [{"name": self.topic, "num_partitions": self._partitions, "replication_factor": 1}]
        connection = await OPEN.open(self._broker.host, self._broker.port)
        answer: Any = await connection.ask("create_topics", 4, {"topics": rows, "timeout": 10_000})
        led = False
        for _ in range(_LED_TRIES):
            metadata: Any = await connection.ask("metadata", 4, {"topics": [{"name": self.topic}]})
            led = all(row.error_code.value == 0 and len(row.partitions) == self._partitions for row in metadata.topics)
            if led or any(row.error_code.value for row in answer.topics):
                break
            await asyncio.sleep(_TICK_S)
        await connection.close()
        if not led:
            codes = ", ".join(row.error_code.name for row in answer.topics)
            raise NotReached(f"the broker did not create the topic {self.topic} ({codes})")

    def require_before(self, ms: int) -> None:
        """Raise ``NotReached`` if trouble that comes at this time after the broker's start has begun already."""
        if time.monotonic() - self._began_s > ms / 1000:
            raise NotReached(f"the client took longer than {ms / 1000:g} s to join, read and commit")

    async def works(self, run: ClientRun) -> None:
        """Write more records, and wait until the client commits them."""
        before = len(run.good_commits())
        await self.write()
        await run.commits(after=before)

    async def write(self) -> None:
        """Write ``RECORDS`` more records to each partition."""
        data = batch(Records(count=RECORDS), round(time.time() * 1000), -1, -1)
        connection = await OPEN.open(self._broker.host, self._broker.port)
        rows = [{"index": index, "records": data} for index in range(self._partitions)]
        topics = [{"name": self.topic, "partition_data": rows}]
        await connection.ask("produce", 7, {"acks": 1, "timeout": 10_000, "topic_data": topics})
        await connection.close()

    async def companion(self) -> Companion:
        """Return a member of the group, a consumer group, that the suite plays. It has sent nothing yet."""
        made = Companion(await OPEN.open(self._broker.host, self._broker.port), self.group, self.topic)
        self._open.push_async_callback(made.stop)
        return made

    async def start(self, *options: str, protocol: str = "classic", name: str = "") -> ClientRun:
        """Start a process of the client, with options of the convention beside ``--protocol``. Raises
        ``NotReached`` if it does not start."""
        assert self._address is not None
        name = name or f"client {len(self.runs) + 1}"
        text: list[str] = []
        began = time.monotonic()
        journal = Journal(text.append, known=Known(self.settings), provenance={}, name=name)
        proxy = Proxy(self._address, journal, nodes={_NODE: self._address}, node=_NODE)
        ((here, _),) = await proxy.start(Address("127.0.0.1", 0))
        self._open.push_async_callback(proxy.stop)
        flags = ["--protocol", protocol]
        if protocol == "classic":
            flags += ["--session-timeout", str(self.client.session_ms)]
        command = filled(self.client.words, str(here), self.group, self.topic, [*flags, *options])
        try:
            process = await ClientProcess.start(command)
        except OSError as wrong:
            raise NotReached(f"the command cannot be started: {wrong.strerror}") from None
        run = ClientRun(name, process, began, self.client.patience_s, text)
        self.runs.append(run)
        return run


@asynccontextmanager
async def served(setup: Setup) -> AsyncIterator[Ready]:
    """Run the bundled server on this loop."""
    until = asyncio.Event()
    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(serve(setup, ready.set_result, until))
    while not (task.done() or ready.done()):
        await asyncio.sleep(0)
    if task.done():
        task.result()
    try:
        yield ready.result()
    finally:
        until.set()
        await task
