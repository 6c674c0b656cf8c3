"""The closed system's states as the specification's variables: the abstraction under which E1 compares the graphs."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Final

from fencepost.protocol.records import Record

from ..classic.group import GroupState
from ..classic.state import JOIN_TIMER, SYNC_TIMER, Assigned, Member, Replaced
from ..machines import EMPTY, PREPARING
from ..tlc.values import TlaValue, function, record
from .closed import COUNTERS, GROUP, LOG, ClosedSystem
from .config import DELAY_MS
from .coordinator import NOBODY, existing
from .values import (
    Client,
    JoinReply,
    JoinRequest,
    Metadata,
    Reply,
    Request,
    SyncRequest,
    decode_metadata,
    decode_partitions,
)
from .variables import Makers, each_client, under_way

VARIABLES: Final = ("group", "log", "unreplicated", "idsUsed", "client", "requests", "replies", "faultsLeft")


def makers(system: ClosedSystem) -> Makers:
    """Return how to read each of the specification\'s variables in a state."""
    names, endpoints = system.config.clients, tuple(system.endpoints)
    return {
        "group": ((GROUP,), lambda group: group_value(names, group)),
        "log": ((LOG,), lambda log: record_value(log.replicated)),
        "unreplicated": ((GROUP, LOG), lambda group, log: unreplicated_value(group, log.open)),
        "idsUsed": ((COUNTERS,), lambda counters: counters.ids_used),
        "client": (endpoints, each_client(names, lambda endpoint: client_value(endpoint.client))),
        "requests": (endpoints, under_way(names, "requests", request_value)),
        "replies": (endpoints, under_way(names, "replies", reply_value)),
        "faultsLeft": ((COUNTERS,), lambda counters: record(**system.environment.by_name(counters.faults_left))),
    }


def group_value(names: Sequence[str], state: GroupState) -> TlaValue:
    group = existing(state)
    return record(
        state=group.state,
        initial=group.state == PREPARING and group.previous == EMPTY,
        generationId=group.generation,
        leader=group.leader or "",
        members=function((member.member_id, member_value(names, member)) for member in group.members),
        pendingJoin=group.pending_join,
        pendingSync=group.pending_sync,
        newMemberAdded=group.new_member_added,
        joinTimer=JOIN_TIMER in state.timers,
        delaysLeft=state.delay[1] // DELAY_MS if state.delay is not None else 0,
        syncTimer=SYNC_TIMER in state.timers,
        sessionTimers=frozenset(timer.member_id for timer in state.timers if timer.kind == "session"),
    )


def member_value(names: Sequence[str], member: Member) -> TlaValue:
    return record(
        instanceId=member.instance or "",
        metadata=metadata_value(decode_metadata(member.protocols[0].metadata)),
        assignment=decode_partitions(member.assignment),
        isNew=member.is_new,
        awaitingJoin=_future(names, member.join),
        awaitingSync=_future(names, member.sync),
    )


def _future(names: Sequence[str], request: int | None) -> str:
    if request is None:
        return "no"
    return names[request - 1] if request > NOBODY else "nobody"


def metadata_value(metadata: Metadata) -> TlaValue:
    return record(owned=metadata.owned, generation=metadata.generation)


def record_value(logged: Record) -> TlaValue:
    value = logged.group_metadata
    if value is None:
        raise ValueError("the closed system writes no tombstones")
    members = frozenset(
        record(
            memberId=member.member_id,
            instanceId=member.group_instance_id or "",
            metadata=metadata_value(decode_metadata(member.subscription)),
            assignment=decode_partitions(member.assignment),
        )
        for member in value.members
    )
    return record(generationId=value.generation, leader=value.leader or "", members=members)


def unreplicated_value(state: GroupState, records: tuple[Record, ...]) -> TlaValue:
    """Return the open records. Record number i is open until i + 1 more are replicated; an operation with a callback
    may wait for it."""
    waiting = {operation.behind: operation.callback for operation in state.operations}
    causes = {Assigned: "sync", Replaced: "replace", NoneType: "empty"}
    found = []
    for place, logged in enumerate(records):
        callback = waiting.get(place + 1)
        new_id = callback.new_id if isinstance(callback, Replaced) else ""
        found.append(record(cause=causes[type(callback)], record=record_value(logged), memberId=new_id))
    return tuple(found)


def client_value(client: Client) -> TlaValue:
    return record(
        state=client.state,
        memberId=client.member_id,
        generation=client.generation,
        owned=client.owned,
        ownedGeneration=client.owned_generation,
    )


def request_value(sender: str, request: Request) -> TlaValue:
    common = {"api": request.api, "from": sender, "awaited": request.awaited, "memberId": request.member_id}
    if isinstance(request, JoinRequest):
        return function({**common, "metadata": metadata_value(request.metadata)})
    if isinstance(request, SyncRequest):
        assignment = frozenset(record(memberId=member, partitions=each) for member, each in request.assignment)
        return function({**common, "generation": request.generation, "assignment": assignment})
    return function(common)


def reply_value(receiver: str, reply: Reply) -> TlaValue:
    if isinstance(reply, JoinReply):
        return record(
            api=reply.api,
            to=receiver,
            error=reply.error,
            memberId=reply.member_id,
            generation=reply.generation,
            leader=reply.leader,
            skipAssignment=reply.skip_assignment,
            members=frozenset(
                record(memberId=member, metadata=metadata_value(metadata)) for member, metadata in reply.members
            ),
        )
    return record(api=reply.api, to=receiver, error=reply.error, assignment=reply.assignment)
