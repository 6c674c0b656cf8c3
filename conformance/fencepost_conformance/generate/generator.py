"""Make a trace from a seed, online: the next event is drawn with the coordinator's present state in view.

Most steps are what clients, time and log do of themselves; so groups grow, become Stable and rebalance. The rest is
drawn to go wrong. What a step is drawn from depends on the seed alone: no clock, no hash order, no set is iterated
unsorted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from fencepost.protocol import messages as m
from fencepost.protocol.events import Event, TimerFired
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost.protocol.settings import Profile, Settings
from fencepost.protocol.view import GroupState

from ..targets.base import Observation
from . import hostile
from .clients import Client, Phase
from .plan import Plan, draw_plan, offered
from .world import CoreRaised, World

DEFAULT_STEPS = 150


@dataclass(frozen=True, slots=True)
class Generated:
    """A trace and what the core did at each event.

    ``failure``: the core raised this at the last event, which then has no observation.
    """

    seed: int
    settings: Settings
    profile: Profile
    events: tuple[Event, ...]
    observations: tuple[Observation, ...]
    failure: str | None = None


def generate(seed: int, profile: Profile, steps: int = DEFAULT_STEPS) -> Generated:
    """The trace of ``seed`` with at least ``steps`` events (a failed append may add some more)."""
    rng = Random(seed)
    plan = draw_plan(rng)
    world = World(plan, profile, rng, [Client(client) for client in plan.clients])
    failure = None
    try:
        _Steps(world, rng).run(steps)
    except CoreRaised as raised:
        failure = str(raised)
    return Generated(seed, plan.settings, profile, tuple(world.events), tuple(world.observations), failure)


class _Steps:
    """The kinds of step and how often each is drawn."""

    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng
        mood = world.plan.mood
        weighted: list[tuple[float, Callable[[], None]]] = [
            (60 * (1 - mood.hostile), self._client),
            (60 * mood.hostile, self._hostile),
            (60 * mood.duplicate, self._duplicate),
            (2, self._untold),
            (10, self._wait),
            (6, self._replicate),
            (mood.admin, self._admin),
            (mood.fail_over, self._fail_over),
        ]
        self._kinds = [kind for _, kind in weighted]
        self._weights = [weight for weight, _ in weighted]

    def run(self, steps: int) -> None:
        world, rng = self._world, self._rng
        if rng.random() < 0.03:  # requests before the partition is owned (F-RT-02)
            self._client()
            self._hostile()
        self._begin()
        while len(world.events) < steps:
            due = world.due()
            if due and rng.random() >= world.plan.mood.late_timers:
                world.feed(TimerFired(world.now, rng.choice(due)))
            elif not world.owned:
                self._not_owned()
            else:
                rng.choices(self._kinds, self._weights)[0]()

    def _begin(self) -> None:
        world, rng = self._world, self._rng
        records = _preloaded(rng, world.plan, world.clients) if world.plan.preloaded else []
        if rng.random() < 0.1:
            world.start_loading()
            if rng.random() < 0.5:
                self._client()
        world.load(records)

    def _client(self) -> None:
        """A client does what comes next; if all of them wait, time passes."""
        world, rng = self._world, self._rng
        order = list(world.clients)
        rng.shuffle(order)
        for client in order:
            if client.silent:
                client.silent = rng.random() < 0.9
                continue
            wanted = client.next_request(rng, world.plan.mood.restart)
            if wanted is not None:
                if rng.random() < 0.3:
                    world.now += rng.randint(1, 200)
                world.request(*wanted, client)
                if client.phase is Phase.STABLE and rng.random() < 0.3:
                    self._wait()
                return
        self._wait()

    def _hostile(self) -> None:
        world, rng = self._world, self._rng
        client = rng.choice(world.clients)
        make = rng.choices((hostile.join, hostile.sync, hostile.heartbeat, hostile.leave), (4, 3, 2, 3))[0]
        version, body = make(rng, world, client)
        denied = frozenset({getattr(body, "group_id", "")}) if rng.random() < 0.03 else frozenset()
        # now and then the client takes the answer for its own and goes on from there
        if rng.random() < 0.3 and not denied:
            world.request(version, body, client)
        else:
            world.request(version, body, host=(client.plan.client_id, "/127.0.0.77"), denied=denied)

    def _duplicate(self) -> None:
        """A request arrives again: by a retry, or a network that delivers twice."""
        client = self._rng.choice(self._world.clients)
        if client.last is None:
            return self._client()
        version, body = client.last
        return self._repeat(client, version, body)

    def _repeat(self, client: Client, version: int, body: m.RequestBody) -> None:
        if self._rng.random() < 0.5:
            self._world.request(version, body, client)
        else:
            self._world.request(version, body, host=(client.plan.client_id, client.plan.client_host))

    def _untold(self) -> None:
        """Somebody speaks for a replaced static member whose new id is not announced yet (C-STATIC-17)."""
        world, rng = self._world, self._rng
        for client in world.clients:
            view = world.groups.get(client.plan.group_id)
            if view is None or view.state is not GroupState.STABLE:
                continue
            for row in view.members:
                if row.awaiting_join:
                    instance_id = rng.choice((None, row.group_instance_id))
                    body = m.HeartbeatRequest(view.group_id, view.generation_id, row.member_id, instance_id)
                    world.request(4, body, host=(row.client_id, row.client_host))
                    return
        self._client()

    def _wait(self) -> None:
        """Time passes: a little, to just before the next deadline, to it, or beyond it."""
        world, rng = self._world, self._rng
        deadline = world.next_deadline()
        draw = rng.random()
        if deadline is None or draw < 0.15:
            world.now += rng.choice((1, 10, 500, 1_000, 3_000))
        elif draw < 0.30:
            world.now = max(world.now, deadline - 1)
        elif draw < 0.85:
            world.now = deadline
        else:
            world.now = deadline + rng.choice((1, 100, 5_000))

    def _replicate(self) -> None:
        world, rng = self._world, self._rng
        if not world.unreplicated:
            return self._client()
        end = len(world.log)
        return world.replicate(end if rng.random() < 0.7 else rng.randint(world.replicated + 1, end))

    def _admin(self) -> None:
        world, rng = self._world, self._rng
        draw = rng.random()
        if draw < 0.45:
            version, body = hostile.describe(rng, world)
        elif draw < 0.70:
            version, body = hostile.list_groups(rng)
        else:
            version, body = hostile.delete(rng, world)
        denied = frozenset({hostile.group_id(rng, world)}) if rng.random() < 0.08 else frozenset()
        world.request(version, body, denied=denied)

    def _fail_over(self) -> None:
        self._world.lose(known_epoch=self._rng.random() < 0.8)

    def _not_owned(self) -> None:
        """Between losing the partition and having loaded it again."""
        world, rng = self._world, self._rng
        draw = rng.random()
        if draw < 0.3:
            self._client()
        elif draw < 0.4:
            self._hostile()
        elif draw < 0.45:
            self._admin()
        elif not world.loading and draw < 0.7:
            world.start_loading()
        elif world.loading and draw < 0.5:
            world.fail_loading()
        else:
            if not world.loading:
                world.epoch += 1
            world.load(self._surviving())

    def _surviving(self) -> list[Record]:
        """What the next coordinator finds: perhaps without what was not replicated, perhaps compacted."""
        world, rng = self._world, self._rng
        log = world.log[: rng.randint(world.replicated, len(world.log))] if rng.random() < 0.5 else list(world.log)
        if rng.random() < 0.5:
            last = {record.key: n for n, record in enumerate(log)}
            keep_tombstones = rng.random() < 0.5
            log = [
                record
                for n, record in enumerate(log)
                if last[record.key] == n and (keep_tombstones or record.value is not None)
            ]
        return log


def _preloaded(rng: Random, plan: Plan, clients: list[Client]) -> list[Record]:
    """Groups of an earlier coordinator; their members are clients that go on as if nothing happened."""
    records = []
    for group_id in plan.groups:
        if rng.random() < 0.3:
            continue
        inside = [c for c in clients if c.plan.group_id == group_id and rng.random() < 0.8]
        generation = rng.choice((1, 7, 1_000))
        used: set[str | None] = set()
        members = []
        for n, client in enumerate(inside):
            if client.plan.instance_id in used:
                continue
            if client.plan.instance_id is not None:
                used.add(client.plan.instance_id)
            client.member_id, client.generation, client.phase = (
                f"{client.plan.client_id}-old-{n}",
                generation,
                Phase.STABLE,
            )
            offers = offered(client.plan, 0)
            client.protocol_name = inside[0].plan.protocols[0]
            metadata = next((p.metadata for p in offers if p.name == client.protocol_name), offers[0].metadata)
            members.append(
                GroupMetadataMember(
                    client.member_id, client.plan.instance_id, client.plan.client_id, client.plan.client_host,
                    rng.choice((-1, client.plan.rebalance_timeout_ms)), client.plan.session_timeout_ms,
                    metadata, b"old %d" % n,
                )
            )  # fmt: skip
        leader = rng.choice(members).member_id if members else None
        for client in inside:
            client.leads = client.member_id == leader
            client.members = tuple(member.member_id for member in members)
        records.append(
            Record(
                GroupMetadataKey(group_id),
                GroupMetadataValue(
                    inside[0].plan.protocol_type if inside else rng.choice(("consumer", "")),
                    generation,
                    inside[0].plan.protocols[0] if inside else None,
                    leader,
                    rng.choice((-1, 0, 1)),
                    tuple(members),
                ),
            )
        )
    return records
