"""The closed mixed group's states as the specification's variables: the abstraction under which E1 compares.

The specification has both groups side by side; one exists, the other has its resting value. Values of one kind alone
use the abstraction of that kind's closed system.
"""

from __future__ import annotations

from typing import Final

from fencepost.protocol.events import TimerKind
from fencepost.protocol.profiles import INTENDED

from ...classic.group import GroupState
from ...classic.load import load_groups, load_record
from ...classic.state import JOIN_TIMER, SYNC_TIMER, Group, Timer
from ...consumer.state import ConsumerGroup
from ...switches import variant_of
from ...tlc.values import TlaValue, function, record
from .. import abstraction as classic
from ..consumer import abstraction as consumer
from ..consumer import state as consumer_state
from ..consumer.state import Hard, Heartbeat
from ..consumer.translate import Translation
from ..coordinator import FIRST_RECORD, GROUP_ID
from ..values import JoinReply, SyncReply, decode_metadata
from ..variables import Makers, each_client, under_way
from .closed import COUNTERS, GROUP, LOG, MixedSystem
from .machine import Log, Memory, blocked
from .state import Reply, Request

VARIABLES: Final = ("group", "log", "idsUsed", "classic", "consumer", "requests", "replies", "faultsLeft")

_TIMERS: Final = {TimerKind.JOIN: JOIN_TIMER, TimerKind.SYNC: SYNC_TIMER}
_NO_CLASSIC_GROUP: Final = GroupState(Group())
_NO_CONSUMER_GROUP: Final = consumer_state.Group()


def makers(system: MixedSystem) -> Makers:
    """Return how to read each of the specification\'s variables in a state."""
    names, endpoints = system.config.clients, tuple(system.endpoints)
    translation = Translation(system.config.partitions)
    return {
        "group": ((GROUP,), lambda memory: group_value(names, translation, memory)),
        "log": ((LOG,), lambda log: log_value(translation, log)),
        "idsUsed": ((COUNTERS,), lambda counters: counters.ids_used),
        "classic": (endpoints, each_client(names, lambda endpoint: classic.client_value(endpoint.classic))),
        "consumer": (endpoints, each_client(names, lambda endpoint: consumer.client_value(endpoint.consumer))),
        "requests": (endpoints, under_way(names, "requests", request_value)),
        "replies": (endpoints, under_way(names, "replies", reply_value)),
        "faultsLeft": ((COUNTERS,), lambda counters: record(**system.environment.by_name(counters.faults_left))),
    }


def group_value(names: tuple[str, ...], translation: Translation, memory: Memory) -> TlaValue:
    group = memory.group
    classic_group, consumer_group = _NO_CLASSIC_GROUP, _NO_CONSUMER_GROUP
    if isinstance(group, Group):
        timers = frozenset(
            _TIMERS.get(kind) or Timer("session", name)
            for kind, name in memory.timers
            if kind is TimerKind.SESSION or kind in _TIMERS
        )
        classic_group = GroupState(group, memory.delay, timers)
    else:
        sessions = _ids(memory, TimerKind.CONSUMER_SESSION)
        hard = translation.hard(group)
        consumer_group = consumer_state.Group(hard, tuple(sorted(memory.rebalance_epochs)), sessions, blocked(memory))
    return record(
        protocol="classic" if isinstance(group, Group) else "consumer",
        classic=classic.group_value(names, classic_group),
        consumer=consumer.group_value(consumer_group),
        subscriptions=subscriptions(group),
        joinTimers=_ids(memory, TimerKind.CONSUMER_JOIN),
        syncTimers=_ids(memory, TimerKind.CONSUMER_SYNC),
    )


def _ids(memory: Memory, kind: TimerKind) -> frozenset[str]:
    return frozenset(name for each, name in memory.timers if each is kind)


def subscriptions(group: Group | ConsumerGroup) -> TlaValue:
    """Return the subscriptions of the classic members of a consumer group."""
    if isinstance(group, Group):
        return function({})
    return function(
        (member.member_id, classic.metadata_value(decode_metadata(member.classic.supported_protocols[0].metadata)))
        for member in group.members
        if member.classic is not None
    )


def logged_group(log: Log) -> Group | ConsumerGroup | None:
    """Return the group of a log. A log in which two members hold a partition has one too, though a load fails
    (F-REPLAY-18): the counter-example of ``NoPartitionHasTwoHolders`` ends with it."""
    variant = variant_of(INTENDED)
    groups = load_groups(variant, log)
    if groups is not None:
        return groups.get(GROUP_ID)
    group: Group | ConsumerGroup | None = None
    for each in log:
        group = load_record(variant, group, each)
    return group


def log_value(translation: Translation, log: Log) -> TlaValue:
    """Return the replicated state, as a coordinator would load it."""
    group = logged_group(log)
    if isinstance(group, ConsumerGroup):
        logged, hard = FIRST_RECORD, translation.hard(group)
    else:
        (logged,), hard = log, Hard()
    return record(
        protocol="consumer" if isinstance(group, ConsumerGroup) else "classic",
        classic=classic.record_value(logged),
        consumer=record(**consumer.hard_fields(hard)),
        subscriptions=subscriptions(group) if group is not None else function({}),
    )


def request_value(sender: str, request: Request) -> TlaValue:
    if isinstance(request, Heartbeat):
        return consumer.request_value(sender, request)
    return classic.request_value(sender, request)


def reply_value(receiver: str, reply: Reply) -> TlaValue:
    if isinstance(reply, JoinReply | SyncReply):
        return classic.reply_value(receiver, reply)
    return consumer.reply_value(receiver, reply)
