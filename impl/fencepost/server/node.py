"""One node: topics, groups and transactions, and what is kept of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from typing import Any

from fencepost.aio.broker import wall_clock_ms
from fencepost.host.lookup import Endpoint
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Topic as TopicImage
from fencepost.protocol.kafka_names import group_config
from fencepost.protocol.offset_messages import WriteTxnMarkerRequest, WriteTxnMarkerResponse
from fencepost.protocol.settings import Settings
from fencepost.store import AppendError, Change, DropBatches, Put, PutBatch, Store, StoreError

from .data.batches import marker
from .data.partition import PartitionLog
from .data.tail import Budget
from .data.topics import Topic, Topics
from .groups import Groups
from .options import Address, Options
from .security.acl import Acl
from .security.sasl import Users
from .security.session import Session
from .transactions.coordinator import COORDINATOR_EPOCH, Transactions
from .transactions.state import Transaction

TOPIC_KIND = "topic"
GROUP_CONFIG_KIND = "group settings"


class MarkerRefused(Exception):
    """A partition of the offsets topic has not taken a marker."""


class Node:
    """``announced``: the rows of ApiVersions. ``users``: who may log in; None: nobody has to. ``data_bytes``: what the
    batches of all topics take."""

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
    ) -> None:
        self.options = options
        self.settings = settings
        self.groups = groups
        self.store = store
        self.acl = acl or Acl()
        self.users = users
        self.topics = Topics(log=self._log)
        self._budget = Budget(options.limits.cached_bytes)
        self.transactions = Transactions(store, self._mark, wall_clock_ms)
        self.group_configs: dict[str, dict[str, str]] = {}
        self.announced: list[dict[str, int]] = []
        self.address: Address = options.listen
        #: whether this node leads; which one does, None: nobody; in which epoch; and other nodes that live
        self.leads = True
        self.leader_id: int | None = options.node_id
        self.leader_epoch = leader_epoch
        self.peers: tuple[Endpoint, ...] = ()
        self.data_bytes = 0
        #: whether the server ends: no Fetch waits for more data
        self.ending = False

    def end_waits(self) -> None:
        """Let every Fetch that waits for data be answered with what there is."""
        self.ending = True
        for topic in self.topics.by_name.values():
            for log in topic.logs:
                log.tell()

    def _log(self, topic_id: bytes, index: int) -> PartitionLog:
        def source(offset: int, most: int) -> Awaitable[Sequence[bytes]]:
            return self.store.batches(topic_id, index, offset, most)

        return PartitionLog(index, source, self._budget, self.leader_epoch)

    def serve_topics(self) -> None:
        """From now on the groups know of every change of the topics."""
        self.topics.changed = self._topics_changed
        self.topics.tell()

    def _topics_changed(self, topics: Iterable[TopicImage]) -> None:
        self.groups.set_topics(tuple(topics))

    def endpoint(self, session: Session) -> Endpoint:
        """Where a client finds this node: where it was told to be, else where the client came in."""
        at = self.options.advertised or session.local or self.address
        return Endpoint(self.options.node_id, at.host, at.port or self.address.port)

    def brokers(self, session: Session) -> list[Endpoint]:
        """All nodes that live, by number."""
        return sorted([self.endpoint(session), *self.peers], key=lambda each: each.node_id)

    def leader(self, session: Session) -> Endpoint | None:
        """The node that leads, if one does."""
        return next((each for each in self.brokers(session) if each.node_id == self.leader_id), None)

    # topics

    async def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> Topic:
        """A new topic. Raises ``Refused``, or ``AppendError`` if it cannot be kept."""
        topic = self.topics.create(name, partitions, config)
        try:
            await self._keep(topic)
        except (AppendError, StoreError):
            self.topics.delete(topic)
            raise
        return topic

    async def delete_topic(self, topic: Topic) -> None:
        """A topic goes with its data."""
        self.topics.delete(topic)
        self.data_bytes -= sum(log.size for log in topic.logs)
        await self.store.write([Put(TOPIC_KIND, topic.name, None), DropBatches(topic.topic_id)])

    async def grow_topic(self, topic: Topic, partitions: int, *, validate_only: bool = False) -> None:
        """A topic gets further partitions. Raises ``Refused``."""
        self.topics.check_growth(topic, partitions)
        if not validate_only:
            self.topics.grow(topic, partitions)
            await self._keep(topic)

    async def configure_topic(self, topic: Topic, config: Mapping[str, str]) -> None:
        """A topic's settings are these."""
        topic.config = dict(config)
        await self._keep(topic)

    async def delete_before(self, name: str, log: PartitionLog, offset: int) -> None:
        """Records below that offset are read no more."""
        before = log.size
        first = await log.delete_before(offset)
        self.data_bytes -= before - log.size
        topic = self.topics.by_name[name]
        await self.store.write([DropBatches(topic.topic_id, log.index, first)])
        await self._keep(topic)

    async def _keep(self, topic: Topic) -> None:
        row = {
            "id": topic.topic_id.hex(),
            "partitions": len(topic.logs),
            "config": topic.config,
            "ends": {log.index: [log.start, log.end] for log in topic.logs if log.start},
        }
        await self.store.write([Put(TOPIC_KIND, topic.name, json.dumps(row))])

    def retract(self, logs: Iterable[PartitionLog]) -> None:
        """What could not be kept of these is taken back."""
        for log in logs:
            before = log.size
            log.retract()
            self.data_bytes -= before - log.size

    # groups

    async def configure_group(self, group_id: str, config: Mapping[str, str]) -> None:
        """A group's own settings are these. Raises ``ValueError`` for what they cannot be."""
        made = group_config(self.settings, config)
        self.groups.configure(group_id, made)
        if config:
            self.group_configs[group_id] = dict(config)
        else:
            self.group_configs.pop(group_id, None)
        await self.store.write([Put(GROUP_CONFIG_KIND, group_id, json.dumps(config) if config else None)])

    # transactions

    async def _mark(self, known: Transaction, committed: bool) -> None:
        """The markers of a transaction, in its partitions and in those of its offsets."""
        producer_id, epoch = known.marker
        changes: list[Change] = []
        written: list[tuple[PartitionLog, int]] = []
        for name, index in sorted(known.partitions):
            log = self.topics.partition(name, index)
            if log is None:
                continue  # the topic is gone; where nothing was written there is a marker all the same
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
        for answer in await asyncio.gather(*[self.groups.mark(place, body) for place in sorted(known.offsets)]):
            if isinstance(answer, WriteTxnMarkerResponse) and answer.error_code is not ErrorCode.NONE:
                raise MarkerRefused(f"a partition of offsets answers a marker with {answer.error_code.name}")

    def status(self) -> dict[str, Any]:
        """Numbers of what there is."""
        return {"topics": len(self.topics.by_name), "data_bytes": self.data_bytes}
