"""A node: its topics, groups and transactions, and how it stores them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Iterable, Mapping, Sequence

from fencepost.aio.broker import wall_clock_ms
from fencepost.host.lookup import Endpoint
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic as TopicImage
from fencepost.protocol.kafka_names import group_config
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest, WriteTxnMarkerResponse
from fencepost.protocol.settings import Settings
from fencepost.store import AppendError, Change, DropBatches, Put, PutBatch, Store, StoreError
from fencepost_server.data.batches import marker
from fencepost_server.data.offsets_topic import NAME, TOPIC_ID, OffsetsTopic
from fencepost_server.data.partition import PartitionLog
from fencepost_server.data.sessions import FetchSessions
from fencepost_server.data.tail import Budget
from fencepost_server.data.topics import Topic, Topics
from fencepost_server.groups import Groups
from fencepost_server.options import Address, Options
from fencepost_server.security.acl import Acl
from fencepost_server.security.sasl import Users
from fencepost_server.security.session import Session
from fencepost_server.transactions.coordinator import COORDINATOR_EPOCH, Transactions
from fencepost_server.transactions.offset_producers import OffsetProducers
from fencepost_server.transactions.state import Transaction

_log = logging.getLogger(__name__)

TOPIC_KIND = "topic"
#: the producers and transactions of a partition from which records were deleted, by topic id and partition
PRODUCERS_KIND = "producers"
GROUP_CONFIG_KIND = "group settings"


class MarkerRefused(Exception):
    """A partition of the offsets topic rejected a transaction marker."""


class Node:
    """The state of a server that its request handlers share. ``announced`` are the rows of ApiVersions. ``users`` are
    the users that may log in; with None, clients need no login. ``data_bytes`` is the size of the batches of all
    topics. ``offsets``: the offsets topic, if this node leads it."""

    def __init__(
        self,
        options: Options,
        settings: Settings,
        groups: Groups,
        store: Store,
        *,
        acl: Acl | None = None,
        users: Users | None = None,
        leader_epoch: int = 0,
        offsets: OffsetsTopic | None = None,
    ) -> None:
        self.options = options
        self.settings = settings
        self.groups = groups
        self.store = store
        self.acl = acl or Acl()
        self.users = users
        self.topics = Topics(log=self._log)
        self.offsets = offsets
        self.fetch_sessions = FetchSessions()
        self._budget = Budget(options.limits.cached_bytes)
        self.transactions = Transactions(store, self._mark, wall_clock_ms)
        self.offset_producers = OffsetProducers()
        self.group_configs: dict[str, dict[str, str]] = {}
        self.announced: list[dict[str, int]] = []
        self.address: Address = options.listen
        #: whether this node leads; the node that leads (None: no node), its epoch; the other live nodes
        self.leads = True
        self.leader_id: int | None = options.node_id
        self.leader_epoch = leader_epoch
        self.peers: tuple[Endpoint, ...] = ()
        self.data_bytes = 0
        #: the server is stopping, so no Fetch waits for more data
        self.ending = False

    def end_waits(self) -> None:
        """End the wait of every Fetch, so that it is answered with the available data."""
        self.ending = True
        for topic in self.topics.by_name.values():
            for log in topic.logs:
                log.notify_watchers()

    def _log(self, topic_id: bytes, index: int) -> PartitionLog:
        def source(offset: int, most: int) -> Awaitable[Sequence[bytes]]:
            return self.store.batches(topic_id, index, offset, most)

        return PartitionLog(index, source, self._budget, self.leader_epoch)

    def serve_topics(self) -> None:
        """Pass the topics, and every later change of them, to the groups."""
        self.topics.changed = self._topics_changed
        self.topics.publish_image()

    def _topics_changed(self, topics: Iterable[TopicImage]) -> None:
        self.groups.set_topics(tuple(topics))

    def endpoint(self, session: Session) -> Endpoint:
        """Return this node's address for a client: the advertised one, or else the one that the client connected to."""
        at = self.options.advertised or session.local or self.address
        return Endpoint(self.options.node_id, at.host, at.port or self.address.port)

    def brokers(self, session: Session) -> list[Endpoint]:
        """Return all live nodes, sorted by id."""
        return sorted([self.endpoint(session), *self.peers], key=lambda each: each.node_id)

    def leader(self, session: Session) -> Endpoint | None:
        """Return the node that leads; None if there is none."""
        return next((each for each in self.brokers(session) if each.node_id == self.leader_id), None)

    # topics

    async def open_offsets(self, names: Iterable[str | bytes]) -> None:
        """Fill the offsets topic if one of these names or ids is its own. Call this before ``topic``."""
        if self.offsets is not None and any(name in (NAME, TOPIC_ID) for name in names):
            try:
                await self.offsets.ready()
            except StoreError as reason:
                _log.error("%s cannot be read: %s", NAME, reason)

    def topic(self, name: str | bytes) -> Topic | None:
        """Return the topic with this name or id, the offsets topic included if it is open; None if there is none."""
        found = self.topics.by_id.get(name) if isinstance(name, bytes) else self.topics.by_name.get(name)
        if found is None and self.offsets is not None and name in (NAME, TOPIC_ID):
            return self.offsets.topic
        return found

    def partition(self, name: str, index: int) -> PartitionLog | None:
        """Return the log of a partition of ``topic(name)``; None if it does not exist."""
        topic = self.topic(name)
        return topic.logs[index] if topic is not None and 0 <= index < len(topic.logs) else None

    async def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> Topic:
        """Create a topic and store it. Raises ``Refused`` if it is invalid, ``AppendError`` or ``StoreError`` if it
        cannot be stored."""
        topic = self.topics.create(name, partitions, config)
        try:
            await self._keep(topic)
        except (AppendError, StoreError):
            self.topics.delete(topic)
            raise
        return topic

    async def delete_topic(self, topic: Topic) -> None:
        """Delete a topic with its data."""
        self.topics.delete(topic)
        self.data_bytes -= sum(log.size for log in topic.logs)
        states = [Put(PRODUCERS_KIND, producers_key(topic, log.index), None) for log in topic.logs if log.start]
        await self.store.write([Put(TOPIC_KIND, topic.name, None), DropBatches(topic.topic_id), *states])

    async def grow_topic(self, topic: Topic, partitions: int, *, validate_only: bool = False) -> None:
        """Add partitions, up to ``partitions`` in all. Raises ``Refused`` if that number is invalid."""
        self.topics.check_growth(topic, partitions)
        if not validate_only:
            self.topics.grow(topic, partitions)
            await self._keep(topic)

    async def configure_topic(self, topic: Topic, config: Mapping[str, str]) -> None:
        """Replace the settings of a topic."""
        topic.config = dict(config)
        await self._keep(topic)

    async def delete_before(self, name: str, log: PartitionLog, offset: int) -> None:
        """Delete the records below an offset. The state of its producers and transactions remains."""
        before = log.size
        first = await log.delete_before(offset)
        self.data_bytes -= before - log.size
        topic = self.topics.by_name[name]
        changes: list[Change] = [self._row(topic)]
        if log.size < before:
            changes.append(Put(PRODUCERS_KIND, producers_key(topic, log.index), json.dumps(log.state)))
            changes.append(DropBatches(topic.topic_id, log.index, first))
        await self.store.write(changes)

    async def _keep(self, topic: Topic) -> None:
        await self.store.write([self._row(topic)])

    @staticmethod
    def _row(topic: Topic) -> Put:
        row = {
            "id": topic.topic_id.hex(),
            "partitions": len(topic.logs),
            "config": topic.config,
            "ends": {log.index: [log.start, log.end] for log in topic.logs if log.start},
        }
        return Put(TOPIC_KIND, topic.name, json.dumps(row))

    def retract(self, logs: Iterable[PartitionLog]) -> None:
        """Remove the batches of these partitions that could not be stored."""
        for log in logs:
            before = log.size
            log.retract()
            self.data_bytes -= before - log.size

    # groups

    async def configure_group(self, group_id: str, config: Mapping[str, str]) -> None:
        """Replace the settings of a group. Raises ``ValueError`` for invalid ones."""
        made = group_config(self.settings, config)
        self.groups.configure(group_id, made)
        if config:
            self.group_configs[group_id] = dict(config)
        else:
            self.group_configs.pop(group_id, None)
        await self.store.write([Put(GROUP_CONFIG_KIND, group_id, json.dumps(config) if config else None)])

    # transactions

    async def _mark(self, known: Transaction, committed: bool) -> None:
        """Write the markers of a transaction to its partitions and to those of its offsets. Raises ``MarkerRefused`` if
        a coordinator rejects one."""
        producer_id, epoch = known.producer_id, known.producer_epoch
        changes: list[Change] = []
        written: list[tuple[PartitionLog, int]] = []
        for name, index in sorted(known.partitions):
            log = self.topics.partition(name, index)
            if log is None:
                continue  # the topic was deleted; partitions without data of the transaction do get a marker
            made = marker(
                producer_id, epoch, committed=committed, coordinator_epoch=COORDINATOR_EPOCH, at_ms=wall_clock_ms()
            )
            put = log.end_transaction(made, committed=committed)
            self.data_bytes += len(put.data)
            changes.append(PutBatch(self.topics.by_name[name].topic_id, index, put.base, put.data))
            written.append((log, log.end))
        if changes:
            try:
                await self.store.write(changes)
            except (AppendError, StoreError):
                self.retract([log for log, _ in written])
                raise
            for log, end in written:
                log.durable(end)
        body = WriteTxnMarkerRequest(
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=COORDINATOR_EPOCH,
            committed=committed,
            transaction_version=known.version,
        )
        places = sorted(known.offsets)
        answers = await asyncio.gather(*[self.groups.mark(place, body) for place in places])
        for place, answer in zip(places, answers, strict=True):
            if isinstance(answer, WriteTxnMarkerResponse) and answer.error_code is not ErrorCode.NONE:
                raise MarkerRefused(f"a partition of the offsets topic rejected a marker with {answer.error_code.name}")
            self.offset_producers.ended(place, producer_id, epoch)

    def status(self) -> dict[str, int]:
        """Return the number of topics and the size of their data."""
        return {"topics": len(self.topics.by_name), "data_bytes": self.data_bytes}


def producers_key(topic: Topic, index: int) -> str:
    """Return the name under which the store keeps the producers of a partition."""
    return f"{topic.topic_id.hex()}/{index}"
