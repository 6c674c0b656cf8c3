"""The closed consumer group's states as the specification's variables: the abstraction under which E1 compares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...explore.graph import Graph
from ...tlc.dump import LabelledGraph, ValueNumbers
from ...tlc.values import TlaValue, function, record
from .closed import COUNTERS, GROUP, LOG, ConsumerSystem
from .state import NO_PARTITIONS, Beat, Client, Group, Hard, Log, Member, Reply

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


def _makers(system: ConsumerSystem) -> dict[str, tuple[tuple[int, ...], Callable[..., TlaValue]]]:
    """For each variable the components it is made of, and how."""
    names = system.config.clients
    lanes = tuple(system.lanes)

    def union(of: Callable[[str, Any], TlaValue], what: str) -> Callable[..., TlaValue]:
        return lambda *each: frozenset(
            of(name, message) for name, lane in zip(names, each, strict=True) for message in getattr(lane, what)
        )

    return {
        "group": ((GROUP,), group_value),
        "log": ((LOG,), lambda log: record(**hard_fields(log.replicated))),
        "unreplicated": ((LOG,), lambda log: open_value(names, log)),
        "existing": ((COUNTERS,), lambda counters: counters.existing),
        "idsUsed": ((COUNTERS,), lambda counters: counters.ids_used),
        "client": (
            lanes,
            lambda *each: function((n, client_value(lane.client)) for n, lane in zip(names, each, strict=True)),
        ),
        "requests": (lanes, union(request_value, "requests")),
        "replies": (lanes, union(reply_value, "replies")),
        "faultsLeft": ((COUNTERS,), lambda counters: counters.faults_left),
    }


def abstract(system: ConsumerSystem, state: tuple[Any, ...]) -> dict[str, TlaValue]:
    """The values of the specification's variables in this state."""
    return {name: make(*(state[each] for each in reads)) for name, (reads, make) in _makers(system).items()}


def abstract_graph(system: ConsumerSystem, graph: Graph, numbers: ValueNumbers) -> LabelledGraph:
    """The explored graph over the specification's variables; needs the transitions."""
    columns = [column.view.tolist() for column in graph.columns]
    values = graph.tables.values
    rows = []
    for place, (reads, make) in enumerate(_makers(system).values()):
        known: dict[tuple[int, ...], int] = {}
        row = []
        for key in zip(*(columns[component] for component in reads), strict=True):
            number = known.get(key)
            if number is None:
                made = make(*(values[component][each] for component, each in zip(reads, key, strict=True)))
                number = known[key] = numbers.number(place, made)
            row.append(number)
        rows.append(row)
    states = list(zip(*rows, strict=True))
    edges = {(source, label[0], target) for source, label, _, target in graph.transitions()}
    return LabelledGraph(numbers, states, {*range(graph.initial)}, edges)


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


def request_value(sender: str, beat: Beat) -> TlaValue:
    return function(
        {
            "from": sender,
            "heard": beat.heard,
            "memberId": beat.member_id,
            "instanceId": beat.instance,
            "epoch": beat.epoch,
            "tellsOwned": beat.owned is not None,
            "owned": beat.owned or NO_PARTITIONS,
            "full": beat.full,
        }
    )


def reply_value(receiver: str, reply: Reply) -> TlaValue:
    return record(
        to=receiver,
        error=reply.error,
        epoch=reply.epoch,
        tells=reply.assignment is not None,
        assignment=reply.assignment or NO_PARTITIONS,
    )
