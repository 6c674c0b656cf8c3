"""The steps of a trace whose clients use the classic protocol."""

from __future__ import annotations

from random import Random

from fencepost.protocol import messages as m
from fencepost.protocol.records import Record
from fencepost.protocol.view import GroupState

from . import hostile, preload
from .clients import Client, Phase
from .steps import Steps, Weighted
from .world import World


class ClassicSteps(Steps):
    """The kinds of step and how often each is drawn. ``clients`` are those of the world."""

    def __init__(self, world: World, rng: Random, clients: list[Client]) -> None:
        self.clients = clients
        super().__init__(world, rng)

    def _weighted(self) -> list[Weighted]:
        mood = self._world.plan.mood
        return [
            (60 * (1 - mood.hostile), self._client),
            (60 * mood.hostile, self.forge),
            (60 * mood.duplicate, self.duplicate),
            (2, self.request_of_replaced_member),
            (10, self._wait),
            (6, self._replicate),
            (mood.admin, self._admin),
            (mood.fail_over, self._fail_over),
        ]

    def preloaded(self) -> list[Record]:
        return preload.preloaded(self._rng, self._world.plan, self.clients)

    def _client(self) -> None:
        """Let a client do its next action; if all clients wait, let time pass."""
        world, rng = self._world, self._rng
        order = list(self.clients)
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

    def forge(self) -> None:
        world, rng = self._world, self._rng
        client = rng.choice(self.clients)
        make = rng.choices((hostile.join, hostile.sync, hostile.heartbeat, hostile.leave), (4, 3, 2, 3))[0]
        version, body = make(rng, world, client)
        denied = frozenset({getattr(body, "group_id", "")}) if rng.random() < 0.03 else frozenset()
        # sometimes the client takes the answer for its own and continues from there
        if rng.random() < 0.3 and not denied:
            world.request(version, body, client)
        else:
            world.request(version, body, host=(client.plan.client_id, "/127.0.0.77"), denied=denied)

    def duplicate(self) -> None:
        """Send a request again, as a retry or a duplicating network would."""
        client = self._rng.choice(self.clients)
        if client.last is None:
            return self._client()
        version, body = client.last
        return self._repeat(client, version, body)

    def _repeat(self, client: Client, version: int, body: m.RequestBody) -> None:
        if self._rng.random() < 0.5:
            self._world.request(version, body, client)
        else:
            self._world.request(version, body, host=(client.plan.client_id, client.plan.client_host))

    def request_of_replaced_member(self) -> None:
        """Send a request of a replaced static member whose new id no answer has shown yet (C-STATIC-17)."""
        world, rng = self._world, self._rng
        for client in self.clients:
            view = world.groups.get(client.plan.group_id)
            if view is None or view.state is not GroupState.STABLE:
                continue
            for row in view.members:
                if row.awaiting_join:
                    instance_id = rng.choice((None, row.group_instance_id))
                    body = m.HeartbeatRequest(
                        view.group_id,
                        generation_id=view.generation_id,
                        member_id=row.member_id,
                        group_instance_id=instance_id,
                    )
                    world.request(4, body, host=(row.client_id, row.client_host))
                    return
        self._client()

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
