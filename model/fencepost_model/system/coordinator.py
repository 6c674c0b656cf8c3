"""The group machine, driven by the closed system's messages.

It is the real group machine (``fencepost_model.classic.GroupModel``): every change of the group is one of its steps.
This module only translates messages to requests and back, and clients to request ids. It also reduces the machine's
state to what the closed system's future depends on (``settled``).

Request ids: client number i waits under id i + 1. A request for whose answer no client waits has id ``LATE`` in the
step in which it arrives and 0 from then on; its answers are dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupMember,
    LeaveGroupRequest,
    Protocol,
    RequestBody,
    ResponseBody,
    SyncGroupAssignment,
    SyncGroupRequest,
    SyncGroupResponse,
)
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataValue, Record

from ..classic import AppendError, Arrive, Durable, Fire, GroupModel, Timer
from ..classic.group import GroupState
from ..classic.state import Assigned, Group, Input, Lose, Operation, Replaced
from ..machines import DEAD, EMPTY, PREPARING
from .config import SESSION_MS, Config
from .values import (
    Client,
    JoinReply,
    JoinRequest,
    Reply,
    Request,
    SyncReply,
    SyncRequest,
    decode_metadata,
    decode_partitions,
    encode_metadata,
    encode_partitions,
)

GROUP_ID: Final = "g"
PROTOCOL_TYPE: Final = "consumer"
CLIENT_ID, CLIENT_HOST = "client", "/host"
NOBODY: Final = 0
LATE: Final = 1 << 20

#: The record of the group as it was created before the system starts.
FIRST_RECORD: Final = Record(
    GroupMetadataKey(GROUP_ID),
    GroupMetadataValue("", generation=0, protocol=None, leader=None, current_state_timestamp=0),
)


class Loaded(NamedTuple):
    """An input besides those of the group machine: a new coordinator loads this record."""

    record: Record


Stimulus: TypeAlias = tuple[str, Input | Loaded]


class Result(NamedTuple):
    """The result of a coordinator step: the machine's inputs, its next state, records, replies by client number."""

    stimuli: tuple[Stimulus, ...]
    group: GroupState
    records: tuple[Record, ...]
    replies: tuple[tuple[int, Reply], ...]
    heartbeat: str | None = None


#: How many steps are kept for actions that need the same one, such as a SyncGroup that is handled and one whose append
#: fails.
_REMEMBERED: Final = 1 << 17


@lru_cache
def _machine(config: Config) -> GroupModel:
    return GroupModel(config.settings, config.profile, group_id=GROUP_ID)


@dataclass(frozen=True, slots=True)
class Coordinator:
    config: Config
    _known: dict[tuple[GroupState, tuple[Input, ...]], Result] = field(default_factory=dict, compare=False, repr=False)
    _loaded: dict[Record, GroupState] = field(default_factory=dict, compare=False, repr=False)
    _asked: dict[tuple[int, Request, str], Arrive] = field(default_factory=dict, compare=False, repr=False)

    @property
    def machine(self) -> GroupModel:
        return _machine(self.config)

    def load(self, record: Record) -> GroupState:
        """Return the first result of a load (C-ST-07)."""
        known = self._loaded.get(record)
        if known is None:
            known = self._loaded[record] = settled(self.machine.loaded((record,))[0].state)
        return known

    def request(self, client: int, request: Request, new_id: str) -> Arrive:
        """Return the request in the group machine's form."""
        known = self._asked.get((client, request, new_id))
        if known is None:
            known = self._asked[client, request, new_id] = self._request(client, request, new_id)
        return known

    def _request(self, client: int, request: Request, new_id: str) -> Arrive:
        instance = self.config.instance(client) or None
        body: RequestBody
        if isinstance(request, JoinRequest):
            version = 9
            body = JoinGroupRequest(
                GROUP_ID,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=self.config.rebalance_timeout_ms,
                member_id=request.member_id,
                group_instance_id=instance,
                protocol_type=PROTOCOL_TYPE,
                protocols=(Protocol(self.protocol, encode_metadata(request.metadata)),),
            )
        elif isinstance(request, SyncRequest):
            version = 5
            assignments = tuple(
                SyncGroupAssignment(member, encode_partitions(each)) for member, each in sorted(request.assignment)
            )
            body = SyncGroupRequest(
                GROUP_ID,
                generation_id=request.generation,
                member_id=request.member_id,
                group_instance_id=instance,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=self.protocol,
                assignments=assignments,
            )
        else:
            version = 5
            body = LeaveGroupRequest(GROUP_ID, (LeaveGroupMember(request.member_id),))
        return Arrive(client + 1 if request.awaited else LATE, version, CLIENT_ID, CLIENT_HOST, body, new_id)

    @property
    def protocol(self) -> str:
        return "cooperative-sticky" if self.config.cooperative else "range"

    def step(self, group: GroupState, *inputs: Input) -> Result:
        """Run one step of the machine for each input in turn, taking the first of its choices (contract, section 1)."""
        known = self._known.get((group, inputs))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[group, inputs] = self._step(group, inputs)
        return known

    def _step(self, group: GroupState, inputs: tuple[Input, ...]) -> Result:
        records: list[Record] = []
        answers: list[tuple[int, ResponseBody]] = []
        for each in inputs:
            successor = self.machine.successors(group, each)[0]
            group = successor.state
            answers.extend(successor.output.replies)
            if isinstance(each, AppendError):
                records.clear()
            records.extend(successor.output.records)
        heartbeat = [body.error_code.name for _, body in answers if isinstance(body, HeartbeatResponse)]
        replies = tuple((to - 1, reply_of(body)) for to, body in answers if NOBODY < to < LATE and _is_future(body))
        stimuli = tuple((type(each).__name__, each) for each in inputs)
        return Result(stimuli, settled(group), tuple(records), replies, heartbeat[0] if heartbeat else None)

    def get(self, group: GroupState, client: int, request: Request, new_id: str) -> Result:
        return self.step(group, self.request(client, request, new_id))

    def reject_append(self, group: GroupState, client: int, request: Request) -> Result | None:
        """Handle the request and refuse its record. Returns None if it appends none."""
        arrive = self.request(client, request, "")
        if not self.step(group, arrive).records:
            return None
        return self.step(group, arrive, AppendError(ErrorCode.NOT_ENOUGH_REPLICAS))

    def heartbeat(self, group: GroupState, client: int, member: Client) -> Result:
        instance = self.config.instance(client) or None
        body = HeartbeatRequest(
            GROUP_ID, generation_id=member.generation, member_id=member.member_id, group_instance_id=instance
        )
        return self.step(group, Arrive(LATE, 4, CLIENT_ID, CLIENT_HOST, body))

    def fire(self, group: GroupState, timer: Timer) -> Result:
        return self.step(group, Fire(timer))

    def replicate(self, group: GroupState) -> Result:
        return self.step(group, Durable(1))

    def fail_over(self, group: GroupState, record: Record) -> Result:
        """Fail over: the old coordinator unloads the group, a new one loads it from its last replicated record."""
        old = self.step(group, Lose())
        return old._replace(stimuli=(*old.stimuli, ("Loaded", Loaded(record))), group=self.load(record), records=())


