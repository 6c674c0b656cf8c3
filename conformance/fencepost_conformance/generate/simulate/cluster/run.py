"""Run a plan of brokers, members and committing clients, and check every promise on the way.

The network may lose requests and answers. Brokers learn late of elections, crash and come back. Copies lag, are
truncated and compacted. When the environment is quiet, every group must settle, every partition must be committed by
its owner, every transaction must end, and all copies must become equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from fencepost import coordinator
from fencepost.host import FindCoordinatorRequest, FoundCoordinator, Served, find_coordinator
from fencepost.member.events import CoordinatorFound, LookupFailed, RequestLost, Send
from fencepost.protocol import offset_messages as o
from fencepost.protocol.consumer_view import ConsumerGroupView
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import Event, Request, TimerKey
from fencepost.protocol.messages import RequestBody, ResponseBody
from fencepost.protocol.view import GroupView
from fencepost.sharding import partition_for

from ..broken import Broken, demand
from ..choices import RandomChoices
from ..clockwork import Clockwork
from ..consumer_group_rules import check_consumer_group
from ..consumer_host import ConsumerHost
from ..disruptions import disrupt
from ..group_rules import check_group
from ..host import AnyHost, Host
from ..liveness import Settling
from ..network import Network
from ..plan import HostPlan, NetworkPlan, Plan
from ..programs import Programs
from .brokers import Cluster
from .node import Node, Timer
from .offset_clients import Auditor, OffsetClient, Producer, Then
from .plan import ClusterPlan
from .promises import Promises

_PATIENCE_MS: Final = 6_000
_LOOKUP_VERSION: Final = 6
#: How long the run continues after all groups have settled, in ms.
_AFTERWARDS_MS: Final = 4_000


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """The result of a plan. ``counts``: how often each kind of event happened; ``broken``: the first broken promise;
    ``last``: the log lines before it."""

    plan: ClusterPlan
    events: int
    settled_ms: int
    counts: Mapping[str, int]
    broken: Broken | None = None
    last: tuple[str, ...] = ()

    def __str__(self) -> str:
        plan = self.plan
        head = f"seed {plan.seed}: {plan.brokers} brokers, {plan.partitions} partitions, {self.events} events"
        if self.broken is None:
            return f"{head}, settled after {self.settled_ms} ms"
        return "\n".join((head, f"broken: {self.broken}", "last events:", *self.last))


def simulate_cluster(plan: ClusterPlan) -> ClusterReport:
    """Run the plan to its end, or to the first broken promise."""
    return ClusterSimulation(plan).run()


class ClusterNetwork(Network):
    """The network between members and the broker that each believes to be its coordinator."""

    def __init__(self, world: ClusterSimulation, plan: NetworkPlan) -> None:
        super().__init__(world, plan)
        self._cluster_world = world
        self._to: dict[tuple[str, int, int], int | None] = {}

    def send(self, host: AnyHost, command: Send) -> None:
        self._to[host.plan.name, host.process, command.request_id] = host.member.coordinator.node
        super().send(host, command)

    def _arrive(self, host: AnyHost, process: int, number: int, body: RequestBody) -> None:
        world, node = self._cluster_world, self._to.pop((host.plan.name, process, number), None)
        if node is None or not world.cluster.nodes[node].alive:
            host.receive(process, RequestLost(world.now, request_id=number))
            return
        world.target = node
        super()._arrive(host, process, number, body)

    def find_coordinator(self, host: AnyHost) -> None:
        process, world = host.process, self._cluster_world

        def answer() -> None:
            row = world.row_of(host.plan.settings.group_id)
            if row is not None and row.error_code is ErrorCode.NONE:
                host.receive(process, CoordinatorFound(world.now, node=row.node_id))
            else:
                host.receive(process, LookupFailed(world.now, ErrorCode.COORDINATOR_NOT_AVAILABLE))

        world.later(self.delay(), answer)

    def lost(self, numbers: Sequence[int]) -> None:
        """Lose these requests, since the broker that had them has crashed."""
        for number in numbers:
            asker = self._askers.pop(number, None)
            if asker is not None:
                host, process, request_id = asker
                host.receive(process, RequestLost(self._cluster_world.now, request_id=request_id))


@dataclass
class Asked:
    """An open request of a committing client; ``elected``: the broker was the elected leader when the request
    arrived."""

    then: Then
    node: Node
    body: RequestBody
    partitions: frozenset[int]
    elected: bool
    legitimate: bool


class ClusterSimulation(Programs, Clockwork[Timer]):
    """One run. ``target``: the broker that gets the next request of a member."""

    network: ClusterNetwork

    def __init__(self, plan: ClusterPlan) -> None:
        super().__init__(f"cluster run {plan.seed}")
        self.cluster_plan = plan
        self.plan: Plan = plan.groups
        self.promises = Promises(plan.partitions)
        choices = RandomChoices(Random(f"cluster choices {plan.seed}"))
        nodes = [
            Node(number, plan.partitions, plan.groups.settings, plan.groups.profile, choices)
            for number in range(plan.brokers)
        ]
        self.cluster = Cluster(plan, self, nodes, self.promises)
        self.network = ClusterNetwork(self, plan.groups.network)
        self.core = Groups(self)
        self.target = 0
        self.events = 0
        self.quiet = False
        self.hosts: list[AnyHost] = []
        self.offset_clients: list[OffsetClient] = []
        self._asked: dict[int, Asked] = {}
        self._members: dict[int, int] = {}  #: open requests of members, and their broker
        self._requests = 1_000_000_000  #: ids of committing clients' requests, above those of members
        self._settling = Settling(self)

    # --- the loop ---

    def run(self) -> ClusterReport:
        broken: Broken | None = None
        producers: list[Producer] = []
        auditor: Auditor | None = None
        try:
            self.cluster.start()
            self.hosts += [self.host(each) for each in self.plan.hosts]
            for each in self.hosts:
                self.later(each.plan.start_ms, lambda host=each: self._start(host))  # type: ignore[misc]
            producers += [Producer(self, number) for number in range(self.cluster_plan.transactions)]
            auditor = Auditor(self)
            for disruption in self.plan.disruptions:
                self.later(disruption.at_ms, lambda what=disruption: disrupt(self, what))  # type: ignore[misc]
            self._until(self.plan.chaos_ms)
            self._calm_down()
            self._settling.run(self._until)
            self._until(self.now + _AFTERWARDS_MS)
            self._at_rest(producers)
        except Broken as found:
            broken = found
        cluster = self.cluster
        counts = {
            "elections": cluster.elections,
            "stale_appends": cluster.stale,
            "truncations": cluster.truncated,
            "compactions": cluster.compactions,
            "loads_with_a_tail": cluster.tails,
            "commits": self.promises.commits,
            "reads": self.promises.reads,
            "unstable": self.promises.unstable,
            "transactions": sum(sum(each.ended) for each in producers),
            "rows": 0 if auditor is None else auditor.rows,
        }
        last = tuple(self._lines) if broken else ()
        return ClusterReport(self.cluster_plan, self.events, self._settling.settled_ms, counts, broken, last)

    @property
    def timers(self) -> Mapping[Timer, int]:
        return {timer: at for node in self.cluster.nodes for timer, at in node.armed.items()}

    def fire(self, timer: Timer) -> None:
        self.cluster.fire(timer)

    def _calm_down(self) -> None:
        self.note("-- the environment is quiet")
        self.quiet = True
        self._quieten()
        self.cluster.calm_down()

    def _at_rest(self, producers: Sequence[Producer]) -> None:
        waiting = [each.group for each in producers if each.open]
        demand(not waiting, "LIV-11", f"the transactions of {waiting} have not ended")
        for offset_client in self.offset_clients:
            if offset_client.host in self.hosts and offset_client.host.takes_part:
                left = offset_client.host.member.assignment - offset_client.done
                demand(not left, "LIV-05", f"{offset_client.host.plan.name} could not commit {sorted(left)}")
        self.cluster.settled()

    # --- programs ---

    def host(self, plan: HostPlan) -> AnyHost:
        made: AnyHost = ConsumerHost(plan, self) if plan.is_consumer else Host(plan, self)
        self.offset_clients.append(OffsetClient(self, made))
        return made

    def adopted(self, host: AnyHost) -> None:
        """Check nothing: two coordinators may each have members that believe to own; commits tell them apart."""

    def life(self, host: AnyHost) -> tuple[int, int]:
        return 0, 0

    # --- requests ---

    @property
    def broker(self) -> Cluster:
        return self.cluster

    def publish_topics(self) -> None:
        self.cluster.publish_topics()

    def delay(self) -> int:
        return self.network.delay()

    def feed(self, event: Event) -> None:
        """Send a member's request to ``target``."""
        assert isinstance(event, Request)
        self._members[event.id] = self.target
        self.cluster.request(self.target, event)

    def answered(self, node: Node, served: Served) -> None:
        """Handle the outcome of a broker's step."""
        self.events += 1
        for part, outcome in served.parts:
            self._check_groups(node, part, {record.key.group for record in outcome.records})
        members = []
        for reply in served.replies:
            asked = self._asked.pop(reply.request_id, None)
            if asked is not None:
                self._answer(asked, reply.body)
            elif self._members.pop(reply.request_id, None) is not None:
                members.append(reply)
        self.network.answer(members)

    def died(self, node: Node) -> None:
        """Lose the requests that waited at a crashed broker, and the connections to it."""
        for number, asked in list(self._asked.items()):
            if asked.node is node:
                del self._asked[number]
                self.later(self.delay(), lambda then=asked.then: then(None, False))  # type: ignore[misc]
        gone = [number for number, at in self._members.items() if at == node.number]
        for number in gone:
            del self._members[number]
        self.network.lost(gone)

    def ask(self, node: int | None, version: int, body: RequestBody, then: Then) -> None:
        """Send a request to a broker; ``then`` is called once, with the answer or with None."""

        def arrive() -> None:
            place = None if node is None else self.cluster.nodes[node]
            if place is None or not place.alive or self.rng.random() < self.network.plan.lose:
                self.later(_PATIENCE_MS // 10, lambda: then(None, False))
                return
            self._requests += 1
            request = self._request(version, body)
            self._await(place, body, then, self._partitions(body))
            self.cluster.request(place.number, request)

        self.later(self.delay(), arrive)

    def mark(self, partition: int, body: o.WriteTxnMarkerRequest, then: Then) -> None:
        """Let the leader of the partition write the end of a transaction."""

        def arrive() -> None:
            place = self.cluster.leading(partition)
            if place is None or self.rng.random() < self.network.plan.lose:
                self.later(_PATIENCE_MS // 10, lambda: then(None, False))
                return
            self._requests += 1
            request = self._request(1, body)
            self._await(place, body, then, frozenset({partition}))
            self.cluster.on(place.number, partition, request)

        self.later(self.delay(), arrive)

    def _request(self, version: int, body: RequestBody) -> Request:
        return Request(self.now, id=self._requests, version=version, client_id="c", client_host="/c", body=body)

    def _await(self, node: Node, body: RequestBody, then: Then, partitions: frozenset[int]) -> None:
        number = self._requests
        elected = all(self.cluster.leading(each) is node for each in partitions)
        self._asked[number] = Asked(then, node, body, partitions, elected, legitimate=self._may_commit(node, body))

        def give_up() -> None:
            asked = self._asked.get(number)
            if asked is not None:
                demand(not self.quiet or not asked.elected, "LIV-04", f"request {number} is not answered: {asked.body}")
                asked.then(None, False)
                asked.then = _nothing

        self.later(_PATIENCE_MS, give_up)

    def _answer(self, asked: Asked, body: ResponseBody) -> None:
        elected = asked.elected and all(self.cluster.leading(each) is asked.node for each in asked.partitions)
        if isinstance(asked.body, o.OffsetFetchRequest) and not asked.body.require_stable:
            # the elected leader has all replicated records, but may not know yet how many are replicated (F-LOAD-01,
            # F-RT-11)
            elected = elected and all(self.cluster.knows_all(asked.node, each) for each in asked.partitions)
        if isinstance(body, o.OffsetCommitResponse):
            accepted = [row for topic in body.topics for row in topic.partitions if row.error_code is ErrorCode.NONE]
            text = f"broker {asked.node.number} has accepted a commit of a fenced client: {asked.body}"
            demand(not accepted or asked.legitimate, "INV-FENCE-02", text)
        if self.rng.random() < self.network.plan.lose:
            self.later(_PATIENCE_MS // 10, lambda: asked.then(None, False))
        else:
            self.later(self.delay(), lambda: asked.then(body, elected))

    def _partitions(self, body: RequestBody) -> frozenset[int]:
        """Return the partitions of the groups in a request about offsets. Its answer is believed if one broker leads
        all."""
        names = [group.group_id for group in body.groups] if isinstance(body, o.OffsetFetchRequest) else []
        one = getattr(body, "group_id", None)
        names += [one] if isinstance(one, str) else []
        return frozenset(partition_for(name, self.cluster_plan.partitions) for name in names)

    def _may_commit(self, node: Node, body: RequestBody) -> bool:
        """Whether the committing client is a current member, in its generation or at most at its epoch
        (INV-FENCE-02)."""
        if not isinstance(body, o.OffsetCommitRequest):
            return True
        state = node.broker.coordinators[partition_for(body.group_id, self.cluster_plan.partitions)]
        epoch = body.generation_id_or_member_epoch
        group = coordinator.view(state, body.group_id)
        if group is not None:
            members = {member.member_id for member in group.members}
            return (epoch < 0 and not members) or (body.member_id in members and epoch == group.generation_id)
        consumer = coordinator.consumer_view(state, body.group_id)
        if consumer is None:
            return epoch < 0
        epochs = {member.member_id: member.member_epoch for member in consumer.members}
        return epoch <= epochs.get(body.member_id, -1) if epochs else epoch < 0

    # --- what is known ---

    def look_up(self, group_id: str) -> int | None:
        row = self.row_of(group_id)
        return row.node_id if row is not None and row.error_code is ErrorCode.NONE else None

    def row_of(self, group_id: str) -> FoundCoordinator | None:
        """Return some broker's answer to FindCoordinator, or None if no broker is up."""
        live = [node for node in self.cluster.nodes if node.alive]
        if not live:
            return None
        request = FindCoordinatorRequest((group_id,))
        leaders = self.cluster.leaders(self.rng.choice(live))
        (row,) = find_coordinator(request, _LOOKUP_VERSION, leaders, self.cluster_plan.partitions).coordinators
        return row

    def nodes(self) -> list[Node]:
        return self.cluster.nodes

    def names(self) -> list[str]:
        groups = {each.plan.settings.group_id for each in self.hosts}
        return sorted(groups | {f"tx{number}" for number in range(self.cluster_plan.transactions)} | {"nobody"})

    def _check_groups(self, node: Node, part: int, names: set[str]) -> None:
        state = node.broker.coordinators[part]
        for name in names:
            group, consumer = coordinator.view(state, name), coordinator.consumer_view(state, name)
            if group is not None:
                check_group(group)
            if consumer is not None:
                check_consumer_group(consumer)


class Groups:
    """The groups as their leading coordinators have them, for ``liveness``."""

    def __init__(self, world: ClusterSimulation) -> None:
        self._world = world
        self.unanswered: Sequence[Request] = ()  #: each request of a committing client has its own timeout

    @property
    def groups(self) -> dict[str, GroupView]:
        found = self._each(coordinator.view)
        return {name: view for name, view in found if isinstance(view, GroupView)}

    @property
    def consumer_groups(self) -> dict[str, ConsumerGroupView]:
        found = self._each(coordinator.consumer_view)
        return {name: view for name, view in found if isinstance(view, ConsumerGroupView)}

    @property
    def armed(self) -> dict[TimerKey, int]:
        cluster = self._world.cluster
        return {
            key: at
            for node in cluster.nodes
            for (_, part, key), at in node.armed.items()
            if cluster.leading(part) is node
        }

    def _each(self, view: Callable[..., object]) -> list[tuple[str, object]]:
        cluster, found = self._world.cluster, []
        for part in range(self._world.cluster_plan.partitions):
            node = cluster.leading(part)
            if node is not None:
                state = node.broker.coordinators[part]
                found += [(name, view(state, name)) for name in state.groups]
        return found


def _nothing(body: ResponseBody | None, elected: bool) -> None:
    """Ignore the answer."""
