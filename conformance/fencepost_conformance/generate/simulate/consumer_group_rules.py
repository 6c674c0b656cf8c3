"""Invariants of consumer groups, checked on their views before and after each event (12.2), for profiles without
Kafka's faults; and of conversions between the two kinds of group (INV-CONV-01)."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import replace

from fencepost.member.consumer_protocol import NO_GENERATION, decode_assignment, decode_subscription
from fencepost.protocol.consumer_messages import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.consumer_view import ConsumerGroupState, ConsumerGroupView, ConsumerMemberView, MemberState
from fencepost.protocol.events import Event, Request
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.partitions import TopicPartition
from fencepost.protocol.view import GroupState, GroupView, MemberView
from fencepost_model import promises

from .broken import demand, demand_promises

Held = tuple[bytes, int]


def held(rows: Iterable[AssignedPartitions | TopicPartitions]) -> set[Held]:
    return {(row.topic_id, partition) for row in rows for partition in row.partitions}


def holdings(member: ConsumerMemberView) -> set[Held]:
    """Return the partitions that no other member may be given: assigned, or still to be revoked."""
    return held(member.assigned) | held(member.pending_revocation)


def view_of(group: ConsumerGroupView) -> promises.GroupView:
    """Return what promises see of the group."""
    members = [
        promises.MemberView(
            member.member_id,
            member.member_epoch,
            held(member.assigned),
            held(member.pending_revocation),
            [epoch for row in (*member.assigned, *member.pending_revocation) for epoch in row.assignment_epochs or ()],
            member.state.name,
            member.instance_id,
            member.subscribed_topic_regex,
            member.classic is not None,
        )
        for member in group.members
    ]
    return promises.GroupView(
        group.group_epoch,
        group.assignment_epoch,
        members,
        {member_id: [each for row in rows for each in held([row])] for member_id, rows in group.target},
        group.static_members,
        {row.regex for row in group.regexes},
    )


def check_consumer_group(group: ConsumerGroupView) -> None:
    """Check the invariants of one view; they hold after every event."""
    name = group.group_id
    demand_promises(view_of(group), name)
    epochs = {each: member.member_epoch for member in group.members for each in holdings(member)}
    known = {(topic, number): epoch for topic, number, epoch in group.partition_epochs}
    demand(known == epochs, "INV-KIP-12", f"{name}: partition epochs {known}, by the members {epochs}")
    state = _state(group)
    demand(group.state is state, "INV-KIP-08", f"{name} is {group.state.value}, by its epochs {state.value}")


def _state(group: ConsumerGroupView) -> ConsumerGroupState:
    """M-ST-01…06."""
    if not group.members:
        return ConsumerGroupState.EMPTY
    if group.group_epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    reconciled = all(
        member.state is MemberState.STABLE and member.member_epoch == group.assignment_epoch for member in group.members
    )
    return ConsumerGroupState.STABLE if reconciled else ConsumerGroupState.RECONCILING


def check_consumer_change(before: ConsumerGroupView, after: ConsumerGroupView) -> None:
    """Check a step that undid nothing: no load, no failed append, no new group of the same name."""
    demand_promises(promises.GroupStep(view_of(before), view_of(after)), after.group_id)


def check_released(event: Event, before: ConsumerGroupView, after: ConsumerGroupView, names: dict[bytes, str]) -> None:
    """M-REC-18, M-PE-03: a partition of a member that stays is freed only after the member reports that it gave it
    up."""
    now = {member.member_id: member for member in after.members}
    for member in before.members:
        same = now.get(member.member_id)
        if same is None or same.instance_id != member.instance_id:  # it left or was replaced (M-STATIC-03)
            continue
        lost = holdings(member) - holdings(same)
        early = lost - _given_up(event, member, names) if lost else lost
        demand(
            not early,
            "M-REC-18",
            f"{after.group_id}: {sorted(early)} are free, but {member.member_id} has not given them up",
        )


def _given_up(event: Event, member: ConsumerMemberView, names: dict[bytes, str]) -> set[Held]:
    """Return the partitions that the member, by this event, reports not to own."""
    body = event.body if isinstance(event, Request) else None
    match body:
        case ConsumerGroupHeartbeatRequest(member_id=member.member_id, member_epoch=epoch, topic_partitions=owned):
            if epoch == STATIC_LEAVE_EPOCH:
                return held(member.pending_revocation)  # M-PE-04
            back = member.member_epoch == STATIC_LEAVE_EPOCH  # M-REC-24; otherwise 0 is not believed (M-FENCE-07)
            if owned is not None and (back or epoch != JOIN_EPOCH):
                return holdings(member) - held(owned)
        case JoinGroupRequest(member_id=member.member_id, protocols=protocols):
            said = decode_subscription(protocols[0].metadata)
            if said.generation_id not in (NO_GENERATION, member.member_epoch):
                return set()  # from an earlier epoch, so it proves nothing (X-JOIN-12 fixed)
            kept = set(said.owned_partitions)
            return {each for each in holdings(member) if each[0] not in names or (names[each[0]], each[1]) not in kept}
    return set()


def check_taken_back(before: ConsumerGroupView, after: ConsumerGroupView | None) -> None:
    """INV-ATOM-01: a failed append leaves the group unchanged. Only the topic refresh deadline may differ (F-RT-08)."""
    demand(
        after is not None and hard(after) == hard(before),
        "INV-ATOM-01",
        f"{before.group_id} was {before} before a step that was not appended, and is {after}",
    )


def hard(group: ConsumerGroupView) -> ConsumerGroupView:
    """Return the part of the group that the log restores."""
    return replace(group, refresh_deadline=None)


def check_upgrade(before: GroupView, after: ConsumerGroupView, names: dict[bytes, str]) -> None:
    """INV-CONV-01: check the upgrade of a classic group. ``names``: the existing topics, by id.

    Members keep their ids, except one that the caller replaced. They keep their instance ids, except the caller, whose
    heartbeat may name another (M-STATIC-13). A member that still speaks the classic protocol keeps its assignment. Of
    the partitions that it claims, it gets all that no other member was assigned or claims (with X-UP-05 fixed)."""
    name, generation = after.group_id, before.generation_id
    demand(
        after.group_epoch in (generation, generation + 1),
        "INV-CONV-01",
        f"{name}: generation {generation} became epoch {after.group_epoch}",
    )
    now = {member.member_id: member for member in after.members}
    assigned = {member.member_id: _existing(_partitions(member.assignment), names) for member in before.members}
    claimed = {member.member_id: _existing(_claims(before, member), names) for member in before.members}
    instances = {member.instance_id for member in after.members if member.instance_id is not None}
    for member in before.members:
        same = now.get(member.member_id)
        replaces = member.group_instance_id is not None and member.group_instance_id in instances
        demand(same is not None or replaces, "INV-CONV-01", f"{name}: {member.member_id} is missing after the upgrade")
        demand(
            same is None or same.classic is None or same.instance_id == member.group_instance_id,
            "INV-CONV-01",
            f"{name}: {member.member_id} is instance {same and same.instance_id}, not {member.group_instance_id}",
        )
        if same is not None and same.classic is not None:
            given, said = assigned.pop(member.member_id), claimed.pop(member.member_id)
            others = set[TopicPartition]().union(*assigned.values())
            least = given | (said - others.union(*claimed.values()))
            assigned[member.member_id], claimed[member.member_id] = given, said
            has = {TopicPartition(names[topic], number) for topic, number in held(same.assigned)}
            demand(
                least <= has <= given | (said - others),
                "INV-CONV-01",
                f"{name}: {member.member_id} was assigned {sorted(given)}, claims {sorted(said)} and has {sorted(has)}",
            )
    kept = {member.member_id for member in before.members}
    strangers = [each for each in now.values() if each.member_id not in kept and each.classic is not None]
    demand(not strangers, "INV-CONV-01", f"{name}: {[each.member_id for each in strangers]} were not members before")


def check_downgrade(before: ConsumerGroupView, after: GroupView, names: dict[bytes, str]) -> None:
    """INV-CONV-01: check the downgrade of a consumer group. ``names``: the existing topics, by id.

    Members that stay are assigned what they hold (with X-DOWN-04 fixed). A static member that replaces another and is
    reconciled on the way gets no more than that and its target. If the rebalance that follows ended at once
    (X-DOWN-22), the generation is one higher."""
    name, over = after.group_id, after.state is GroupState.COMPLETING_REBALANCE
    demand(
        before.group_epoch <= after.generation_id - over <= before.group_epoch + 1,
        "INV-CONV-01",
        f"{name}: epoch {before.group_epoch} became generation {after.generation_id}",
    )
    target = {member_id: held(rows) for member_id, rows in before.target}
    old = {member.member_id: member for member in before.members}
    by_instance = dict(before.static_members)
    for member in after.members:
        was = old.get(member.member_id) or old.get(by_instance.get(member.group_instance_id or "", ""))
        demand(was is not None, "INV-CONV-01", f"{name}: {member.member_id} was not a member before")
        assert was is not None
        given, has = _partitions(member.assignment), _named(holdings(was), names)
        wanted = _named(target.get(was.member_id, set()), names)
        current = was.classic is None and after.state is GroupState.STABLE
        demand(
            given == has or (current and given <= has | wanted),
            "INV-CONV-01",
            f"{name}: {member.member_id} is assigned {sorted(given)}, held {sorted(has)}, its target {sorted(wanted)}",
        )


def _named(partitions: Set[Held], names: dict[bytes, str]) -> set[TopicPartition]:
    return {TopicPartition(names[topic], number) for topic, number in partitions if topic in names}


def _existing(partitions: set[TopicPartition], names: dict[bytes, str]) -> set[TopicPartition]:
    return {each for each in partitions if each.topic in names.values()}


def _claims(group: GroupView, member: MemberView) -> set[TopicPartition]:
    """Return the owned partitions in the member's subscription for the group's protocol."""
    metadata = [protocol.metadata for protocol in member.protocols if protocol.name == group.protocol_name]
    return {each for data in metadata[:1] for each in decode_subscription(data).owned_partitions}


def _partitions(assignment: bytes) -> set[TopicPartition]:
    return set(decode_assignment(assignment).partitions) if assignment else set()
