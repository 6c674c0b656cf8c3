"""Invariants of consumer groups: of the coordinator's view (12.2), of members (12.3), and of both together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fencepost.member.consumer import ConsumerMember, ConsumerState
from fencepost.member.consumer.state import Beat
from fencepost.member.events import Call, Close, Command, Listener, MemberEvent, Poll, Send, Unsubscribe
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest, TopicPartitions
from fencepost.protocol.consumer_records import AssignedPartitions
from fencepost.protocol.consumer_view import ConsumerGroupView, ConsumerMemberView, MemberState

from .broken import demand

_Held = tuple[bytes, int]


def held(rows: Iterable[AssignedPartitions | TopicPartitions]) -> set[_Held]:
    return {(row.topic_id, partition) for row in rows for partition in row.partitions}


def check_consumer_group(group: ConsumerGroupView) -> None:
    """What the coordinator's view promises after every event."""
    owners: dict[_Held, str] = {}
    name = group.group_id
    for member in group.members:
        assigned, pending = held(member.assigned), held(member.pending_revocation)
        both = assigned & pending
        demand(not both, "INV-KIP-02", f"{name}: {member.member_id} is assigned and to revoke {sorted(both)}")
        for each in assigned | pending:
            other = owners.setdefault(each, member.member_id)
            demand(
                other == member.member_id,
                "INV-KIP-01",
                f"{name}: {other} and {member.member_id} both hold partition {each[1]} of {each[0]!r}",
            )
        unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
        demand(
            member.classic is not None or member.member_epoch == -2 or unrevoked == bool(pending),
            "INV-KIP-07",
            f"{name}: {member.member_id} is {member.state.name} with {len(pending)} partitions to revoke",
        )
        demand(
            member.member_epoch <= group.assignment_epoch,
            "INV-KIP-03",
            f"{name}: {member.member_id} is at {member.member_epoch}, the assignment at {group.assignment_epoch}",
        )
    demand(
        group.assignment_epoch <= group.group_epoch,
        "INV-KIP-03",
        f"{name}: assignment epoch {group.assignment_epoch} of group epoch {group.group_epoch}",
    )
    wanted = [each for _, rows in group.target for each in held(rows)]
    demand(len(wanted) == len(set(wanted)), "INV-KIP-05", f"{name}: a partition is in two targets")


class ConsumerRules:
    """The history of one member, as far as its listener and its coordinator saw it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: set[TopicPartition] = set()  #: told as assigned and not told as gone
        self._reported: set[TopicPartition] = set()

    def observe(
        self, before: ConsumerMember, after: ConsumerMember, event: MemberEvent, commands: Iterable[Command]
    ) -> None:
        if before.state is ConsumerState.FATAL:
            demand(after.state is ConsumerState.FATAL, "INV-CL-07", f"{self._name}: FATAL → {after.state.value}")
        called = isinstance(event, Poll | Unsubscribe | Close) or before.waiting is not None
        demand(
            called or before.assignment == after.assignment or not after.settings.listener,
            "INV-CL-09",
            f"{self._name}: owns {sorted(after.assignment)} instead of {sorted(before.assignment)} without a poll",
        )
        current = [sent for sent in after.sent if sent.beat is Beat.CURRENT]
        demand(len(current) <= 1, "INV-CL-08", f"{self._name}: {len(current)} heartbeats are in flight")
        for command in commands:
            if isinstance(command, Listener):
                self._called(command)
            elif isinstance(command, Send) and isinstance(command.body, ConsumerGroupHeartbeatRequest):
                self._sent(after, command.body)

    def _called(self, call: Listener) -> None:
        if call.call is Call.ASSIGNED:
            again = self._held.intersection(call.partitions)
            demand(not again, "INV-CL-01", f"{self._name}: {sorted(again)} assigned again without being taken away")
            self._held.update(call.partitions)
        else:
            self._held.difference_update(call.partitions)

    def _sent(self, member: ConsumerMember, body: ConsumerGroupHeartbeatRequest) -> None:
        """INV-CL-05: what is reported no more has been told as gone; who joins has nothing left (N-TR-06)."""
        demand(
            body.member_epoch != JOIN_EPOCH or not self._held or not member.settings.listener,
            "N-TR-06",
            f"{self._name}: joins while its program still has {sorted(self._held)}",
        )
        if body.topic_partitions is None or body.member_epoch < 0:
            return
        names = {topic.topic_id: topic.name for topic in member.cluster.values()}
        reported = {TopicPartition(names[topic], number) for topic, number in held(body.topic_partitions)}
        hidden = self._held & (self._reported - reported)
        demand(
            not hidden or not member.settings.listener,
            "INV-CL-05",
            f"{self._name}: reports {sorted(reported)} while its program still has {sorted(hidden)}",
        )
        self._reported = reported


def check_holders(group: ConsumerGroupView, members: Mapping[str, ConsumerMember]) -> None:
    """Who has not been fenced owns nothing that the coordinator has given to somebody else.

    NOT-01: one that has been may still believe so; its epoch is neither the present nor the previous one.
    """
    by_id = {member.member_id: member for member in group.members}
    for name, member in members.items():
        seen = by_id.get(member.member_id)
        if seen is None or not _counts(member, seen):
            continue
        ids = {topic.name: topic.topic_id for topic in member.cluster.values()}
        mine = {(ids[each.topic], each.partition) for each in member.assignment}
        for other in group.members:
            if other is not seen:
                both = mine & (held(other.assigned) | held(other.pending_revocation))
                demand(
                    not both,
                    "INV-KIP-09",
                    f"{name} at epoch {member.epoch} owns {sorted(both)}, which {other.member_id} was given",
                )


def _counts(member: ConsumerMember, seen: ConsumerMemberView) -> bool:
    """M-FENCE-01…03: would its next heartbeat be accepted?"""
    in_group = member.state.in_group and member.state is not ConsumerState.JOINING
    return in_group and member.epoch in (seen.member_epoch, seen.previous_member_epoch)
