"""Properties that must become true once the environment is quiet (12.5)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fencepost.member import ClassicMemberState, MemberSettings
from fencepost.member.consumer import ConsumerMember, ConsumerState
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_view import ConsumerGroupState
from fencepost.protocol.events import TimerKind
from fencepost.protocol.view import GroupState

from .broken import Broken, demand
from .host import AnyHost, Host
from .world import World

#: Interval between two checks whether the groups have settled, in ms.
_LOOK_EVERY = 250
#: Longest delay of a message from the chaos, in ms.
_LAST_MESSAGES = 2_500
_EXPECTED = (TimerKind.CONSUMER_JOIN, TimerKind.CONSUMER_SYNC)


class Settling:
    """``settled_ms``: how long the groups took to settle after everything begun in the chaos had ended."""

    def __init__(self, simulation: World) -> None:
        self._simulation = simulation
        self.settled_ms = 0

    def run(self, until: Callable[[int], None]) -> None:
        """Wait until every group has settled, no longer than the rules allow; then check that it stays so."""
        world = self._simulation
        # First let everything end that began in the chaos: restarts, stalls, messages on their way.
        ends = max((each.at_ms + each.amount for each in world.plan.disruptions), default=0)
        busy = max(host.busy_until for host in world.hosts)
        until(max(world.now, ends, busy) + _LAST_MESSAGES)
        start, bound = world.now, self._bound()
        while True:
            problem = self._problem()
            if problem is None:
                break
            if world.now - start > bound:
                raise Broken("LIV-05", f"not settled {bound} ms after the environment went quiet: {problem}")
            until(world.now + _LOOK_EVERY)
        self.settled_ms = world.now - start
        before = self._epochs()
        until(world.now + 3 * self._session)
        problem = self._problem()
        demand(problem is None, "LIV-05", f"settled, but not for long: {problem}")
        after = self._epochs()
        demand(before == after, "LIV-05", f"a settled group rebalances: {before} → {after}")

    def _epochs(self) -> dict[str, int]:
        core = self._simulation.core
        classic = {name: group.generation_id for name, group in core.groups.items()}
        return classic | {name: group.group_epoch for name, group in core.consumer_groups.items()}

    @property
    def _session(self) -> int:
        world = self._simulation
        each = [host.plan.settings for host in world.hosts]
        lengths = [settings.session_timeout_ms for settings in each if isinstance(settings, MemberSettings)]
        return max(
            [*lengths, *([world.plan.settings.group_consumer_session_timeout_ms] if len(lengths) < len(each) else [])]
        )

    def _bound(self) -> int:
        """Return three times the longest round: silent members are removed, the rest join and sync (LIV-02…06)."""
        world = self._simulation
        session = self._session
        rebalance = max(host.plan.settings.max_poll_interval_ms for host in world.hosts)
        delay = world.plan.settings.group_initial_rebalance_delay_ms
        return 3 * (session + 2 * rebalance + delay) + 10_000

    def _problem(self) -> str | None:
        """Return what keeps the groups from being settled, or None."""
        world = self._simulation
        if not world.broker.active:
            return "no coordinator"
        between = [host.plan.name for host in world.hosts if host.coming_back and host.given_up is None]
        if between:
            return f"{between} are about to restart"
        groups = {host.plan.settings.group_id for host in world.hosts}
        for group in sorted(groups):
            live = [host for host in world.hosts if host.takes_part and host.plan.settings.group_id == group]
            problem = self._group_problem(group, live)
            if problem is not None:
                return f"{group}: {problem}"
        waiting = [request.id for request in world.core.unanswered]
        return f"requests {waiting} are not answered" if waiting else None

    def _group_problem(self, name: str, live: list[AnyHost]) -> str | None:
        core = self._simulation.core
        classic, consumer = core.groups.get(name), core.consumer_groups.get(name)
        group = classic if consumer is None else consumer
        if not live:
            if group is None or not group.members:
                return None
            return f"{group.state.value}, but no program runs"
        if group is None or group.state not in (GroupState.STABLE, ConsumerGroupState.STABLE):
            return f"{group.state.value if group else 'no group'}"
        if any(key.group_id == name and key.kind in _EXPECTED for key in core.armed):
            return "a classic member is expected to join or to sync"  # otherwise it is fenced (X-TMR-02, X-TMR-03)
        if consumer is not None:
            epochs = {member.member_id: member.member_epoch for member in consumer.members}
        else:
            assert classic is not None
            epochs = {member.member_id: classic.generation_id for member in classic.members}
        owned: list[TopicPartition] = []
        wanted: set[str] = set()
        for host in live:
            problem = _classic_problem(host, epochs) if isinstance(host, Host) else _consumer_problem(host, epochs)
            if problem is not None:
                return f"{host.plan.name} {problem}"
            owned += host.member.assignment
            wanted |= self._wanted(host)
        if len(epochs) != len(live):
            return f"members {sorted(epochs)}, but {len(live)} programs run"
        topics = self._simulation.broker.topics
        every = {TopicPartition(topic, number) for topic in wanted for number in range(topics[topic].partitions)}
        return None if sorted(owned) == sorted(every) else f"owned are {sorted(owned)} of {sorted(every)}"

    def _wanted(self, host: AnyHost) -> set[str]:
        regex = host.plan.regex if host.plan.is_consumer else None
        if regex is None:
            return set(host.member.subscription.topics)
        return {topic for topic in self._simulation.broker.topics if re.fullmatch(regex, topic)}


def _classic_problem(host: Host, epochs: Mapping[str, int]) -> str | None:
    """LIV-05; in a consumer group the generation of a member is its epoch (X-JOIN-15)."""
    member = host.member
    if member.state is not ClassicMemberState.STABLE or member.join is not None or member.rejoin_needed:
        return f"is {member.state.value}"
    generation = member.generation
    if epochs.get(generation.member_id) != generation.generation_id:
        return f"is in generation {generation.generation_id}, the coordinator has {epochs}"
    return None


def _consumer_problem(host: AnyHost, epochs: Mapping[str, int]) -> str | None:
    """LIV-07."""
    member = host.member
    assert isinstance(member, ConsumerMember)
    if member.state is not ConsumerState.STABLE:
        return f"is {member.state.value}"
    if epochs.get(member.member_id) != member.epoch:
        return f"is at epoch {member.epoch}, the coordinator has {epochs}"
    return None
