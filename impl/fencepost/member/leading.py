"""What the elected leader does: watch the group's topics, assign, tell everybody (8.5)."""

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
    """Match the pattern against new metadata and take the snapshot of it (K-JOIN-15, K-JOIN-18)."""
    member = turn.member
    if member.metadata_version > member.snapshot.version:
        subscription = member.subscription.match(member.cluster)
        snapshot = Snapshot.take(member.metadata_version, member.cluster, subscription.watched, member.settings.rack)
        turn.member = turn.member._replace(subscription=subscription, snapshot=snapshot)


def elected(turn: Turn, response: JoinGroupResponse) -> None:
    """JoinGroup made this member leader; it needs fresh metadata of all the group's topics first (K-JOIN-10)."""
    try:
        members = _members(response)
    except SchemaError as reason:
        _fail(turn, "SchemaException", str(reason))
        return
    topics = frozenset(topic for member in members.values() for topic in member.subscription.topics)
    _watch(turn, Electing(response), topics)


def metadata_arrived(turn: Turn) -> None:
    """Go on with the election that waits for metadata, if its join is still wanted."""
    electing = turn.member.electing
    if electing is None or turn.member.metadata_requested:
        return
    turn.member = turn.member._replace(electing=None)
    if turn.member.generation.generation_id != electing.response.generation_id:
        # Another thread reset the member meanwhile: as if SyncGroup had found that (K-ST-12).
        turn.fail_join("IllegalGenerationException", Retry.AT_ONCE)
        return
    take_in_metadata(turn)
    if electing.assignments is None:
        _assign(turn, electing.response)
    else:
        _tell(turn, electing.assignments)


def _watch(turn: Turn, electing: Electing, topics: frozenset[str]) -> None:
    """Watch ``topics``, and go on at once if the metadata at hand covers them."""
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
        # K-JOIN-11: the group keeps what it has, but this member watches its metadata from now on
        _tell(turn, {})
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
        _fail(turn, "IllegalStateException", "a partition moves from an owner to another member")  # K-JOIN-13
        return
    own = frozenset(topic for row in members.values() for topic in row.subscription.topics)
    topics = frozenset(partition.topic for row in assigned.assignments.values() for partition in row.partitions)
    if assignor.name not in BUILT_IN and not topics <= own:
        _watch(turn, Electing(response, assigned.assignments), own | topics)  # K-JOIN-17
    else:
        _tell(turn, assigned.assignments)


def _tell(turn: Turn, assignments: Mapping[str, Assignment]) -> None:
    turn.member = turn.member._replace(assignment_snapshot=turn.member.snapshot)  # K-JOIN-02
    requests.send_sync(turn, assignments)


def _moves_directly(members: Mapping[str, GroupMember], assignments: Mapping[str, Assignment]) -> bool:
    """Is a partition added to a member and taken from another in one round?"""
    added: set[TopicPartition] = set()
    revoked: set[TopicPartition] = set()
    for member_id, assignment in assignments.items():
        before, after = set(members[member_id].subscription.owned_partitions), set(assignment.partitions)
        added |= after - before
        revoked |= before - after
    return not added.isdisjoint(revoked)


def _fail(turn: Turn, cause: str, text: str) -> None:
    """Nothing is sent; the exception is thrown from poll and the member stays in its state (K-JOIN-20)."""
    turn.fail_join(cause, Retry.NEVER, Failure(FailureKind.ASSIGNOR, text=text))


def by_name(assignors: tuple[Assignor, ...], name: str | None) -> Assignor | None:
    """The assignor of this name, None if the member has none."""
    return next((assignor for assignor in assignors if assignor.name == name), None)


def remember(turn: Turn, old: Assignor, new: Assignor) -> None:
    """Keep what the assignor wants to remember (A-PLUG-01)."""
    if new is not old:
        turn.member = turn.member._replace(
            remembering=tuple(new if each is old else each for each in turn.member.assignors)
        )
