"""An open system around one consumer group: any heartbeat of a few clients, in any order, and properties of each state.

The search is breadth first from no group, so the trace to the first state that breaks a property is a shortest one.
Time stands still while clients act. ``at_rest`` lets time pass: all members heartbeat and revoke as asked, and
resolutions run, until nothing changes any more (LIV-07). Members that are away count as gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode

from ..machines import C_STABLE
from .derive import subscription, votes
from .group import ConsumerGroupModel, Successor
from .group_step import Environment
from .handle import Step
from .rows import target_rows, without_epochs
from .state import SESSION, ConsumerGroup, ConsumerHeartbeat, Expire, Image, Member, Resolution, Resolve
from .target import GroupSpec, MemberSpec, valid

#: Rounds of heartbeats of all members after which a group without outside changes must have settled.
ROUNDS: Final = 12


class Point(NamedTuple):
    """A state of the system: the group and the running resolution."""

    group: ConsumerGroup | None = None
    task: Resolution | None = None


class OpenGroup:
    """The system. ``joins``: the first heartbeats that clients may send. ``environment``: the fixed time, and the
    topics."""

    def __init__(
        self, model: ConsumerGroupModel, environment: Environment, joins: Iterable[ConsumerGroupHeartbeatRequest]
    ) -> None:
        self.model = model
        self.environment = environment
        self.joins = tuple(ConsumerHeartbeat(body, client_id="c", client_host="/h") for body in joins)

    def steps(self, point: Point) -> list[Step]:
        """Return the possible steps: a join; for each member a heartbeat that owns what it has, and a leave; a
        resolution."""
        found: list[Step] = list(self.joins)
        for member in () if point.group is None else point.group.members:
            found += [self.heartbeat(member), self.leave(member)]
            if member.instance is not None:
                found.append(self.leave(member, STATIC_LEAVE_EPOCH))
        if point.task is not None:
            found.append(Resolve(point.task))
        return found

    def heartbeat(self, member: Member, epoch: int | None = None) -> ConsumerHeartbeat:
        owned = target_rows(without_epochs(member.assigned))
        body = ConsumerGroupHeartbeatRequest(
            self.model.group_id,
            member_id=member.member_id,
            member_epoch=member.epoch,
            instance_id=member.instance,
            topic_partitions=owned,
        )
        if epoch is not None:
            body = ConsumerGroupHeartbeatRequest(
                self.model.group_id,
                member_id=member.member_id,
                member_epoch=epoch,
                instance_id=member.instance,
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=member.names,
                topic_partitions=(),
            )
        return ConsumerHeartbeat(body, client_id="c", client_host="/h")

    def leave(self, member: Member, epoch: int = -1) -> ConsumerHeartbeat:
        body = ConsumerGroupHeartbeatRequest(
            self.model.group_id, member_id=member.member_id, member_epoch=epoch, instance_id=member.instance
        )
        return ConsumerHeartbeat(body, client_id="c", client_host="/h")

    def run(self, point: Point, step: Step, now: int | None = None) -> tuple[Point, Successor]:
        """Take the step, with the first choice where there are several; the oracle gives the targets."""
        environment = self.environment._replace(
            busy=point.task is not None, now=self.environment.now if now is None else now
        )
        found = self.model.successors(point.group, step, environment)[0]
        task = None if isinstance(step, Resolve) else point.task
        return Point(found.group, found.task or task), found

    def at_rest(self, point: Point) -> ConsumerGroup | None:
        """Return the group after all members have heartbeated for long enough."""
        for member in () if point.group is None else point.group.members:
            if member.epoch == STATIC_LEAVE_EPOCH:
                point, _ = self.run(point, Expire(SESSION, member.member_id))
        now = self.environment.now
        for _ in range(ROUNDS):
            before = point
            now += 60_000
            if point.task is not None:
                point, _ = self.run(point, Resolve(point.task), now)
            for member in () if point.group is None else point.group.members:
                current = None if point.group is None else point.group.member(member.member_id)
                if current is not None:
                    point, _ = self.run(point, self.heartbeat(current), now)
            if point == before:
                break
        return point.group

    def shortest_counterexample(self, holds: Callable[[OpenGroup, Point], bool], depth: int) -> list[Step] | None:
        """Return the steps to the nearest point that breaks the property, or None if there is none within ``depth``
        steps."""
        seen = {Point()}
        level: list[tuple[Point, list[Step]]] = [(Point(), [])]
        for _ in range(depth):
            following: list[tuple[Point, list[Step]]] = []
            for point, path in level:
                for step in self.steps(point):
                    after, _ = self.run(point, step)
                    if after in seen:
                        continue
                    seen.add(after)
                    trace = [*path, step]
                    if not holds(self, after):
                        return trace
                    following.append((after, trace))
            level = following
        return None


def every_partition_is_owned(system: OpenGroup, point: Point) -> bool:
    """Return whether at rest all members are STABLE at the group epoch, and each partition has an owner that subscribes
    to it (LIV-07)."""
    group = system.at_rest(point)
    if group is None or not group.members:
        return True
    if any(m.state != C_STABLE or m.epoch != group.epoch for m in group.members):
        return False
    image: Image = system.environment.image
    counts = {topic.topic_id: topic.partitions for topic in image.topics}
    topics = {member.member_id: subscription(member, group, image) for member in group.members}
    wanted = {(topic, number) for each in topics.values() for topic in each for number in range(counts[topic])}
    owned = {(t, n) for m in group.members for t, n, _ in m.assigned if t in topics[m.member_id]}
    return wanted == owned


def group_stays_at_rest(system: OpenGroup, point: Point) -> bool:
    """Return whether at rest a bare heartbeat changes nothing, whatever choice is made (LIV-17, NOT-10)."""
    group = system.at_rest(point)
    if group is None:
        return True
    environment = system.environment._replace(now=system.environment.now + 60_000 * (ROUNDS + 1))
    after = [
        found.group
        for member in group.members
        for found in system.model.successors(group, system.heartbeat(member), environment)
    ]
    return all(each is not None and each._replace(refresh=group.refresh) == group for each in after)


def elected_assignor_is_used(system: OpenGroup, point: Point) -> bool:
    """Return whether at rest the target is one that an assignor with the most votes gives to members that have it
    (M-TGT-02, M-HB-14)."""
    group = system.at_rest(point)
    if group is None or not group.members:
        return True
    image: Image = system.environment.image
    target = dict(group.target)
    specs = tuple(
        MemberSpec(each.member_id, each.instance, subscription(each, group, image), target.get(each.member_id, ()))
        for each in group.members
    )
    counts = {topic.topic_id: topic.partitions for topic in image.topics}
    elected = votes(system.model.variant, system.model.settings, group.members)
    return any(valid(GroupSpec(name, group.type, specs, counts), target) for name in elected)


def empty_group_is_assigned(system: OpenGroup, point: Point) -> bool:
    """Return whether an empty group is assigned at its epoch, so the next member need not wait for an interval
    (M-LEAVE-08)."""
    group = point.group
    return group is None or bool(group.members) or group.assignment_epoch == group.epoch


def group_fits_max_size(system: OpenGroup, point: Point) -> bool:
    """Return whether the group has at most `group.consumer.max.size` members (M-VAL-25)."""
    return point.group is None or len(point.group.members) <= system.model.settings.group_consumer_max_size


def static_member_can_return(system: OpenGroup, point: Point) -> bool:
    """Return whether a static member that left for a while can return under a new member id, also to a full group
    (M-VAL-28, M-STATIC-03)."""
    members = () if point.group is None else point.group.members
    for member in members:
        if member.epoch == STATIC_LEAVE_EPOCH:
            comes = system.heartbeat(Member("new", member.instance, names=member.names), 0)
            if _answer(system, point, comes) is not ErrorCode.NONE:
                return False
    return True


def member_can_restart(system: OpenGroup, point: Point) -> bool:
    """Return whether a member that restarts under its own ids is accepted at once (M-STATIC-02)."""
    members = () if point.group is None else point.group.members
    return all(_answer(system, point, system.heartbeat(member, 0)) is ErrorCode.NONE for member in members)


def free_instances_can_be_used(system: OpenGroup, point: Point) -> bool:
    """Return whether an instance id that no member has is open to a new one (M-STATIC-13)."""
    members = () if point.group is None else point.group.members
    held = {member.instance for member in members}
    free = {each.body.instance_id for each in system.joins} - held - {None}
    return all(
        _answer(system, point, system.heartbeat(Member("new", instance, names=("t",)), 0)) is ErrorCode.NONE
        for instance in free
    )


def _answer(system: OpenGroup, point: Point, step: ConsumerHeartbeat) -> ErrorCode:
    reply = system.run(point, step)[1].reply
    return ErrorCode.NONE if reply is None else reply.error_code
