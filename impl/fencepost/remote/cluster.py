"""Client side of a cluster: coordinators of groups, topics, and connections that open when they are needed."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any, Final

from fencepost.protocol.consumer_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic
from fencepost.protocol.messages import VERSIONS, RequestBody, ResponseBody
from fencepost.protocol.offset_messages import NEWEST_BY_NAME
from fencepost.wire.convert import api_of, to_response, values_of
from fencepost.work.link import NoCoordinator, Unsupported

from .connection import Connection
from .sasl import LoginFailed, Sasl

Address = tuple[str, int]

_FOR_GROUPS: Final = 0
_LOOKS: Final = "cluster"
#: How long a broker may take to return a coordinator or the topics, in seconds.
LOOK_S: Final = 3.0


class Refused(ConnectionError):
    """No broker of the list could be used; the message is about the last one."""


class Cluster:
    """Connections to the brokers of a cluster. ``bootstrap``: the first brokers to ask."""

    def __init__(self, bootstrap: list[Address], client_id: str, tls: ssl.SSLContext | None, sasl: Sasl | None) -> None:
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._tls = tls
        self._sasl = sasl
        self._connections: dict[tuple[Address, str], Connection] = {}
        self._opening: dict[tuple[Address, str], asyncio.Lock] = {}
        self._coordinators: dict[str, Address] = {}
        self._brokers: list[Address] = []

    async def find(self, group_id: str) -> int:
        """Look up the coordinator of a group; ask any broker that responds."""
        answer = await self._any("find_coordinator", 0, 2, {"key": group_id, "key_type": _FOR_GROUPS})
        error = ErrorCode(answer.error_code.value)
        if error is not ErrorCode.NONE:
            raise NoCoordinator(error)
        self._coordinators[group_id] = (str(answer.host), int(answer.port))
        return int(answer.node_id)

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """Return the coordinator's response, over the connection for this ``lane``. Raises ``OSError``."""
        if group_id not in self._coordinators:
            try:
                await self.find(group_id)
            except NoCoordinator as none:
                raise ConnectionError(str(none)) from none
        address = self._coordinators[group_id]
        connection = await self._connection(address, lane)
        api = api_of(body)
        try:
            version = _version(connection, api, body)
        except Unsupported:
            if isinstance(body, ConsumerGroupHeartbeatRequest):  # the broker has no KIP-848, a final error (N-ERR-04)
                return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
            raise
        try:
            return to_response(api, await connection.ask(api, version, values_of(body, version)))
        except OSError:
            self._coordinators.pop(group_id, None)
            raise

    def forget(self, group_id: str, lanes: str) -> None:
        """Forget the coordinator, and drop its connections for lanes that start with ``lanes``, with their requests."""
        address = self._coordinators.pop(group_id, None)
        for place, connection in [*self._connections.items()]:
            if place[0] == address and place[1].startswith(lanes):
                connection.break_()

    async def topics(self) -> tuple[Topic, ...]:
        """Return all visible topics of the cluster, and remember its brokers. Raises ``Refused``."""
        answer = await self._any("metadata", 9, 12, {"topics": None, "allow_auto_topic_creation": False})
        self._brokers = [(str(each.host), int(each.port)) for each in answer.brokers]
        return tuple(
            Topic(str(each.name), _id_of(each), len(each.partitions))
            for each in answer.topics
            if each.name is not None and each.error_code.value == 0
        )

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*[each.close() for each in self._connections.values()], return_exceptions=True)
        self._connections.clear()

    async def _any(self, api: str, lowest: int, highest: int, values: dict[str, Any]) -> Any:
        wrong: OSError | None = None
        for address in dict.fromkeys([*self._bootstrap, *self._brokers]):
            try:
                connection = await self._connection(address, _LOOKS)
                async with asyncio.timeout(LOOK_S):
                    return await connection.ask(api, connection.newest(api, lowest, highest), values)
            except TimeoutError:
                wrong = TimeoutError(f"no response within {LOOK_S:g} s")
            except (LoginFailed, Unsupported) as final:
                raise Refused(str(final)) from final  # other brokers would fail in the same way
            except OSError as failed:
                wrong = failed
        raise Refused(f"no broker responds to {api}; the last error: {wrong}") from wrong

    async def _connection(self, address: Address, lane: str) -> Connection:
        place = (address, lane)
        async with self._opening.setdefault(place, asyncio.Lock()):
            known = self._connections.get(place)
            if known is None or known.broken:
                known = self._connections[place] = await Connection.open(
                    *address, self._client_id, self._tls, self._sasl
                )
            return known


class Line:
    """``fencepost.work.Link`` of one worker. Another worker's parked JoinGroup does not delay its requests."""

    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster = cluster
        self._lanes = f"{number} "

    async def find(self, group_id: str) -> int:
        """Look up the coordinator of a group."""
        return await self._cluster.find(group_id)

    async def ask(self, group_id: str, body: RequestBody, lane: str) -> ResponseBody:
        """Send a request over the connection for its lane."""
        return await self._cluster.ask(group_id, body, self._lanes + lane)

    def forget(self, group_id: str) -> None:
        """Forget the coordinator, with the requests sent to it."""
        self._cluster.forget(group_id, self._lanes)

    async def topics(self, names: frozenset[str], ids: frozenset[bytes]) -> tuple[Topic, ...]:
        """Return all topics, since a name may be that of a topic created later."""
        del names, ids
        return await self._cluster.topics()


def _version(connection: Connection, api: str, body: RequestBody) -> int:
    """Return the newest version that both sides support and that has the fields of the body. Raises ``Unsupported``."""
    kind = type(body)
    lowest, highest = VERSIONS[kind]
    if isinstance(body, ConsumerGroupHeartbeatRequest) and body.subscribed_topic_regex is not None:
        lowest = 1  # N-HB-02
    return connection.newest(api, lowest, NEWEST_BY_NAME.get(kind, highest))


def _id_of(topic: Any) -> bytes:
    """Return the topic id; zero if the version (Metadata before v10) or the broker has no ids."""
    topic_id = getattr(topic, "topic_id", None)
    return bytes(16) if topic_id is None else bytes(topic_id.bytes)
