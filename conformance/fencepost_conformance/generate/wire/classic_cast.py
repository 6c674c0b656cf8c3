"""Clients of the classic protocol over the wire, and requests that none of them would send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from fencepost.protocol.messages import JoinGroupRequest, JoinGroupResponse, RequestBody, ResponseBody

from .. import hostile
from ..clients import Client
from ..plan import ClientPlan, Plan, draw_plan
from .asking import Offer, Ranges
from .cast import ForgerKnowledge, Player, group_names, groups_apart, knowledge
from .offset_requests import CastWithOffsets
from .topics import Topics, topics_of

_SESSION_TIMEOUTS = (6_000, 10_000)
_REBALANCE_TIMEOUTS = (500, 2_000, 5_000)
LONGEST_S: Final = max(_REBALANCE_TIMEOUTS) / 1_000
#: Kafka's default of group.max.session.timeout.ms
_KAFKAS_LONGEST_SESSION_MS: Final = 1_800_000
#: number of topics with committed offsets
_TOPICS: Final = 2
#: probability that a forged request has an empty group id
_BLANK: Final = 0.06
#: metadata with a length far beyond its end
_WEDGES: Final = (b"\x00\x00\x7f\xff\xff\xff",)


class ClassicCast(CastWithOffsets):
    """Drawn from ``rng``; groups and topics are named after ``prefix``, groups after ``step`` too (``group_names``).

    Leaders use topics only as names, but some topics get committed offsets."""

    def __init__(self, rng: Random, prefix: str, offer: Offer, step: int = 1) -> None:
        topics = topics_of(rng, prefix, offer, _TOPICS)
        self.plan = _for_the_wire(draw_plan(rng), topics, rng, group_names(prefix, step), offer.ranges)
        self.clients = [Client(client) for client in self.plan.clients]
        self._around = knowledge(self.plan, self.clients, offer.nodes)
        super().__init__(offer, topics, self._around, groups_apart(prefix, offer.nodes))

    @property
    def groups(self) -> Sequence[str]:
        return self.plan.groups

    @property
    def restart(self) -> float:
        return self.plan.mood.restart

    @property
    def longest_s(self) -> float:
        """No request waits for longer than a rebalance timeout (C-JOIN-43)."""
        return LONGEST_S

    def as_sent(self, body: RequestBody) -> RequestBody:
        return body

    def aside(self, rng: Random, client: Player) -> tuple[int, RequestBody] | None:
        return self.offsets.by_member(rng, client) if isinstance(client, Client) else None

    def forged(self, rng: Random) -> tuple[int, RequestBody] | None:
        made = self.about_offsets(rng)
        return made or forged(rng, self._around, rng.choice(self.clients), self.plan.mood.hostile)

    def parked(self, rng: Random) -> tuple[int, RequestBody] | None:
        return parked(rng, self._around, rng.choice(self.clients))

    def heard(self, body: ResponseBody) -> None:
        if isinstance(body, JoinGroupResponse) and body.member_id:
            self._around.known_ids.append(body.member_id)


def forged(rng: Random, knowledge: ForgerKnowledge[Any], client: Client, hostility: float) -> tuple[int, RequestBody]:
    """Draw a request that no client of the classic protocol would send."""
    draw = rng.random()
    if draw < 0.4:
        return _perhaps_of_no_group(rng, knowledge, *hostile.heartbeat(rng, knowledge, client))
    if draw < 0.4 + 2 * hostility:
        return _perhaps_of_no_group(rng, knowledge, *hostile.leave(rng, knowledge, client))
    if draw < 0.9:
        return hostile.list_groups(rng) if rng.random() < 0.2 else hostile.describe(rng, knowledge)
    return hostile.delete(rng, knowledge)


def parked(rng: Random, knowledge: ForgerKnowledge[Any], client: Client) -> tuple[int, RequestBody]:
    """Draw a JoinGroup or SyncGroup that no client would send. A member that joins with it delays the group no longer
    than the trace's clients do. So no protocol is listed twice, and no length in its metadata is out of bounds: some
    releases of Kafka then never end the join phase (C-JOIN-72, G-DATA-10), which would look like another fault."""
    if rng.random() < 0.4:
        return _perhaps_of_no_group(rng, knowledge, *hostile.sync(rng, knowledge, client))
    version, body = hostile.join(rng, knowledge, client)
    assert isinstance(body, JoinGroupRequest)
    session = body.session_timeout_ms
    if _SESSION_TIMEOUTS[-1] < session <= _KAFKAS_LONGEST_SESSION_MS:
        session = rng.choice(_SESSION_TIMEOUTS)
    offered = {
        each.name: replace(each, metadata=b"\xff") if each.metadata in _WEDGES else each for each in body.protocols
    }
    rebalance = min(body.rebalance_timeout_ms, _REBALANCE_TIMEOUTS[-1])
    made = replace(body, session_timeout_ms=session, rebalance_timeout_ms=rebalance, protocols=tuple(offered.values()))
    return _perhaps_of_no_group(rng, knowledge, version, made)


def _perhaps_of_no_group(
    rng: Random, knowledge: ForgerKnowledge[Any], version: int, body: RequestBody
) -> tuple[int, RequestBody]:
    """Sometimes return the same request for the nameless group; in a cluster another broker may coordinate that."""
    if "" not in knowledge.strange_groups or rng.random() >= _BLANK:
        return version, body
    blank: RequestBody = replace(body, group_id="")  # type: ignore[arg-type] # all four have it
    return version, blank


def _for_the_wire(plan: Plan, topics: Topics, rng: Random, named: Callable[[int], str], ranges: Ranges) -> Plan:
    """Return the plan with the trace's own groups, and clients that a run can wait for. Subscriptions are encoded, so
    topics have their names on the broker from the beginning."""
    names = {name: named(number) for number, name in enumerate(plan.groups)}
    clients = []
    for each in plan.clients:
        own = replace(each, group_id=names[each.group_id], topics=tuple(map(topics.named, each.topics)))
        clients.append(on_the_wire(own, rng, ranges))
    return replace(plan, groups=tuple(names.values()), clients=tuple(clients))


def on_the_wire(client: ClientPlan, rng: Random, ranges: Ranges) -> ClientPlan:
    """Return the client with timeouts that a run can wait for, and versions that the broker has."""

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
