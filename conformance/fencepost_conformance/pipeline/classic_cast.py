"""Clients of the classic protocol over the wire, and who forges their requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Final

from fencepost.protocol.messages import JoinGroupResponse, RequestBody, ResponseBody

from ..generate import hostile
from ..generate.clients import Client
from ..generate.plan import ClientPlan, Plan, draw_plan
from .asking import Offer, Ranges
from .cast import AskPlain, around, group_names

_SESSION_TIMEOUTS = (6_000, 10_000)
_REBALANCE_TIMEOUTS = (500, 2_000, 5_000)
LONGEST_S: Final = max(_REBALANCE_TIMEOUTS) / 1_000


class ClassicCast:
    """Drawn from ``rng``; groups are named after ``prefix`` and ``step`` (``group_names``)."""

    def __init__(self, rng: Random, prefix: str, offer: Offer, step: int = 1) -> None:
        self.plan = _for_the_wire(draw_plan(rng), rng, group_names(prefix, step), offer.ranges)
        self.clients = [Client(client) for client in self.plan.clients]
        self._around = around(self.plan, self.clients, offer.nodes)

    @property
    def groups(self) -> Sequence[str]:
        return self.plan.groups

    @property
    def restart(self) -> float:
        return self.plan.mood.restart

    @property
    def longest_s(self) -> float:
        """Nobody is kept waiting for longer than a rebalance timeout (C-JOIN-43)."""
        return LONGEST_S

    async def set_up(self, ask: AskPlain) -> None:
        """Topics are only names in what leaders say."""

    async def meanwhile(self, ask: AskPlain, rng: Random) -> None:
        """Nothing."""

    async def clear_away(self, ask: AskPlain) -> None:
        """Groups go when they are empty for long enough."""

    def as_sent(self, body: RequestBody) -> RequestBody:
        return body

    def forged(self, rng: Random) -> tuple[int, RequestBody]:
        return forged(rng, self._around, rng.choice(self.clients), self.plan.mood.hostile)

    def heard(self, body: ResponseBody) -> None:
        if isinstance(body, JoinGroupResponse) and body.member_id:
            self._around.known_ids.append(body.member_id)


def forged(rng: Random, around: hostile.Surroundings, client: Client, hostility: float) -> tuple[int, RequestBody]:
    """What no client of the classic protocol would send."""
    draw = rng.random()
    if draw < 0.4:
        return hostile.heartbeat(rng, around, client)
    if draw < 0.4 + 2 * hostility:
        return hostile.leave(rng, around, client)
    return hostile.describe(rng, around) if draw < 0.95 else hostile.delete(rng, around)


def _for_the_wire(plan: Plan, rng: Random, named: Callable[[int], str], ranges: Ranges) -> Plan:
    """The plan with groups of its own, and clients that a run can wait for."""
    names = {name: named(number) for number, name in enumerate(plan.groups)}
    clients = tuple(on_the_wire(replace(each, group_id=names[each.group_id]), rng, ranges) for each in plan.clients)
    return replace(plan, groups=tuple(names.values()), clients=clients)


def on_the_wire(client: ClientPlan, rng: Random, ranges: Ranges) -> ClientPlan:
    """With timeouts that a run can wait for, and versions that the broker has."""

    def within(key: int, version: int) -> int:
        low, high = ranges[key]
        return min(max(version, low), high)

    return replace(
        client,
        session_timeout_ms=rng.choice(_SESSION_TIMEOUTS),
        rebalance_timeout_ms=rng.choice(_REBALANCE_TIMEOUTS),
        join_version=within(11, client.join_version),
        sync_version=within(14, client.sync_version),
        heartbeat_version=within(12, client.heartbeat_version),
        leave_version=within(13, client.leave_version),
    )
