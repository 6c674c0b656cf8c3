"""Three brokers host the coordinators of four partitions of groups. A partition moves while the old leader does not
know it, logs are compacted, and replicas catch up. At the end, every acknowledged offset is still there.

Run it with ``python examples/host.py``. It needs only Fencepost: the logs are in memory, and the clock is a number.
"""

import sys

from fencepost import (
    INTENDED,
    Appended,
    AppendFailed,
    ErrorCode,
    Load,
    RandomChoices,
    Request,
    Settings,
    TaskDone,
    TimerFired,
    Topic,
    TopicsChanged,
    Unload,
    host,
    initial_state,
    log,
    replay,
)
from fencepost.coordinator import offsets_view
from fencepost.errors import FencedEpoch
from fencepost.events import SetTimer
from fencepost.host import Endpoint, FindCoordinatorRequest, OnPartition, find_coordinator
from fencepost.log import PartitionLog
from fencepost.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    TopicPartitions,
)
from fencepost.sharding import partition_for

PARTITIONS = 4
ORDERS = Topic("orders", b"orders-topic-id!", partitions=3)
GROUPS, WORKERS = ("billing", "mailing", "search", "stock"), ("ada", "bob")


class Clock:
    """The time of all events, in ms."""

    now = 0


class Node:
    """A broker: its coordinators, its replicas of their logs, and the partitions that it believes to lead."""

    def __init__(self, number):
        self.endpoint = Endpoint(number, f"broker-{number}.example", 9092)
        self.broker = host.initial_broker(PARTITIONS, Settings(), INTENDED)
        self.copies = [PartitionLog()] * PARTITIONS
        self.led = {}  # by partition: the leader epoch, and how far log offsets are ahead of coordinator offsets
        self.timers, self.answers = {}, {}
        self.handle(TopicsChanged(Clock.now, (ORDERS,)))

    def handle(self, event):
        """Run one step, then set its timers, append its records, run its tasks, and keep its answers."""
        self.broker, served = host.step(self.broker, event, RandomChoices())
        for partition, outcome in served.parts:
            for timer in outcome.timers:
                self.timers.pop((partition, timer.key), None)
                if isinstance(timer, SetTimer):
                    self.timers[partition, timer.key] = Clock.now + timer.delay_ms
            if outcome.records:
                self.append(partition, outcome.records)
            for task in outcome.tasks:
                self.handle(OnPartition(partition, TaskDone(Clock.now, task)))
        self.answers.update((reply.request_id, reply.body) for reply in served.replies)

    def append(self, partition, records):
        try:
            self.copies[partition] = log.append(self.copies[partition], records, self.led[partition][0])
        except FencedEpoch:  # this replica knows a newer leader; the core undoes the step
            self.handle(OnPartition(partition, AppendFailed(Clock.now, ErrorCode.NOT_LEADER_OR_FOLLOWER)))

    def replicate(self, partition, followers):
        """Let the followers fetch, then advance the high watermark; this releases the answers that waited for it."""
        try:
            for node in followers:
                node.copies[partition] = log.catch_up(node.copies[partition], self.copies[partition])
        except FencedEpoch as refused:
            print(f"broker {self.endpoint.node_id} no longer leads partition {partition}: {refused}")
            self.resign(partition)
        else:
            mine = self.copies[partition]
            high = log.high_watermark(mine, [node.copies[partition].end for node in followers])
            self.copies[partition] = log.replicated(mine, high)
            self.handle(OnPartition(partition, Appended(Clock.now, offset=high - self.led[partition][1])))

    def lead(self, partition, epoch):
        mine = self.copies[partition] = log.lead(self.copies[partition], epoch)
        self.led[partition] = epoch, mine.end - len(mine.records)  # a compacted log has gaps
        load = Load(Clock.now, leader_epoch=epoch, records=mine.records, committed=mine.replicated_records)
        self.handle(OnPartition(partition, load))

    def resign(self, partition):
        """Give up the partition: waiting requests are answered NOT_COORDINATOR."""
        if self.led.pop(partition, None) is not None:
            self.handle(OnPartition(partition, Unload(Clock.now, leader_epoch=None)))

    def kept(self):
        """Return the offsets that its replicas would restore if they were loaded."""
        states = [replay(initial_state(Settings(), INTENDED), copy.records) for copy in self.copies]
        rows = [row for state in states for row in offsets_view(state).committed]
        return {(row.group_id, row.partition): row.offset for row in rows}

    def fire_timers(self):
        while self.timers and self.timers[due := min(self.timers, key=self.timers.get)] <= Clock.now:
            del self.timers[due]
            self.handle(OnPartition(due[0], TimerFired(Clock.now, due[1])))


