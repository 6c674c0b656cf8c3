"""The elected leader: it watches the group's topics, assigns, and sends the assignments (8.5)."""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol.messages import JoinGroupResponse

from . import requests
from .assignors.base import Assignor, GroupMember, RebalanceProtocol
from .consumer_protocol import Assignment, SchemaError, decode_subscription
from .events import Failure, FailureKind, RequestMetadata
from .partitions import TopicPartition
from .state import Electing, Retry
from .subscription import Snapshot
from .turn import Turn

#: Assignors that assign subscribed topics only (K-JOIN-17).
BUILT_IN = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})


def take_in_metadata(turn: Turn) -> None:
    """Match the pattern against new metadata and take a snapshot of the metadata (K-JOIN-15, K-JOIN-18)."""
    member = turn.member
    if member.metadata_version > member.snapshot.version:
        subscription = member.subscription.match(member.cluster)
        snapshot = Snapshot.take(member.metadata_version, member.cluster, subscription.watched, member.settings.rack)
        turn.member = turn.member._replace(subscription=subscription, snapshot=snapshot)


def elected(turn: Turn, response: JoinGroupResponse) -> None:
    """Start the leader's work after JoinGroup. It first needs fresh metadata of all the group's topics (K-JOIN-10)."""
    try:
        members = _members(response)
    except SchemaError as reason:
        _fail(turn, "SchemaException", str(reason))
        return
    topics = frozenset(topic for member in members.values() for topic in member.subscription.topics)
    _watch(turn, Electing(response), topics)


def metadata_arrived(turn: Turn) -> None:
    """Resume the leader's work that waits for metadata, unless the member has left that generation."""
    electing = turn.member.electing
    if electing is None or turn.member.metadata_requested:
        return
    turn.member = turn.member._replace(electing=None)
    if turn.member.generation.generation_id != electing.response.generation_id:
        # The heartbeat thread reset the member meanwhile; the join fails as at SyncGroup (K-ST-12).
        turn.fail_join("IllegalGenerationException", Retry.AT_ONCE)
        return
    take_in_metadata(turn)
    if electing.assignments is None:
        _assign(turn, electing.response)
    else:
        _send_assignments(turn, electing.assignments)


def _watch(turn: Turn, electing: Electing, topics: frozenset[str]) -> None:
    """Watch ``topics``, and continue directly if the known metadata covers them."""
    subscription = turn.member.subscription.watch(topics)
    turn.member = turn.member._replace(subscription=subscription, electing=electing)
    if not topics <= subscription.topics:
        turn.member = turn.member._replace(metadata_requested=True)
        turn.emit(RequestMetadata(subscription.watched))
    metadata_arrived(turn)


def _members(response: JoinGroupResponse) -> dict[str, GroupMember]:
    return {
        row.member_id: GroupMember(decode_subscription(row.metadata), row.group_instance_id) for row in response.members
    }


def _assign(turn: Turn, response: JoinGroupResponse) -> None:
    member = turn.member
    turn.member = turn.member._replace(is_leader=True)
    if response.skip_assignment:
        # K-JOIN-11: the group keeps its assignment, but this member watches the metadata from now on
        _send_assignments(turn, {})
        return
    assignor = by_name(member.assignors, response.protocol_name)
    if assignor is None:
        _fail(
            turn, "IllegalStateException", f"the coordinator selected the unknown protocol {response.protocol_name!r}"
        )
        return
    members = _members(response)
    try:
        assigned = assignor.assign(member.cluster, members)
    except Exception as reason:  # K-JOIN-20: a plug-in may raise anything
        _fail(turn, type(reason).__name__, str(reason))
        return
    remember(turn, assignor, assigned.assignor)
    cooperative = member.settings.protocol is RebalanceProtocol.COOPERATIVE
    if cooperative and assignor.name != "cooperative-sticky" and _moves_directly(members, assigned.assignments):
        # K-JOIN-13
        _fail(
            turn, "IllegalStateException", f"assignor {assignor.name!r} moves a partition before its owner revoked it"
        )
        return
    own = frozenset(topic for row in members.values() for topic in row.subscription.topics)
    topics = frozenset(partition.topic for row in assigned.assignments.values() for partition in row.partitions)
    if assignor.name not in BUILT_IN and not topics <= own:
        _watch(turn, Electing(response, assigned.assignments), own | topics)  # K-JOIN-17
    else:
        _send_assignments(turn, assigned.assignments)


def _send_assignments(turn: Turn, assignments: Mapping[str, Assignment]) -> None:
    turn.member = turn.member._replace(assignment_snapshot=turn.member.snapshot)  # K-JOIN-02
    requests.send_sync(turn, assignments)


def _moves_directly(members: Mapping[str, GroupMember], assignments: Mapping[str, Assignment]) -> bool:
    """Return whether a partition is added to one member and taken from another in the same round."""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member_id, assignment in assignments.items():
        before, after = set(members[member_id].subscription.owned_partitions), set(assignment.partitions)
        added |= after - before
        revoked |= before - after
    return not added.isdisjoint(revoked)


def _fail(turn: Turn, cause: str, text: str) -> None:
    """Fail the join without a request: poll throws the exception and the member keeps its state (K-JOIN-20)."""
    turn.fail_join(cause, Retry.NEVER, Failure(FailureKind.ASSIGNOR, text=text))


def by_name(assignors: tuple[Assignor, ...], name: str | None) -> Assignor | None:
    """Return the assignor with this name, or None."""
    return next((assignor for assignor in assignors if assignor.name == name), None)


def remember(turn: Turn, old: Assignor, new: Assignor) -> None:
    """Store the assignor that replaces ``old``, with the data that it remembers (A-PLUG-01)."""
    if new is not old:
        turn.member = turn.member._replace(
            remembering=tuple(new if each is old else each for each in turn.member.assignors)
        )
