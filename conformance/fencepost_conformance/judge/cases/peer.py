"""The broker as a case sees it: connections, topics, and a record of every exchange."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Self, TypeAlias
from uuid import uuid4

from fencepost.protocol.profile import Profile
from fencepost.remote.connection import Connection
from fencepost.wire.frames import API_KEYS, MalformedFrame, request_schema
from fencepost.work.link import Unsupported

from ...common.addresses import Address
from ...traces.wire.access import OPEN, Access
from .answers import Answer, Exchange, Mismatch, NotSupported, Plain, plain
from .broker_settings import CONSUMER_SESSION, NAMES

#: how long a case waits for an answer that the broker may hold back
ANSWER_S: Final = 60.0
#: how long the first question to a coordinator waits for its answer
_PROBE_S: Final = 10.0
#: versions of OffsetFetch up to this one have one group and one error code
_PROBED: Final = {"offset_fetch": 7}
#: how often a coordinator that is not ready is tried again, and after how many seconds
_TRIES, _AGAIN_S = 100, 0.2
#: how often the metadata of a topic is asked for that the broker may create by itself
_AUTO_TRIES: Final = 25
#: how much later other groups of the coordinator learn of a topic than the first
_PUBLISHED_S: Final = 0.1
#: kinds of coordinators in FindCoordinator
_GROUPS, _TRANSACTIONS = 0, 1
#: FindCoordinator from this version on looks up several keys
_KEYS: Final = 4
#: DeleteTopics from this version on has rows instead of names
_NAMED_ROWS: Final = 6
#: DescribeConfigs: the type of a broker
_BROKER: Final = 4
#: Kafka's default of the session timeout of consumer groups
_USUAL_SESSION_MS: Final = 45_000
#: no API has as many versions
_VERSIONS: Final = 30
#: the path of a mismatch if there is no answer, or none that can be read
NO_ANSWER: Final = "answer"
NOT_YET: Final = frozenset(("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"))

#: the answer while a coordinator writes the end of the transaction before
_ENDING: Final = "CONCURRENT_TRANSACTIONS"

#: changes an answer before the case sees it, as a broker with a fault would answer: from the name of the connection,
#: the number of the answer on it, and the answer
Falsify: TypeAlias = Callable[[str, int, Plain], Plain]


class NotReached(Exception):
    """The case did not come to the point that it tests; the message says why."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that was created for a case. ``topic_id``: as text; empty if the broker gives topics no ids."""

    name: str
    topic_id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class BrokerUnderTest:
    """``profile``: what releases of Kafka do differently, for the cases that depend on it. ``settings``: those that are
    known, by Kafka's names; ``reported`` asks the broker. ``broken``: APIs and versions that the broker announces, and
    whose answers cannot be read. ``play`` adds to it; cases use others."""

    address: Address
    profile: Profile
    access: Access = OPEN
    settings: Mapping[str, str] = field(default_factory=dict)
    broken: set[tuple[str, int]] = field(default_factory=set)


