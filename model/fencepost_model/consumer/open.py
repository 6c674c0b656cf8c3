"""An open system around one consumer group: any heartbeat of a few clients, in any order, and what must be true then.

Breadth first from no group, so the first state that breaks a property has the shortest trace to it. Time stands still
while clients act; ``settled`` lets it pass: everybody heartbeats, revokes what it is told to and resolutions run, until
nothing changes any more (LIV-07). Clients that went away for a while are taken to have gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from fencepost.protocol.consumer_messages import STATIC_LEAVE_EPOCH, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode

from ..machines import C_STABLE
from .derive import subscription, votes
from .group import ConsumerGroupModel, Step, Successor
from .rows import target_rows, without_epochs
from .state import SESSION, Beat, ConsumerGroup, Expire, Image, Member, Resolution, Resolve
from .target import Ask, Wish, valid
from .turn import World

#: Heartbeats of everybody until a group without changes from outside must have settled.
ROUNDS: Final = 12


class Point(NamedTuple):
    """A state of the system: the group and the resolution under way."""

    group: ConsumerGroup | None = None
    task: Resolution | None = None


class OpenGroup:
    """``joins``: the first heartbeats that clients may send. ``world``: the time that stands still, and the topics."""

    def __init__(self, model: ConsumerGroupModel, world: World, joins: Iterable[ConsumerGroupHeartbeatRequest]) -> None:
        self.model = model
        self.world = world
        self.joins = tuple(Beat(body, client_id="c", client_host="/h") for body in joins)

    def steps(self, point: Point) -> list[Step]:
        """What may happen: a join, a heartbeat of a member that owns what it has, its leaving, a resolution."""
        found: list[Step] = list(self.joins)
        for member in () if point.group is None else point.group.members:
            found += [self.beat(member), self.leave(member)]
            if member.instance is not None:
                found.append(self.leave(member, STATIC_LEAVE_EPOCH))
        if point.task is not None:
            found.append(Resolve(point.task))
        return found

    def beat(self, member: Member, epoch: int | None = None) -> Beat:
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
        return Beat(body, client_id="c", client_host="/h")

    def leave(self, member: Member, epoch: int = -1) -> Beat:
        body = ConsumerGroupHeartbeatRequest(
            self.model.group_id, member_id=member.member_id, member_epoch=epoch, instance_id=member.instance
        )
        return Beat(body, client_id="c", client_host="/h")

    def take(self, point: Point, step: Step, now: int | None = None) -> tuple[Point, Successor]:
        """The step, with the first choice where there are several; targets are the oracle's."""
        world = self.world._replace(busy=point.task is not None, now=self.world.now if now is None else now)
        found = self.model.successors(point.group, step, world)[0]
        task = None if isinstance(step, Resolve) else point.task
        return Point(found.group, found.task or task), found

    def settled(self, point: Point) -> ConsumerGroup | None:
        """The group after everybody has done its part for long enough."""
        for member in () if point.group is None else point.group.members:
            if member.epoch == STATIC_LEAVE_EPOCH:
                point, _ = self.take(point, Expire(SESSION, member.member_id))
        now = self.world.now
        for _ in range(ROUNDS):
            before = point
            now += 60_000
            if point.task is not None:
                point, _ = self.take(point, Resolve(point.task), now)
            for member in () if point.group is None else point.group.members:
                current = None if point.group is None else point.group.member(member.member_id)
                if current is not None:
                    point, _ = self.take(point, self.beat(current), now)
            if point == before:
                break
        return point.group

    def shortest(self, holds: Callable[[OpenGroup, Point], bool], depth: int) -> list[Step] | None:
        """The steps to the nearest point that breaks the property, None if there is none within ``depth`` steps."""
        seen = {Point()}
        level: list[tuple[Point, list[Step]]] = [(Point(), [])]
        for _ in range(depth):
            following: list[tuple[Point, list[Step]]] = []
            for point, path in level:
                for step in self.steps(point):
                    after, _ = self.take(point, step)
                    if after in seen:
                        continue
                    seen.add(after)
                    trace = [*path, step]
                    if not holds(self, after):
                        return trace
                    following.append((after, trace))
            level = following
        return None


