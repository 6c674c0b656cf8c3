"""Clients that commit and fetch offsets: one for each program, producers, and an auditor of all groups."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from fencepost.member.consumer import ConsumerMember
from fencepost.protocol import offset_messages as o
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    RequestBody,
    ResponseBody,
)
from fencepost.protocol.partitions import TopicPartition
from fencepost.sharding import partition_for

from ..broken import demand
from ..host import AnyHost
from .node import Node
from .promises import Key, Promises

_COMMIT: Final = 9  #: version of OffsetCommit and OffsetFetch, with topics by name
_TXN: Final = 3
_LATE: Final = 0.25  #: probability of a commit with the client's previous identity
_NOT_HERE: Final = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
#: Called with the answer, or None if it is lost, and whether the broker was the elected leader the whole time.
Then = Callable[[ResponseBody | None, bool], None]


class Simulation(Protocol):
    """The part of the simulation that committing clients need. ``ask`` sends a request to a broker, ``mark`` one to the
    leader of a partition."""

    now: int
    rng: Random
    promises: Promises
    quiet: bool

    def later(self, delay_ms: int, what: Callable[[], None]) -> None: ...
    def ask(self, node: int | None, version: int, body: RequestBody, then: Then) -> None: ...
    def mark(self, partition: int, body: o.WriteTxnMarkerRequest, then: Then) -> None: ...
    def look_up(self, group_id: str) -> int | None: ...
    def nodes(self) -> list[Node]: ...
    def names(self) -> list[str]: ...


class OffsetClient:
    """A client that commits the partitions of its program repeatedly, and fetches offsets for new ones. ``done``:
    partitions with an acknowledged commit since the environment became quiet."""

    def __init__(self, simulation: Simulation, host: AnyHost) -> None:
        self.simulation = simulation
        self.host = host
        self.known: set[TopicPartition] = set()
        self.done: set[TopicPartition] = set()
        self.life = 0
        self._was = ("", -1)  #: the identity of its previous commit
        simulation.later(simulation.rng.randint(0, 500), self._work)

    @property
    def group(self) -> str:
        return self.host.plan.settings.group_id

    def _identity(self) -> tuple[str, int]:
        member = self.host.member
        if isinstance(member, ConsumerMember):
            return member.member_id, member.epoch
        return member.generation.member_id, member.generation.generation_id

    def _work(self) -> None:
        host, simulation = self.host, self.simulation
        if host.process != self.life:
            self.life, self.known = host.process, set()
        owned = host.member.assignment if host.takes_part else frozenset()
        self.known &= owned
        if owned - self.known:
            self._fetch(sorted(owned - self.known))
        elif owned:
            self._commit(sorted(owned))
        simulation.later(simulation.rng.randint(200, 900), self._work)

    def _fetch(self, wanted: list[TopicPartition]) -> None:
        life, keys = self.life, [Key(self.group, *each) for each in wanted]
        floors = {key: self.simulation.promises.known(key) for key in keys}
        member, epoch = self._identity()
        whose = (member, epoch) if isinstance(self.host.member, ConsumerMember) else (None, -1)
        topics = tuple(
            o.OffsetFetchRequestTopic(name=name, partition_indexes=tuple(n for t, n in wanted if t == name))
            for name in sorted({topic for topic, _ in wanted})
        )
        asked = o.OffsetFetchRequestGroup(self.group, member_id=whose[0], member_epoch=whose[1], topics=topics)

        def then(answer: ResponseBody | None, elected: bool) -> None:
            if not isinstance(answer, o.OffsetFetchResponse) or answer.groups[0].error_code is not ErrorCode.NONE:
                return
            for topic in answer.groups[0].topics:
                for each in topic.partitions:
                    key = Key(self.group, topic.name, each.partition_index)
                    if each.error_code is ErrorCode.NONE and elected:
                        self.simulation.promises.read(key, each.committed_offset, floors[key])
                    if each.error_code is ErrorCode.NONE and life == self.host.process:
                        self.known.add(TopicPartition(topic.name, each.partition_index))

        node = self.host.member.coordinator.node
        self.simulation.ask(node, _COMMIT, o.OffsetFetchRequest((asked,), require_stable=True), then)

    def _commit(self, owned: list[TopicPartition]) -> None:
        late = not self.simulation.quiet and self.simulation.rng.random() < _LATE
        member, epoch = self._was if late else self._identity()
        self._was = self._identity()
        values = {each: self.simulation.promises.fresh() for each in owned}
        body = o.OffsetCommitRequest(
            self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            group_instance_id=self.host.plan.settings.group_instance_id,
            topics=tuple(_topic(each, value) for each, value in values.items()),
        )
        quiet = self.simulation.quiet

        def then(answer: ResponseBody | None, elected: bool) -> None:
            if isinstance(answer, o.OffsetCommitResponse):
                for each, topic in zip(owned, answer.topics, strict=True):
                    if topic.partitions[0].error_code is ErrorCode.NONE:
                        self.simulation.promises.acknowledge(Key(self.group, *each), values[each])
                        if quiet:
                            self.done.add(each)

        self.simulation.ask(self.host.member.coordinator.node, _COMMIT, body, then)


def _topic(partition: TopicPartition, value: int) -> o.OffsetCommitRequestTopic:
    row = o.OffsetCommitRequestPartition(partition.partition, committed_offset=value)
    return o.OffsetCommitRequestTopic(name=partition.topic, partitions=(row,))


def _partition(key: Key) -> o.OffsetFetchRequestTopic:
    return o.OffsetFetchRequestTopic(name=key.topic, partition_indexes=(key.partition,))


class Producer:
    """Commits the offsets of a memberless group in one transaction after another; ``open``: a transaction is open."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        self.simulation = simulation
        self.number = number
        self.group = f"tx{number}"
        self.open = False
        self.ended = [0, 0]  #: aborted, committed
        simulation.later(simulation.rng.randint(0, 1_000), self._begin)

    def _begin(self) -> None:
        simulation, partition = self.simulation, TopicPartition("t0", 0)
        if simulation.quiet:
            return
        node = simulation.look_up(self.group)
        if node is None:
            simulation.later(300, self._begin)
            return
        value, key = simulation.promises.fresh(), Key(self.group, *partition)
        simulation.promises.hidden.add(value)
        self.open = True
        body = o.TxnOffsetCommitRequest(
            self.group,
            transactional_id=self.group,
            producer_id=self.number,
            producer_epoch=0,
            topics=(_topic(partition, value),),
        )

        def then(answer: ResponseBody | None, elected: bool) -> None:
            code = answer.topics[0].partitions[0].error_code if isinstance(answer, o.TxnOffsetCommitResponse) else None
            committed = code is ErrorCode.NONE and simulation.rng.random() < 0.7
            if code is ErrorCode.NONE and elected:
                simulation.promises.pending[key] = value
            simulation.later(simulation.rng.choice((0, 500, 3_000)), lambda: self._end(key, value, committed=committed))

        simulation.ask(node, _TXN, body, then)

    def _end(self, key: Key, value: int, *, committed: bool) -> None:
        simulation = self.simulation
        simulation.promises.pending.pop(key, None)
        if committed:
            simulation.promises.hidden.discard(value)
        body = o.WriteTxnMarkerRequest(
            producer_id=self.number, producer_epoch=0, coordinator_epoch=0, committed=committed
        )

        def then(answer: ResponseBody | None, elected: bool) -> None:
            if not isinstance(answer, o.WriteTxnMarkerResponse) or answer.error_code is not ErrorCode.NONE:
                simulation.later(200, lambda: self._end(key, value, committed=committed))
                return
            self.open = False
            self.ended[committed] += 1
            if committed:
                simulation.promises.acknowledge(key, value)
            simulation.later(simulation.rng.randint(100, 2_000), self._begin)

        simulation.mark(partition_for(self.group, simulation.promises.partitions), body, then)