def _is_future(body: ResponseBody) -> bool:
    return isinstance(body, JoinGroupResponse | SyncGroupResponse)


def reply_of(body: ResponseBody) -> Reply:
    """Return the answer in the contract's form: an error other than NONE carries nothing but a new member id."""
    if isinstance(body, JoinGroupResponse):
        error = body.error_code
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            return JoinReply("JoinGroup", error.name, body.member_id)
        if error is not ErrorCode.NONE:
            return JoinReply("JoinGroup", error.name)
        members = frozenset((member.member_id, decode_metadata(member.metadata)) for member in body.members)
        return JoinReply(
            "JoinGroup", "NONE", body.member_id, body.generation_id, body.leader, body.skip_assignment, members
        )
    if isinstance(body, SyncGroupResponse):
        if body.error_code is not ErrorCode.NONE:
            return SyncReply("SyncGroup", body.error_code.name)
        return SyncReply("SyncGroup", "NONE", decode_partitions(body.assignment))
    raise TypeError(f"no client waits for {type(body).__name__}")


def settled(state: GroupState) -> GroupState:
    """Return the state without values that no later step of the closed system reads.

    Operations that only wait (their callback does nothing) are dropped, as operations do not time out here. Of the
    others the request is not read again, and the id only while the answer is due. ``written`` is for an append error in
    the same step. The previous state only marks an initial rebalance (C-ST-20).
    """
    group = existing(state)
    if group.previous != DEAD and not (group.state == PREPARING and group.previous == EMPTY):
        state = state._replace(group=group._replace(previous=DEAD))
    group = existing(state)
    if any(LATE in (member.join, member.sync) for member in group.members):
        state = state._replace(group=renumbered(group, LATE))
    if not state.operations and state.written is None:
        return state
    operations = tuple(
        operation._replace(
            id=operation.id if _is_due(group, operation) else NOBODY,
            request=None,
            body=None,
            answered=False,
        )
        for operation in state.operations
        if isinstance(operation.callback, Assigned | Replaced)
    )
    return state._replace(operations=operations, written=None)


def _is_due(group: Group, operation: Operation) -> bool:
    """Return whether a client waits for the operation's answer, which is still to come: not if its member is gone
    again."""
    callback = operation.callback
    return (
        isinstance(callback, Replaced)
        and not operation.answered
        and operation.id != LATE
        and any(member.member_id == callback.new_id for member in group.members)
    )


def parked(state: GroupState, client: int) -> bool:
    """Return whether the coordinator has a stored future of this client."""
    return any(client + 1 in (member.join, member.sync) for member in existing(state).members)


def knows(state: GroupState, member_id: str) -> bool:
    """Return whether the id is a member's or pending."""
    group = existing(state)
    return member_id in group.pending_join or any(member.member_id == member_id for member in group.members)


def forget(state: GroupState, client: int) -> GroupState:
    """Note that the client has given up on its parked future; the coordinator does not know and keeps it."""
    if not parked(state, client):
        return state
    operations = tuple(
        operation._replace(id=NOBODY) if operation.id == client + 1 else operation for operation in state.operations
    )
    return state._replace(group=renumbered(existing(state), client + 1), operations=operations)


def renumbered(group: Group, request: int) -> Group:
    """Return the group after no client waits for the request any more."""
    members = tuple(
        member._replace(
            join=NOBODY if member.join == request else member.join,
            sync=NOBODY if member.sync == request else member.sync,
        )
        for member in group.members
    )
    return group._replace(members=members)


def existing(state: GroupState) -> Group:
    """Return the group, which always exists in the closed system."""
    if state.group is None:
        raise ValueError("the group does not exist")
    return state.group
