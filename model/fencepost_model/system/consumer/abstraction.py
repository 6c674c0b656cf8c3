"""The closed consumer group's states as the specification's variables: the abstraction under which E1 compares."""

from __future__ import annotations

from typing import Final

from ...tlc.values import TlaValue, function, record
from ..variables import Makers, each_client, under_way
from .closed import COUNTERS, GROUP, LOG, ConsumerSystem
from .state import NO_PARTITIONS, Client, Group, Hard, Heartbeat, Log, Member, Reply

API: Final = "ConsumerGroupHeartbeat"  #: of all messages
VARIABLES: Final = (
    "group",
    "log",
    "unreplicated",
    "existing",
    "idsUsed",
    "client",
    "requests",
    "replies",
    "faultsLeft",
)


def makers(system: ConsumerSystem) -> Makers:
    """Return how to read each of the specification\'s variables in a state."""
    names, endpoints = system.config.clients, tuple(system.endpoints)
    return {
        "group": ((GROUP,), group_value),
        "log": ((LOG,), lambda log: record(**hard_fields(log.replicated))),
        "unreplicated": ((LOG,), lambda log: open_value(names, log)),
        "existing": ((COUNTERS,), lambda counters: counters.existing),
        "idsUsed": ((COUNTERS,), lambda counters: counters.ids_used),
        "client": (endpoints, each_client(names, lambda endpoint: client_value(endpoint.client))),
        "requests": (endpoints, under_way(names, "requests", request_value)),
        "replies": (endpoints, under_way(names, "replies", reply_value)),
        "faultsLeft": ((COUNTERS,), lambda counters: record(**system.environment.by_name(counters.faults_left))),
    }


def member_value(member: Member) -> TlaValue:
    return record(
        instanceId=member.instance,
        epoch=member.epoch,
        previousEpoch=member.previous,
        state=member.state,
        assigned=function(member.assigned),
        revoking=function(member.revoking),
    )


def hard_fields(hard: Hard) -> dict[str, TlaValue]:
    return {
        "groupEpoch": hard.group_epoch,
        "assignmentEpoch": hard.assignment_epoch,
        "hashed": hard.hashed,
        "members": function((name, member_value(member)) for name, member in hard.members),
        "target": function(hard.target),
        "instances": function(hard.instances),
    }


def group_value(group: Group) -> TlaValue:
    return record(
        **hard_fields(group.hard),
        rebalanceTimers=function(group.rebalance_timers),
        sessionTimers=group.session_timers,
        blocked=group.blocked,
    )


def open_value(names: tuple[str, ...], log: Log) -> TlaValue:
    return tuple(
        record(
            hard=record(**hard_fields(batch.hard)),
            answers=frozenset(reply_value(names[to], reply) for to, reply in batch.answers),
        )
        for batch in log.open
    )


def client_value(client: Client) -> TlaValue:
    return record(
        state=client.state,
        memberId=client.member_id,
        instanceId=client.instance,
        epoch=client.epoch,
        owned=client.owned,
        assigned=client.assigned,
        reconciling=client.reconciling,
        unacknowledged=client.unacknowledged,
        unsure=client.unsure,
        waiting=client.waiting,
    )


def request_value(sender: str, heartbeat: Heartbeat) -> TlaValue:
    return function(
        {
            "api": API,
            "from": sender,
            "awaited": heartbeat.awaited,
            "memberId": heartbeat.member_id,
            "instanceId": heartbeat.instance,
            "epoch": heartbeat.epoch,
            "includesOwned": heartbeat.owned is not None,
            "owned": heartbeat.owned or NO_PARTITIONS,
            "full": heartbeat.full,
        }
    )


def reply_value(receiver: str, reply: Reply) -> TlaValue:
    return record(
        api=API,
        to=receiver,
        error=reply.error,
        epoch=reply.epoch,
        includesAssignment=reply.assignment is not None,
        assignment=reply.assignment or NO_PARTITIONS,
    )
