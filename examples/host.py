"""Three brokers host the coordinators of four partitions of groups. A partition moves, the old leader has not heard of
it, logs are compacted and copies catch up; what was acknowledged is there in the end.

Run it with ``python examples/host.py``. Nothing but Fencepost is needed: the logs are in memory, and
time is a number.
"""

import sys

from fencepost import (
    INTENDED,
    Appended,
    AppendFailed,
    ConsumerGroupHeartbeatRequest,
    Endpoint,
    ErrorCode,
    FencedEpoch,
    FindCoordinatorRequest,
    Load,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OnPartition,
    PartitionLog,
    RandomChoices,
    Request,
    SetTimer,
    Settings,
    TaskDone,
    TimerFired,
    Topic,
    TopicPartitions,
    TopicsChanged,
    Unload,
    find_coordinator,
    host,
    initial_state,
    log,
    offsets_view,
    partition_for,
    replay,
)

PARTITIONS = 4
ORDERS = Topic("orders", b"orders-topic-id!", partitions=3)
GROUPS, WORKERS = ("billing", "mailing", "search", "stock"), ("ada", "bob")


class Clock:
    """The time of all events, in ms."""

    now = 0


class Node:
    """A broker: its coordinators, its copies of their logs, and which of them it believes to lead."""

    def __init__(self, number):
        self.endpoint = Endpoint(number, f"broker-{number}.example", 9092)
        self.broker = host.initial_broker(PARTITIONS, Settings(), INTENDED)
        self.copies = [PartitionLog()] * PARTITIONS
        self.led = {}  # partition to leader epoch, and by how much the log's offsets are ahead of the coordinator's
        self.timers, self.answers = {}, {}
        self.handle(TopicsChanged(Clock.now, (ORDERS,)))

    def handle(self, event):
        """A step; what it asks for is done."""
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
        except FencedEpoch:  # this copy knows of another leader; the core takes the step back
            self.handle(OnPartition(partition, AppendFailed(Clock.now, ErrorCode.NOT_LEADER_OR_FOLLOWER)))

    def replicate(self, partition, followers):
        """They fetch. What all of them have is replicated, and answers that waited for it are given."""
        try:
            for node in followers:
                node.copies[partition] = log.catch_up(node.copies[partition], self.copies[partition])
        except FencedEpoch as refused:
            print(f"broker {self.endpoint.node_id} leads partition {partition} no more: {refused}")
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
        """Whoever waits is told NOT_COORDINATOR."""
        if self.led.pop(partition, None) is not None:
            self.handle(OnPartition(partition, Unload(Clock.now, leader_epoch=None)))

    def kept(self):
        """The offsets that its copies would give if they were loaded."""
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
        """All but the ``unaware`` hear of it, and let nobody older write any more."""
        self.epochs[partition] += 1
        self.leaders[partition] = node
        for other in self.nodes:
            if other not in (node, unaware):
                other.resign(partition)
                other.copies[partition] = log.lead(other.copies[partition], self.epochs[partition])
        node.lead(partition, self.epochs[partition])

    def coordinator(self, group):
        """As any broker tells it."""
        leaders = {partition: node.endpoint for partition, node in self.leaders.items()}
        found = find_coordinator(FindCoordinatorRequest((group,)), 4, leaders, PARTITIONS)
        return self.nodes[found.coordinators[0].node_id]

    def ask(self, node, version, body):
        """The answer, once all that it says is replicated."""
        self.requests += 1
        node.handle(Request(Clock.now, id=self.requests, version=version, client_id="", client_host="/::1", body=body))
        for partition in list(node.led):  # a broker that believes to lead fetches from nobody
            node.replicate(partition, [each for each in self.nodes if partition not in each.led])
        return node.answers.pop(self.requests)


class Client:
    """The workers of all groups: their epochs, what they own, and what was acknowledged to them."""

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
            sys.exit(f"{worker} of {group} was fenced: {answer.error_message}")  # no move of a coordinator does that
        self.epochs[member] = answer.member_epoch
        if answer.assignment is not None:
            self.owned[member] = tuple(each for topic in answer.assignment for each in topic.partitions)

    def commit(self, group, worker, asked=None):
        """For all that it owns, at a higher number each time. Returns the names of the codes of the answer."""
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
        """A round is a second; who is silent for 45 of them is fenced."""
        for _ in range(rounds):
            Clock.now += 1_000
            for node in self.cluster.nodes:
                node.fire_timers()
            for group, worker in self.epochs:
                self.beat(group, worker)
                self.commit(group, worker)

    def committed(self):
        """What the coordinators hold now."""
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
    client.work(rounds=350)  # as if nothing had happened: epochs and assignments are those from before

    for node in cluster.nodes:
        for place, copy in enumerate(node.copies):
            if log.due(copy):
                node.copies[place] = log.compact(copy, Clock.now, retention_ms=0)
    before, after = new.copies[partition].end, len(new.copies[partition].records)
    print(f"partition {partition}: {before} records, of which {after} are left")

    cluster.elect(partition, old)  # it has fetched, and has cut off what nobody else had
    client.work(rounds=5)
    if client.committed() != client.acknowledged:
        sys.exit("something that was acknowledged is lost")
    if any(node.kept() != client.acknowledged for node in cluster.nodes):
        sys.exit("a copy says something else")
    print(f"nothing acknowledged is lost: {len(client.acknowledged)} offsets, the highest {client.number}")


main()
