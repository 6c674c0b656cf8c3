"""The group machine (``fencepost_model.consumer``) in the closed system: every change of a group is one of its steps.

The machine is a pure function of a group, a step and its surroundings. The surroundings are one topic, a clock that
stands still (``translate.NOW``) and an assignor with given answers: with ``uniform``, each answer that the assignor's
properties allow is tried. The machine only requests timers; they are kept here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from fencepost.protocol.events import Topic
from fencepost.protocol.settings import Settings

from ...consumer import ConsumerGroupModel, ConsumerHeartbeat, Environment, Expire, Step, Successor
from ...consumer.state import REBALANCE, SESSION, Target
from ...consumer.target import GroupSpec, propose, valid
from .. import commits
from .config import ConsumerConfig
from .state import Group, Hard, Heartbeat, Pairs, Reply, pairs
from .translate import NOW, TOPIC_ID, Translation

INTERVAL_MS = 1_000


class Result(NamedTuple):
    """The result of a step: the group, the answer if it was a request, and the machine's input."""

    group: Group
    reply: Reply
    step: Step


class TargetOracle:
    """An assignor and a hash for the machine. The metadata hash is the number of partitions."""

    def __init__(self, answer: Mapping[str, Target] | None = None) -> None:
        self._answer = answer
        self.asked: GroupSpec | None = None

    def metadata_hash(self, group_id: str, stored: int, topics: tuple[Topic, ...]) -> int:
        return sum(topic.partitions for topic in topics)

    def target(self, group_id: str, spec: GroupSpec) -> Mapping[str, Target]:
        self.asked = spec
        return propose(spec) if self._answer is None else self._answer

    def matcher(self, regex: str) -> Callable[[str], bool] | None:
        return None


def answers(spec: GroupSpec) -> Iterator[Mapping[str, Target]]:
    """Yield every target that the assignor may give (NOT-10)."""
    names = [member.member_id for member in spec.members]
    for owners in product(names, repeat=spec.partitions[TOPIC_ID]):
        target = {name: tuple((TOPIC_ID, p) for p, owner in enumerate(owners) if owner == name) for name in names}
        if valid(spec, target):
            yield target


class Coordinator:
    """The machine for a configuration."""

    def __init__(self, config: ConsumerConfig) -> None:
        self.settings = Settings(
            group_consumer_assignors=(config.assignor,),
            group_consumer_assignment_interval_ms=INTERVAL_MS if config.interval else 0,
        )
        self._model = ConsumerGroupModel(self.settings, config.profile)
        self._variant = self._model.variant
        self._translation = Translation(config.partitions)
        self._known: dict[tuple[Hard, bool, Heartbeat, int], tuple[Successor, ...]] = {}
        self._interval = config.interval

    def _run(self, hard: Hard, blocked: bool, step: Step, existing: int) -> Iterator[Successor]:
        group = self._translation.group(hard, blocked)

        def successors(oracle: TargetOracle) -> tuple[Successor, ...]:
            return self._model.successors(
                group, step, Environment(NOW, self._translation.image(existing), oracle=oracle)
            )

        oracle = TargetOracle()
        found = successors(oracle)
        if oracle.asked is None:
            yield from found
        else:
            for answer in answers(oracle.asked):
                yield from successors(TargetOracle(answer))

    def _after(self, before: Group, found: Successor) -> Group:
        """Return the group in memory: the machine's group, with the timers that it requested."""
        if found.group is None:
            raise ValueError("the group of the closed system vanished")
        hard = self._translation.hard(found.group)
        rebalance, sessions = dict(before.rebalance_timers), {*before.session_timers}
        for timer, length in found.armed:
            if timer.kind == SESSION:
                (sessions.discard if length is None else sessions.add)(timer.member_id)
            elif timer.kind == REBALANCE:
                rebalance.pop(timer.member_id, None)
        rebalance |= dict(found.rebalance_epochs)
        # The session timer of a replaced member would find no member (M-TMR-09).
        alive = frozenset(name for name, _ in hard.members)
        return Group(hard, pairs(rebalance), alive & sessions, self._interval and found.group.timestamp == NOW)

    def get(self, group: Group, heartbeat: Heartbeat, existing: int) -> Iterator[Result]:
        """Yield the results of a heartbeat or a leave: one for each target the assignor may choose, if it is asked."""
        step = ConsumerHeartbeat(self._translation.body(heartbeat))
        key = (group.hard, group.blocked, heartbeat._replace(awaited=True), existing)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(self._run(group.hard, group.blocked, step, existing))
        for each in found:
            if each.reply is None:
                raise ValueError("a heartbeat is always answered")
            yield Result(self._after(group, each), self._translation.reply(each.reply), step)

    def accepts_commit(self, hard: Hard, member_id: str, instance: str, epoch: int, partition: str) -> bool:
        """Return whether a commit with this epoch would be accepted for the partition (O-COMMIT-30 to 33)."""
        by = commits.committer(member_id, instance, epoch, self._translation.place(partition))
        return commits.is_accepted(self._variant, self._translation.group(hard, False), by)

    def expire_session(self, group: Group, member_id: str, existing: int) -> Result:
        """Expire a session timer (M-TMR-01, M-LEAVE-07)."""
        return self._expire(group, Expire(SESSION, member_id), existing)

    def expire_rebalance(self, group: Group, member_id: str, existing: int) -> Result:
        """Expire a rebalance timer, which acts only if the epoch is still that at arming (M-TMR-02)."""
        timers = dict(group.rebalance_timers)
        fired = group._replace(rebalance_timers=_without(group.rebalance_timers, member_id))
        return self._expire(fired, Expire(REBALANCE, member_id, timers[member_id]), existing)

    def _expire(self, group: Group, step: Expire, existing: int) -> Result:
        (found,) = self._run(group.hard, group.blocked, step, existing)
        return Result(self._after(group, found), Reply("NONE"), step)

    def is_unassigned(self, hard: Hard) -> bool:
        """Return whether no interval runs, because the group has no members and no target was computed since
        (M-LEAVE-08). A new group is the same."""
        return not hard.members and self._variant.consumer.empty_group_reaches_target

    def load(self, hard: Hard, blocked: bool) -> Group:
        """Load the group (F-LOAD-01, F-LOAD-05, M-TMR-01, M-TMR-02). The clock decides whether the interval runs; in an
        empty group it cannot."""
        blocked = blocked and not self.is_unassigned(hard)
        unrevoked = {name: member.epoch for name, member in hard.members if member.state == "UNREVOKED"}
        return Group(hard, pairs(unrevoked), frozenset(name for name, _ in hard.members), blocked)

    def revert(self, before: Group, after: Group) -> Group:
        """Return the group after a refused append: unchanged (INV-ATOM-01); in Kafka the new timers stay (M-HB-13)."""
        if self._variant.classic.restores_timers:
            return before
        known = frozenset(name for name, _ in before.hard.members)
        return Group(before.hard, after.rebalance_timers, after.session_timers & known, before.blocked)


def _without(timers: Pairs[int], key: str) -> Pairs[int]:
    return tuple(pair for pair in timers if pair[0] != key)