class Cluster:
    """The brokers, and which of them was elected for each partition."""

    def __init__(self):
        self.nodes = [Node(number) for number in range(3)]
        self.leaders, self.epochs, self.requests = {}, [0] * PARTITIONS, 0
        for partition in range(PARTITIONS):
            self.elect(partition, self.nodes[partition % 3])

    def elect(self, partition, node, unaware=None):
        """Elect a leader. All brokers but ``unaware`` learn of it, and reject writes of older leaders."""
        self.epochs[partition] += 1
        self.leaders[partition] = node
        for other in self.nodes:
            if other not in (node, unaware):
                other.resign(partition)
                other.copies[partition] = log.lead(other.copies[partition], self.epochs[partition])
        node.lead(partition, self.epochs[partition])

    def coordinator(self, group):
        """Return the broker that FindCoordinator names; every broker answers the same."""
        leaders = {partition: node.endpoint for partition, node in self.leaders.items()}
        found = find_coordinator(FindCoordinatorRequest((group,)), 4, leaders, PARTITIONS)
        return self.nodes[found.coordinators[0].node_id]

    def ask(self, node, version, body):
        """Send a request, and return its answer once the records behind it are replicated."""
        self.requests += 1
        node.handle(Request(Clock.now, id=self.requests, version=version, client_id="", client_host="/::1", body=body))
        for partition in list(node.led):  # a broker that believes that it leads does not fetch
            node.replicate(partition, [each for each in self.nodes if partition not in each.led])
        return node.answers.pop(self.requests)


class Client:
    """The workers of all groups: their epochs, the partitions that they own, and their acknowledged offsets."""

    def __init__(self, cluster):
        self.cluster, self.number = cluster, 0
        self.epochs = {(group, worker): 0 for group in GROUPS for worker in WORKERS}
        self.owned = dict.fromkeys(self.epochs, ())
        self.acknowledged = {}

    def beat(self, group, worker):
        member = group, worker
        body = ConsumerGroupHeartbeatRequest(
            group,
            member_id=worker,
            member_epoch=self.epochs[member],
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=("orders",),
            topic_partitions=(TopicPartitions(ORDERS.topic_id, self.owned[member]),) if self.owned[member] else (),
        )
        answer = self.cluster.ask(self.cluster.coordinator(group), 1, body)
        if answer.error_code is not ErrorCode.NONE:
            sys.exit(f"{worker} of {group} was fenced: {answer.error_message}")  # moving a coordinator fences no member
        self.epochs[member] = answer.member_epoch
        if answer.assignment is not None:
            self.owned[member] = tuple(each for topic in answer.assignment for each in topic.partitions)

    def commit(self, group, worker, asked=None):
        """Commit a higher offset for each owned partition. Return the names of the error codes in the answer."""
        owned = self.owned[group, worker]
        if not owned:
            return set()
        self.number += 1
        rows = tuple(OffsetCommitRequestPartition(each, committed_offset=self.number) for each in owned)
        body = OffsetCommitRequest(
            group,
            member_id=worker,
            generation_id_or_member_epoch=self.epochs[group, worker],
            topics=(OffsetCommitRequestTopic(name="orders", partitions=rows),),
        )
        answer = self.cluster.ask(asked or self.cluster.coordinator(group), 9, body)
        for row in answer.topics[0].partitions:
            if row.error_code is ErrorCode.NONE:
                self.acknowledged[group, row.partition_index] = self.number
        return {row.error_code.name for row in answer.topics[0].partitions}

    def work(self, rounds):
        """Run rounds of one second each. A member without a heartbeat for 45 of them is fenced."""
        for _ in range(rounds):
            Clock.now += 1_000
            for node in self.cluster.nodes:
                node.fire_timers()
            for group, worker in self.epochs:
                self.beat(group, worker)
                self.commit(group, worker)

    def committed(self):
        """Return the committed offsets that the coordinators hold now."""
        found = {}
        for group in GROUPS:
            body = OffsetFetchRequest((OffsetFetchRequestGroup(group),), require_stable=True)
            (row,) = self.cluster.ask(self.cluster.coordinator(group), 9, body).groups
            for each in row.topics[0].partitions:
                found[group, each.partition_index] = each.committed_offset
        return found


def main():
    cluster = Cluster()
    client = Client(cluster)
    client.work(rounds=5)
    for (group, worker), owned in client.owned.items():
        where = f"partition {partition_for(group, PARTITIONS)}, broker {cluster.coordinator(group).endpoint.node_id}"
        print(f"{group} ({where}): {worker} works on {owned}")

    group = GROUPS[0]
    partition, old = partition_for(group, PARTITIONS), cluster.coordinator(group)
    new = next(node for node in cluster.nodes if node is not old)
    cluster.elect(partition, new, unaware=old)
    print(f"partition {partition} moves to broker {new.endpoint.node_id} at leader epoch {cluster.epochs[partition]}")
    print(f"a commit to broker {old.endpoint.node_id}: {client.commit(group, WORKERS[0], asked=old)}")
    client.work(rounds=350)  # epochs and assignments survive the move

    for node in cluster.nodes:
        for place, copy in enumerate(node.copies):
            if log.due(copy):
                node.copies[place] = log.compact(copy, Clock.now, retention_ms=0)
    before, after = new.copies[partition].end, len(new.copies[partition].records)
    print(f"partition {partition}: {before} records, of which {after} are left")

    cluster.elect(partition, old)  # it has fetched, and has truncated what only it had
    client.work(rounds=5)
    if client.committed() != client.acknowledged:
        sys.exit("an acknowledged offset is lost")
    if any(node.kept() != client.acknowledged for node in cluster.nodes):
        sys.exit("a replica restores different offsets")
    print(f"no acknowledged offset is lost: {len(client.acknowledged)} offsets, the highest is {client.number}")


main()