class Auditor:
    """Asks any broker about all groups in one request. Each group's row comes from its leader, in order (F-FIND-05)."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.rows = 0
        simulation.later(1_000, self._look)

    def _look(self) -> None:
        simulation = self.simulation
        live = [node for node in simulation.nodes() if node.alive]
        names = simulation.rng.sample(simulation.names(), len(simulation.names()))
        node = simulation.rng.choice(live)
        self._fetch(node, names)
        match simulation.rng.randrange(3):
            case 0:
                self._fetch(simulation.rng.choice(live), names)
            case 1:
                self._describe(node, names)
            case _:
                self._list(node)
        simulation.later(simulation.rng.randint(300, 1_500), self._look)

    def _fetch(self, node: Node, names: list[str]) -> None:
        simulation = self.simulation
        before = {key: simulation.promises.known(key) for key in simulation.promises.acknowledged}
        stable, pending = simulation.rng.random() < 0.5, dict(simulation.promises.pending)

        def then(answer: ResponseBody | None, elected: bool) -> None:
            if not isinstance(answer, o.OffsetFetchResponse):
                return
            self._ordered([group.group_id for group in answer.groups], names)
            for group in answer.groups:
                demand(group.error_code in (ErrorCode.NONE, *_NOT_HERE), "F-FIND-05", f"{group} of {node.number}")
                if group.error_code is not ErrorCode.NONE or not elected:
                    continue
                rows = {
                    Key(group.group_id, topic.name, each.partition_index): each
                    for topic in group.topics
                    for each in topic.partitions
                }
                unstable = {key for key, each in rows.items() if each.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT}
                open_still = {key for key, value in simulation.promises.pending.items() if pending.get(key) == value}
                simulation.promises.stable(rows.keys(), unstable, open_still if stable else set(), asked=stable)
                for key in rows.keys() - unstable | {key for key in before if key.group == group.group_id} - unstable:
                    offset = rows[key].committed_offset if key in rows else -1
                    simulation.promises.read(key, offset, before.get(key))

        named = {key.group: key for key in pending}  # perhaps nothing is committed there yet, so name it
        groups = tuple(
            o.OffsetFetchRequestGroup(name, topics=(_partition(named[name]),) if name in named else None)
            for name in names
        )
        simulation.ask(node.number, _COMMIT, o.OffsetFetchRequest(groups, require_stable=stable), then)

    def _describe(self, node: Node, names: list[str]) -> None:
        def then(answer: ResponseBody | None, elected: bool) -> None:
            if isinstance(answer, DescribeGroupsResponse):
                self._ordered([group.group_id for group in answer.groups], names)

        self.simulation.ask(node.number, 5, DescribeGroupsRequest(tuple(names)), then)

    def _list(self, node: Node) -> None:
        def then(answer: ResponseBody | None, elected: bool) -> None:
            if isinstance(answer, ListGroupsResponse):
                found = [group.group_id for group in answer.groups]
                demand(len(set(found)) == len(found), "F-LOC-01", f"{found} are listed by broker {node.number}")
                self.rows += len(found)

        self.simulation.ask(node.number, 4, ListGroupsRequest(), then)

    def _ordered(self, found: list[str], asked: list[str]) -> None:
        demand(found == asked, "F-FIND-05", f"the rows are for {found}, the request named {asked}")
        self.rows += len(found)