def everything_is_owned(system: OpenGroup, point: Point) -> bool:
    """LIV-07: once nothing changes, all are STABLE at the group epoch and each partition has an owner that wants it."""
    group = system.settled(point)
    if group is None or not group.members:
        return True
    if any(m.state != C_STABLE or m.epoch != group.epoch for m in group.members):
        return False
    image: Image = system.world.image
    counts = {topic.topic_id: topic.partitions for topic in image.topics}
    topics = {member.member_id: subscription(member, group, image) for member in group.members}
    wanted = {(topic, number) for each in topics.values() for topic in each for number in range(counts[topic])}
    owned = {(t, n) for m in group.members for t, n, _ in m.assigned if t in topics[m.member_id]}
    return wanted == owned


def rest_lasts(system: OpenGroup, point: Point) -> bool:
    """LIV-17: once nothing changes, a heartbeat that says nothing changes nothing, whatever is left open (NOT-10)."""
    group = system.settled(point)
    if group is None:
        return True
    world = system.world._replace(now=system.world.now + 60_000 * (ROUNDS + 1))
    after = [
        found.group for member in group.members for found in system.model.successors(group, system.beat(member), world)
    ]
    return all(each is not None and each._replace(refresh=group.refresh) == group for each in after)


def the_elected_assigns(system: OpenGroup, point: Point) -> bool:
    """M-TGT-02, M-HB-14: once nothing changes, the target is one that an assignor with the most votes gives to members
    who have it."""
    group = system.settled(point)
    if group is None or not group.members:
        return True
    image: Image = system.world.image
    target = dict(group.target)
    wishes = tuple(
        Wish(each.member_id, each.instance, subscription(each, group, image), target.get(each.member_id, ()))
        for each in group.members
    )
    counts = {topic.topic_id: topic.partitions for topic in image.topics}
    elected = votes(system.model.profile, system.model.settings, group.members)
    return any(valid(Ask(name, group.type, wishes, counts), target) for name in elected)


def nothing_waits_for_nobody(system: OpenGroup, point: Point) -> bool:
    """M-LEAVE-08: nothing is to be assigned to nobody, so an interval need not be over before somebody comes."""
    group = point.group
    return group is None or bool(group.members) or group.assignment_epoch == group.epoch


def no_more_than_fit(system: OpenGroup, point: Point) -> bool:
    """M-VAL-25: no group has more members than `group.consumer.max.size`."""
    return point.group is None or len(point.group.members) <= system.model.settings.group_consumer_max_size


def returns_to_its_place(system: OpenGroup, point: Point) -> bool:
    """M-VAL-28, M-STATIC-03: a static member that left for a while takes its place again under a new member id, also
    in a group that is full."""
    members = () if point.group is None else point.group.members
    for member in members:
        if member.epoch == STATIC_LEAVE_EPOCH:
            comes = system.beat(Member("new", member.instance, names=member.names), 0)
            if _answer(system, point, comes) is not ErrorCode.NONE:
                return False
    return True


def restarts_with_its_id(system: OpenGroup, point: Point) -> bool:
    """M-STATIC-02: a member that starts anew under its own ids is let in at once."""
    members = () if point.group is None else point.group.members
    return all(_answer(system, point, system.beat(member, 0)) is ErrorCode.NONE for member in members)


def instances_can_be_taken(system: OpenGroup, point: Point) -> bool:
    """M-STATIC-13: an instance id that no member has is open to a new one."""
    members = () if point.group is None else point.group.members
    held = {member.instance for member in members}
    free = {each.body.instance_id for each in system.joins} - held - {None}
    return all(
        _answer(system, point, system.beat(Member("new", instance, names=("t",)), 0)) is ErrorCode.NONE
        for instance in free
    )


def _answer(system: OpenGroup, point: Point, step: Beat) -> ErrorCode:
    reply = system.take(point, step)[1].reply
    return ErrorCode.NONE if reply is None else reply.error_code
