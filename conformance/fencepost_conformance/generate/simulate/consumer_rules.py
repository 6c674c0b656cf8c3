"""Invariants of members that speak the protocol of KIP-848 (12.3)."""

from __future__ import annotations

from collections.abc import Sequence

from fencepost.member.consumer import ConsumerMember, ConsumerState
from fencepost.member.events import (
    Answered,
    Close,
    Command,
    CoordinatorLost,
    Disconnect,
    MemberEvent,
    Poll,
    RequestLost,
    Send,
    Unsubscribe,
)
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.consumer_messages import JOIN_EPOCH, ConsumerGroupHeartbeatRequest

from .broken import demand
from .consumer_group_rules import held
from .listener_rules import ListenerRules


class ConsumerRules:
    """The history of one member, as far as its listener and its coordinator saw it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._listener = ListenerRules(name)
        self._reported: set[TopicPartition] = set()
        self._open: set[int] = set()  #: heartbeats in flight, without leaves and those sent before one
        self._names: dict[bytes, str] = {}  #: names of all topics that it has known; it may report others (N-REC-02)

    def observe(
        self, before: ConsumerMember, after: ConsumerMember, event: MemberEvent, commands: Sequence[Command]
    ) -> None:
        if before.state is ConsumerState.FATAL:
            demand(after.state is ConsumerState.FATAL, "INV-CL-07", f"{self._name}: FATAL → {after.state.value}")
        called = isinstance(event, Poll | Unsubscribe | Close) or before.waiting is not None
        demand(
            called or before.assignment == after.assignment or not after.settings.listener,
            "INV-CL-09",
            f"{self._name}: owns {sorted(after.assignment)} instead of {sorted(before.assignment)} without a poll",
        )
        works = before.reconciliation is not None or after.reconciliation is not None
        reconciles = works and not before.leaving and not after.leaving
        self._listener.observe(event, commands, "N-REC-04" if reconciles and after.settings.auto_commit else None)
        if isinstance(event, Answered):
            self._open.discard(event.request_id)
        elif isinstance(event, RequestLost | CoordinatorLost):
            self._open.clear()
        for command in commands:
            if isinstance(command, Disconnect):
                self._open.clear()
            elif isinstance(command, Send) and isinstance(command.body, ConsumerGroupHeartbeatRequest):
                self._counted(command.request_id, command.body)
                self._sent(after, command.body)

    def _counted(self, request_id: int, body: ConsumerGroupHeartbeatRequest) -> None:
        """INV-CL-08: one heartbeat at a time. A leave does not wait; the answers that it overtakes are late
        (N-HB-11)."""
        if body.member_epoch < 0:
            self._open.clear()
            return
        self._open.add(request_id)
        demand(len(self._open) == 1, "INV-CL-08", f"{self._name}: {len(self._open)} heartbeats are in flight")

    def _sent(self, member: ConsumerMember, body: ConsumerGroupHeartbeatRequest) -> None:
        """INV-CL-05: a partition that is no longer reported has been revoked; a joining member has none left
        (N-TR-06)."""
        demand(
            body.member_epoch != JOIN_EPOCH or not self._listener.held or not member.settings.listener,
            "N-TR-06",
            f"{self._name}: joins while its program still has {sorted(self._listener.held)}",
        )
        if body.topic_partitions is None or body.member_epoch < 0:
            return
        names = self._names
        names.update((topic.topic_id, topic.name) for topic in member.cluster.values())
        reported = {
            TopicPartition(names[topic], number) for topic, number in held(body.topic_partitions) if topic in names
        }
        hidden = self._listener.held & (self._reported - reported)
        demand(
            not hidden or not member.settings.listener,
            "INV-CL-05",
            f"{self._name}: reports {sorted(reported)} while its program still has {sorted(hidden)}",
        )
        self._reported = reported
