"""The brokers together: elections and when each broker learns of them, replication, and the routing of requests.

As in Kafka, a controller elects leaders from the in-sync copies. Followers fetch from the leader of the epoch that they
know. The high watermark is the offset that all in-sync copies have reached, and only the controller decides which
copies are in sync. An old leader that has not learnt of an election keeps running, but replicates nothing (F-CONS-07).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final, Protocol

from fencepost import host
from fencepost import log as lg
from fencepost.host import Endpoint
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    Load,
    LoadStarted,
    Outcome,
    Request,
    TaskDone,
    TimerFired,
    Topic,
    TopicsChanged,
    Unload,
)

from ...world import APPEND_ERRORS
from ..broken import Broken, demand
from .node import Led, Node, Timer
from .plan import ClusterPlan
from .promises import Promises

_FETCH_MS: Final = 40
_LONG_MS: Final = 9_000
_GONE_MS: Final = (500, 6_000)


class Place(Protocol):
    """The part of the simulation that the brokers need."""

    now: int
    rng: Random

    def later(self, delay_ms: int, what: Callable[[], None]) -> None: ...
    def note(self, text: str) -> None: ...
    def answered(self, node: Node, served: host.Served) -> None: ...
    def delay(self) -> int: ...
    def died(self, node: Node) -> None: ...


class Cluster:
    """The brokers. ``leader`` and ``epoch``: of each partition, as the controller knows them; ``in_sync``: its
    in-sync copies."""

    def __init__(self, plan: ClusterPlan, place: Place, nodes: list[Node], promises: Promises) -> None:
        self.plan = plan
        self.nodes = nodes
        self.promises = promises
        self.topics = {name: Topic(name, name.encode().ljust(16, b"\0"), size) for name, size in plan.groups.topics}
        every = frozenset(range(plan.brokers))
        self.leader: list[int | None] = [part % plan.brokers for part in range(plan.partitions)]
        self.epoch = [1] * plan.partitions
        self.in_sync = [every] * plan.partitions
        self.elections = self.stale = self.truncated = self.compactions = self.tails = 0
        self.quiet = False
        self.leader_epoch = 0  #: for ``simulate.world.Partition``; here each partition has its own epoch
        self._place = place
        self._image = 1

    def start(self) -> None:
        """Start every broker and announce the leaders."""
        for node in self.nodes:
            self.publish(node)
            for part in range(self.plan.partitions):
                self._inform(node, part)
                self._fetches(node, part)
        self._place.later(self.plan.every_ms, self._something)

    @property
    def active(self) -> bool:
        """Whether every partition has a leader that has loaded it, and no other broker believes to lead it."""
        for part, leader in enumerate(self.leader):
            if leader is None or not self.nodes[leader].leads(part):
                return False
            if any(part in node.led for node in self.nodes if node.number != leader):
                return False
        return True

    def leading(self, partition: int) -> Node | None:
        """Return the broker that was elected last, if it leads by now."""
        leader = self.leader[partition]
        return self.nodes[leader] if leader is not None and self.nodes[leader].leads(partition) else None

    def knows_all(self, node: Node, partition: int) -> bool:
        """Whether a leader knows that everything it has loaded is replicated."""
        led = node.led.get(partition)
        loaded = None if led is None else led.length
        return loaded is not None and node.broker.coordinators[partition].committed >= loaded

    def fail_over(self, gap_ms: int) -> None:
        """Elect another leader for some partition."""
        self.elect(self._place.rng.randrange(self.plan.partitions))

    # --- requests ---

    def request(self, number: int, request: Request) -> None:
        """Deliver a request to a live broker."""
        self._carry_out(self.nodes[number], request, self.nodes[number].step(request))

    def on(self, number: int, partition: int, request: Request) -> None:
        """Deliver a request for one partition, such as a transaction's marker."""
        self._carry_out(self.nodes[number], request, self.nodes[number].on(partition, request))

    def fire(self, timer: Timer) -> None:
        """Fire a coordinator's timer."""
        number, partition, key = timer
        self.feed(self.nodes[number], partition, TimerFired(self._place.now, key))

    def feed(self, node: Node, partition: int, event: Event) -> None:
        self._carry_out(node, event, node.on(partition, event))

    def leaders(self, node: Node) -> Mapping[int, Endpoint]:
        """Return the live leaders, as this broker knows them."""
        known = {part: leader for part, (_, leader) in node.view.items()}
        return {part: Endpoint(leader, "broker", 9_092) for part, leader in known.items() if self.nodes[leader].alive}

    def publish(self, node: Node) -> None:
        """Give the current topics to a broker."""
        event = TopicsChanged(self._place.now, tuple(self.topics.values()), version=self._image)
        self._carry_out(node, event, node.step(event))

    def publish_topics(self) -> None:
        self._image += 1
        for node in self.nodes:
            if node.alive:
                self.publish(node)

    def _carry_out(self, node: Node, event: object, served: host.Served) -> None:
        self._place.answered(node, served)
        for part, outcome in served.parts:
            if outcome.records:
                self._append(node, part, outcome)
            for key in outcome.tasks:
                life, led = node.life, node.led.get(part)

                def done(key=key, part=part, life=life, led=led) -> None:  # type: ignore[no-untyped-def]
                    if node.alive and node.life == life and node.led.get(part) is led and led is not None:
                        self.feed(node, part, TaskDone(self._place.now, key))

                self._place.later(self._place.delay(), done)

    # --- the log ---

    def _append(self, node: Node, part: int, outcome: Outcome) -> None:
        led = node.led[part]
        if not self.quiet and self._place.rng.random() < self.plan.groups.network.append_fails:
            self._fail(node, part, self._place.rng.choice(APPEND_ERRORS))
            return
        start = node.logs[part].end
        try:
            node.logs[part] = lg.append(node.logs[part], outcome.records, led.epoch)
        except lg.FencedEpoch:
            self._fail(node, part, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        self.promises.written(part, start, outcome.records)
        if node.number != self.leader[part]:
            self.stale += 1
        self._advance(node, part)

    def _fail(self, node: Node, part: int, error: ErrorCode) -> None:
        self.feed(node, part, AppendFailed(self._place.now, error))

    def _advance(self, node: Node, part: int) -> None:
        """Replicate what all in-sync copies have, as far as the leader knows; report whole batches to its
        coordinator."""
        led = node.led.get(part)
        if led is None:
            return
        copies = [led.ends.get(each, 0) for each in led.in_sync if each != node.number]
        log = node.logs[part] = lg.replicated(node.logs[part], lg.high_watermark(node.logs[part], copies))
        self.promises.replicated(part, log.committed)
        if led.length is None:
            return
        reached = led.length + log.committed - led.end if log.committed >= led.end else led.high_watermark
        if reached > led.high_watermark:
            led.high_watermark = reached
            self.feed(node, part, Appended(self._place.now, offset=reached))

    def _fetches(self, node: Node, part: int) -> None:
        """Let the broker fetch what its copy lacks, again and again."""
        place, life = self._place, node.life

        def fetch() -> None:
            if node.alive and node.life == life:
                slow = not self.quiet and place.rng.random() < 0.3
                self.fetch(node, part, place.rng.choice((0, 1)) if slow else None)
                place.later(place.rng.randint(_FETCH_MS // 4, _FETCH_MS * (20 if slow else 1)), fetch)

        place.later(place.rng.randint(0, _FETCH_MS), fetch)

    def fetch(self, node: Node, part: int, most: int | None) -> None:
        """Fetch from the leader of the epoch that the follower knows, if that broker still leads in it."""
        epoch, leader = node.view.get(part, (0, node.number))
        of = self.nodes[leader]
        led = of.led.get(part)
        if leader == node.number or not of.alive or led is None or led.epoch != epoch:
            return
        before = node.logs[part]
        try:
            node.logs[part] = lg.catch_up(before, of.logs[part], most)
        except lg.BehindLog as lost:
            raise Broken("F-SURV-01", f"broker {node.number} would lose replicated records: {lost}") from None
        self.truncated += node.logs[part].end < before.end
        led.ends[node.number] = node.logs[part].end
        if node.number not in led.in_sync and node.logs[part].end == of.logs[part].end and self._heard(of, part):
            self.in_sync[part] |= {node.number}
            led.in_sync = self.in_sync[part]
        self._advance(of, part)

    def _heard(self, node: Node, part: int) -> bool:
        """Whether the controller accepts this broker's word: only that of the leader in the newest epoch."""
        led = node.led.get(part)
        return led is not None and led.epoch == self.epoch[part] and self.leader[part] == node.number

    # --- elections ---

    def elect(self, part: int) -> None:
        """Elect another in-sync copy, or the same leader, in a new epoch; each broker learns of it later."""
        live = [one for one in sorted(self.in_sync[part]) if self.nodes[one].alive]
        if not live:
            self.leader[part] = None
            return
        others = [one for one in live if one != self.leader[part]]
        self.epoch[part] += 1
        self.leader[part] = self._place.rng.choice(others or live)
        self.elections += 1
        self._place.note(f"-- partition {part} is led by {self.leader[part]} in epoch {self.epoch[part]}")
        for node in self.nodes:
            self._announce(node, part)

    def _announce(self, node: Node, part: int) -> None:
        plan, rng, life = self.plan, self._place.rng, node.life
        delay = rng.randint(0, _LONG_MS if not self.quiet and rng.random() < plan.deaf else plan.news_ms)

        def hear() -> None:
            if node.alive and node.life == life:
                self._inform(node, part)

        self._place.later(delay, hear)

    def _inform(self, node: Node, part: int) -> None:
        """Tell a broker the current leader, and let it resign or load."""
        epoch, leader = self.epoch[part], self.leader[part]
        if leader is None or epoch <= node.view.get(part, (0, 0))[0]:
            return
        node.view[part] = epoch, leader
        if part in node.led:
            del node.led[part]
            self.feed(node, part, Unload(self._place.now, leader_epoch=None))
        if leader != node.number:
            return
        led = node.led[part] = Led(epoch, self.in_sync[part])
        node.logs[part] = lg.lead(node.logs[part], epoch)
        self.promises.lead(part, node.logs[part])
        self.feed(node, part, LoadStarted(self._place.now, leader_epoch=epoch))
        self._place.later(self._place.delay(), lambda: self._load(node, part, led))

    def _load(self, node: Node, part: int, led: Led) -> None:
        if node.led.get(part) is not led or not node.alive:
            return
        log = node.logs[part]
        led.length, led.end, led.high_watermark = len(log.records), log.end, log.replicated_records
        self.tails += led.high_watermark < led.length
        event = Load(self._place.now, leader_epoch=led.epoch, records=log.records, committed=led.high_watermark)
        self.feed(node, part, event)
        self.promises.loaded(part, node.broker.coordinators[part])
        if log.committed == log.end and led.high_watermark < led.length:
            raise Broken("F-LOAD-01", "the whole log is replicated, but some records are not")
        self._advance(node, part)

    # --- what happens to brokers ---

    def _something(self) -> None:
        if self.quiet:
            return
        rng = self._place.rng
        part = rng.randrange(self.plan.partitions)
        what = rng.choice(("elect", "elect", "shrink", "compact", "compact", "crash"))
        if what == "elect":
            self.elect(part)
        elif what == "shrink":
            self._shrink(part)
        elif what == "compact":
            self._compact(part)
        else:
            self._crash(rng.choice(self.nodes))
        self._place.later(rng.randint(1, 2 * self.plan.every_ms), self._something)

    def _compact(self, part: int) -> None:
        """Let every broker clean its own copy; tombstones stay until all copies have them."""
        for node in self.nodes:
            known = [lg.parting(each.logs[part], node.logs[part]) for each in self.nodes if each is not node]
            shorter = lg.compact(node.logs[part], self._place.now, readers=known)
            self.compactions += shorter.rows != node.logs[part].rows
            node.logs[part] = shorter

    def _shrink(self, part: int) -> None:
        """Take the most lagging follower out of sync; at least two copies stay in sync."""
        node = self.leading(part)
        if node is None or not self._heard(node, part) or len(self.in_sync[part]) <= 2:
            return
        followers = sorted(self.in_sync[part] - {node.number})
        self.in_sync[part] -= {min(followers, key=lambda one: node.led[part].ends.get(one, 0))}
        node.led[part].in_sync = self.in_sync[part]
        self._advance(node, part)

    def _crash(self, node: Node) -> None:
        """Crash a broker and restart it later; other brokers take over its partitions. At most two are down at a time,
        and at least one stays up."""
        if not node.alive or sum(each.alive for each in self.nodes) <= max(1, len(self.nodes) - 2):
            return
        node.alive = False
        node.led, node.armed = {}, {}
        self._place.died(node)
        self._place.note(f"-- broker {node.number} dies")
        for part in range(self.plan.partitions):
            if len(self.in_sync[part]) > 1:
                self.in_sync[part] -= {node.number}
            leader = self.leading(part)
            if leader is not None and self._heard(leader, part):
                leader.led[part].in_sync = self.in_sync[part]
                self._advance(leader, part)
            if self.leader[part] == node.number:
                self.elect(part)
        self._place.later(self._place.rng.randint(*_GONE_MS), lambda: self._return(node))

    def _return(self, node: Node) -> None:
        if node.alive:
            return
        node.restart()
        self._place.note(f"-- broker {node.number} is back")
        self.publish(node)
        for part in range(self.plan.partitions):
            if self.leader[part] is None or not self.nodes[self.leader[part] or 0].alive:
                self.elect(part)
            else:
                if self.leader[part] == node.number:
                    self.elect(part)
                self._announce(node, part)
            self._fetches(node, part)

    def calm_down(self) -> None:
        """Stop all faults."""
        self.quiet = True
        for node in self.nodes:
            self._return(node)
            for part in range(self.plan.partitions):
                self._announce(node, part)

    def settled(self) -> None:
        """Check that all copies end up equal, and that no acknowledged value is missing."""
        for part in range(self.plan.partitions):
            node = self.leading(part)
            assert node is not None
            for each in self.nodes:
                self.fetch(each, part, None)
            for each in self.nodes:
                self.fetch(each, part, None)
            log = node.logs[part]
            demand(
                log.committed == log.end, "F-RT-04", f"partition {part} is replicated to {log.committed} of {log.end}"
            )
            self.promises.loaded(part, node.broker.coordinators[part])
            for each in self.nodes:
                self.promises.copied(part, each.logs[part], log)