class Peer:
    """The broker under test, for one case. ``group``: a group id that no other case uses. ``exchanges``: what was sent
    and answered, in the order of sending."""

    def __init__(self, broker: BrokerUnderTest, falsify: Falsify | None = None) -> None:
        self.profile, self.settings = broker.profile, broker.settings
        #: versions that this case avoids: those that were known when it began
        self.avoided = frozenset(broker.broken)
        self.exchanges: list[Exchange] = []
        self.compared: set[tuple[str, int, str]] = set()
        self.group = f"case-{uuid4()}"
        self._address, self._access = broker.address, broker.access
        self._falsify = falsify
        self._began = time.monotonic()
        self._open = AsyncExitStack()
        self._clients = 0
        self._tasks: list[asyncio.Task[Answer]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._open.aclose()

    def start(self, request: Coroutine[Any, Any, Answer]) -> asyncio.Task[Answer]:
        """Send a request that the broker may hold back, without waiting. It ends with the case."""
        task = asyncio.ensure_future(request)
        self._tasks.append(task)
        return task

    async def client(self, coordinates: str | None = None) -> Client:
        """Open a connection, on which requests are answered one after another: to the coordinator of the group, or of
        the transactions of the id ``coordinates``."""
        self._clients += 1
        address = self._address if coordinates is None else await self._coordinator(coordinates, _TRANSACTIONS)
        connection = await self._access.open(address.host, address.port)
        self._open.push_async_callback(connection.close)
        return Client(self, f"client {self._clients}", connection)

    async def topic(self, partitions: int | None = None) -> Topic:
        """Create a topic by CreateTopics. If the broker does not do that, let it create the topic for a client that
        asks for its metadata. ``partitions``: None if the case uses only the first; there may be more then. Raises
        ``NotSupported`` and ``NotReached``."""
        client = await self.client()
        name = f"case-{uuid4()}"
        try:
            topic = await self._created(client, name, partitions or 1)
        except (NotSupported, NotReached) as reason:
            client = await self.client()
            created = await client.auto_created(name)
            if created is None:
                raise reason from None
            if partitions not in (None, created.partitions):
                wanted = f"topics of {created.partitions} partitions, and only when a client asks for them"
                raise NotSupported(f"the broker creates {wanted}; this case needs {partitions}") from None
            topic = created
        with suppress(NotSupported):
            await client.until_assigned(name)
        return topic

    async def _created(self, client: Client, name: str, partitions: int) -> Topic:
        """Create a topic by CreateTopics. Raises ``NotReached`` if the broker refuses, or if no version of its answer
        can be read, ``NotSupported``, and ``Mismatch`` for a version that the case does not avoid yet."""
        row = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        try:
            made = (await client.ask("create_topics", topics=[row], timeout=30_000)).at("topics.0")
        except Mismatch as wrong:
            if (wrong.exchange.api, wrong.exchange.version) not in self.avoided:
                raise
            raise NotReached(f"before what the case tests, {wrong}") from None
        if made["error_code"] != "NONE":
            raise NotReached(f"the broker did not create a topic: {made['error_code']}")
        await client.until_led(name, partitions)
        return Topic(name, made.value.get("topic_id") or "", partitions)

    async def delete(self, topic: Topic) -> None:
        """Delete a topic. Raises ``NotReached`` if the broker refuses."""
        client = await self.client()
        version = client.newest("delete_topics")
        names = {"topics": [{"name": topic.name}]} if version >= _NAMED_ROWS else {"topic_names": [topic.name]}
        answer = await client.ask("delete_topics", version, timeout=30_000, **names)
        if (error := answer.at("responses.0")["error_code"]) != "NONE":
            raise NotReached(f"the broker did not delete a topic: {error}")

    @property
    def clients(self) -> int:
        """How many connections the case has opened."""
        return self._clients

    def consumer_session_s(self) -> float:
        """Return the session timeout of consumer groups in seconds; Kafka's default if it is not known."""
        return int(self.settings.get(CONSUMER_SESSION, _USUAL_SESSION_MS)) / 1000

    async def ready(self) -> None:
        """Find the coordinator of the group, and wait until it serves it: connections go there from now on. Raises
        ``NotReached``."""
        self._address = await self._coordinator(self.group, _GROUPS)

        member = {"group_id": self.group, "member_id": "nobody"}
        # one answer shows that the group is served; a case judges wrong answers, not this. The last is for a broker
        # that announces neither of the others: the answer may be about the protocol, and not about the group
        probes: dict[str, dict[str, Any]] = {
            "heartbeat": {**member, "generation_id": 0},
            "offset_fetch": {"group_id": self.group, "topics": ()},
            "consumer_group_heartbeat": {**member, "member_epoch": 1},
        }

        async def serves() -> bool:
            answered = False
            for api, request in probes.items():
                if answered and api == "consumer_group_heartbeat":
                    break
                async with await self.client() as client:
                    with suppress(NotSupported, Mismatch, TimeoutError, LookupError, TypeError):
                        async with asyncio.timeout(_PROBE_S):
                            version = client.newest(api, most=_PROBED.get(api))
                            code = (await client.ask(api, version, **request))["error_code"]
                        if code not in NOT_YET:
                            return True
                        answered = True
            return not answered

        if not await self.until(serves):
            raise NotReached(f"the coordinator was not ready within {_TRIES * _AGAIN_S:g} s")
        self.exchanges.clear()

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> bool:
        """Ask again and again until something holds; return whether it does within 20 s."""
        for _ in range(_TRIES):
            if await holds():
                return True
            await asyncio.sleep(_AGAIN_S)
        return False

    async def _coordinator(self, key: str, kind: int) -> Address:
        """Look up a coordinator, which creates its topic in a new cluster. A broker that does not announce
        FindCoordinator is taken for the coordinator. Raises ``NotReached``."""
        for _ in range(_TRIES):
            async with await self.client() as client:
                try:
                    found = await client.find_coordinator(key, kind)
                except NotSupported:
                    return self._address
            if found["error_code"] == "NONE":
                return Address(found["host"], found["port"])
            await asyncio.sleep(_AGAIN_S)
        raise NotReached(f"FindCoordinator was answered {found['error_code']}")

    def require(self, *, holds: bool, expected: str, received: str) -> None:
        """Expect something that no field shows, such as the order of answers. Raises ``Mismatch``, which names the last
        exchange."""
        if not holds:
            raise Mismatch(self.exchanges[-1], "order", expected, received)

    def record(self, exchange: Exchange) -> Answer:
        """Keep an exchange, and return its answer."""
        if self._falsify is not None:
            answer = self._falsify(exchange.client, self._nth(exchange), exchange.answer)
            exchange = replace(exchange, answer=answer)
        self.exchanges[exchange.number] = exchange
        return Answer(exchange, exchange.answer, "", self._note)

    def begin(self, client: str, api: str, version: int, request: Mapping[str, Any]) -> Exchange:
        """Keep a request that has no answer yet."""
        exchange = Exchange(len(self.exchanges), client, api, version, request, None, self._elapsed(), 0.0)
        self.exchanges.append(exchange)
        return exchange

    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _note(self, exchange: Exchange, path: str) -> None:
        self.compared.add((exchange.client, self._nth(exchange), path))

    def _nth(self, exchange: Exchange) -> int:
        """Return how many exchanges its connection had before."""
        return sum(each.client == exchange.client for each in self.exchanges[: exchange.number])


async def reported(broker: BrokerUnderTest) -> dict[str, str]:
    """Return the settings that cases depend on, as the broker reports them; nothing if it does not."""
    async with Peer(broker) as peer:
        with suppress(NotSupported, NotReached, Mismatch, OSError, LookupError, TypeError):
            client = await peer.client()
            node = (await client.ask("metadata", topics=[])).at("brokers.0")["node_id"]
            row = {"resource_type": _BROKER, "resource_name": str(node), "configuration_keys": list(NAMES)}
            rows = (await client.ask("describe_configs", resources=[row])).at("results.0")["configs"] or ()
            return {each["name"]: each["value"] for each in rows if each["name"] in NAMES and each["value"] is not None}
    return {}


class Client:
    """One connection to the broker."""

    def __init__(self, peer: Peer, name: str, connection: Connection) -> None:
        self.name = name
        self._peer, self._connection = peer, connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.close()

    def newest(self, api: str, *, least: int = 0, most: int | None = None) -> int:
        """Return the newest version that both sides speak, and whose answers can be read as far as it is known. Raises
        ``NotSupported``."""
        lowest, highest = spoken(api)
        lowest = max(lowest, least)
        try:
            newest = self._connection.newest(api, lowest, highest if most is None else most)
        except Unsupported as wrong:
            raise NotSupported(str(wrong)) from None
        lowest = max(lowest, self._connection.versions[API_KEYS[api]][0])
        usable = (version for version in range(newest, lowest - 1, -1) if (api, version) not in self._peer.avoided)
        return next(usable, lowest)

    async def ask(self, api: str, version: int | None = None, **request: Any) -> Answer:
        """Send a request and return its answer. ``version``: the newest of both sides, if None. Raises ``Mismatch`` if
        the broker closes the connection or answers what cannot be read, and ``NotReached`` if it does not answer."""
        chosen = self.newest(api) if version is None else self.newest(api, least=version, most=version)
        begun = self._peer.begin(self.name, api, chosen, request)
        start = time.monotonic()
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await self._connection.ask(api, chosen, request)
        except TimeoutError:
            raise NotReached(f"no answer to {api} v{chosen} within {ANSWER_S:g} s") from None
        except (MalformedFrame, ConnectionError) as wrong:
            raise Mismatch(begun, NO_ANSWER, "an answer", str(wrong)) from None
        return self._peer.record(replace(begun, answer=plain(response), took_s=time.monotonic() - start))

    async def find_coordinator(self, key: str, kind: int = _GROUPS, version: int | None = None) -> Answer:
        """Look up a coordinator: return what the answer says of this key."""
        version = self.newest("find_coordinator") if version is None else version
        asked: dict[str, Any] = {"coordinator_keys": [key]} if version >= _KEYS else {"key": key}
        answer = await self.ask("find_coordinator", version, key_type=kind, **asked)
        return answer.at("coordinators.0") if version >= _KEYS else answer

    async def until_ready(self, api: str, **request: Any) -> Answer:
        """Send a request again while its coordinator is not ready, or still ends the transaction before. Raises
        ``NotReached`` for any other error."""
        for _ in range(_TRIES):
            answer = await self.ask(api, **request)
            if answer["error_code"] == "NONE":
                return answer
            if answer["error_code"] not in NOT_YET and answer["error_code"] != _ENDING:
                break
            await asyncio.sleep(_AGAIN_S)
        raise NotReached(f"{api} was answered {answer['error_code']}, before what the case tests")

    async def until_led(self, topic: str, partitions: int) -> None:
        """Wait until the partitions of a new topic have leaders. Raises ``NotReached``."""
        for _ in range(_TRIES):
            answer = await self.ask("metadata", topics=[{"name": topic}], allow_auto_topic_creation=False)
            rows = answer.at("topics.0").value
            if rows["error_code"] == "NONE" and sum(row["leader_id"] >= 0 for row in rows["partitions"]) == partitions:
                return
            await asyncio.sleep(_AGAIN_S)
        raise NotReached(f"topic {topic} had no leaders within {_TRIES * _AGAIN_S:g} s")

    async def auto_created(self, topic: str) -> Topic | None:
        """Ask for the metadata of a topic that does not exist, which creates it if the broker does so
        (``auto.create.topics.enable``). Return the topic, or None if it does not exist within 5 s."""
        for _ in range(_AUTO_TRIES):
            answer = await self.ask("metadata", topics=[{"name": topic}], allow_auto_topic_creation=True)
            made = answer.at("topics.0").value
            partitions = made["partitions"]
            if made["error_code"] == "NONE" and partitions and all(row["leader_id"] >= 0 for row in partitions):
                return Topic(topic, made.get("topic_id") or "", len(partitions))
            await asyncio.sleep(_AGAIN_S)
        return None

    async def until_assigned(self, topic: str) -> None:
        """Wait until the coordinator assigns a new topic, of which it learns later than the leaders of its partitions:
        a member of another group subscribes to it. Raises ``NotReached``."""
        request: dict[str, Any] = {
            "group_id": f"probe-{uuid4()}",
            "member_id": str(uuid4()),
            "rebalance_timeout": 10_000,
        }
        request |= {"subscribed_topic_names": [topic], "topic_partitions": [], "member_epoch": 0}
        for _ in range(_TRIES):
            answer = await self.ask("consumer_group_heartbeat", **request)
            if answer["error_code"] == "NONE" and answer["assignment"]["topic_partitions"]:
                await self.ask("consumer_group_heartbeat", **(request | {"member_epoch": -1}))
                await asyncio.sleep(_PUBLISHED_S)
                return
            await asyncio.sleep(_AGAIN_S)
        raise NotReached(f"topic {topic} was not assigned within {_TRIES * _AGAIN_S:g} s")


def reached(api: str, answer: Answer) -> Answer:
    """Return the answer of a step that only leads to what the case tests. Raises ``NotReached`` for an error."""
    if answer["error_code"] != "NONE":
        raise NotReached(f"{api} was answered {answer['error_code']}, before what the case tests")
    return answer


@cache
def spoken(api: str) -> tuple[int, int]:
    """Return the lowest and the highest version of an API that the suite can write and read."""
    known = []
    for version in range(_VERSIONS):
        with suppress(MalformedFrame):
            request_schema(api, version)
            known.append(version)
    return known[0], known[-1]
