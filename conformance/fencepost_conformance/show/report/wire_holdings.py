"""The holders of partitions in a wire trace: the assignments in answers, as long as the protocol lets members keep
them.

An assignment counts from the answer that contains it. It ends with another one, with an answer that fences the member,
with the member's leave or its removal by an administrator. It also ends by actions of which the wire shows only the
consequences:

* a member that joins has given up partitions that its subscriptions do not list as owned, so an eager one all of them
  (K-CB-03, A-EMB-02);
* a member that joins with an instance id replaces the member that had it (C-STATIC-02, M-STATIC-03);
* in a classic group a member that has not joined a generation is not in it, once any member got its share (C-JOIN-44);
* a member whose timeout had passed when its partitions were given to another member has been removed: its session
  (C-TMR-04, M-TMR-01), or its time to revoke or to join again (M-TMR-02, X-TMR-02).

The broker's own view is not visible. Two holders at once that none of this explains are shown as such.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fencepost.member.consumer_protocol import SchemaError, decode_subscription
from fencepost.protocol import consumer_messages as cm
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.settings import Settings

from .holdings import CLASSIC, CONSUMER, GroupAt, MemberAt
from .names import Names, Partition, assignment_words, decoded
from .words import errors_in

#: answers after which a client must regard itself as removed (K-HB-10, K-ERR-06)
_FENCED = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.ILLEGAL_GENERATION,
)
#: tolerance for clock differences
_TOLERANCE_MS = 100


@dataclass(slots=True)
class _Member:
    """``heard_ms``: time of its last request; ``owes_ms``: since when it must revoke, or join again."""

    protocol: str
    instance: str | None = None
    session_ms: int = 0
    rebalance_ms: int = 0
    heard_ms: int = 0
    owes_ms: int | None = None
    generation: int = -1
    joins: bool = False  #: it asked to join, and has got no share since
    epochs: str = ""
    holds: tuple[Partition, ...] = ()
    other: str = ""

    def may_be_gone(self, now: int) -> bool:
        """Whether a timer of the coordinator may have removed it."""
        late = self.session_ms and now - self.heard_ms >= self.session_ms - _TOLERANCE_MS
        owes = self.owes_ms is not None and now - self.owes_ms >= self.rebalance_ms - _TOLERANCE_MS
        return bool(late or owes)


@dataclass(slots=True)
class _Group:
    kind: str
    members: dict[str, _Member] = field(default_factory=dict)


class WireHoldings:
    """Takes the requests and answers of the group APIs in the order of the lines. Each call returns the group's new
    state, if anything is new."""

    def __init__(self, names: Names, settings: Settings) -> None:
        self._names = names
        self._settings = settings
        self._groups: dict[str, _Group] = {}
        self._shown: dict[str, GroupAt] = {}

    def sent(self, now: int, request: m.RequestBody) -> tuple[GroupAt, ...]:
        """Handle a request: a member that joins, or reports owned partitions, has given up the others."""
        member_id = getattr(request, "member_id", "")
        group_id = getattr(request, "group_id", "")
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if member is None:
            return ()
        member.heard_ms = now
        if isinstance(request, m.JoinGroupRequest):
            owned = _owned(request)
            member.holds = tuple(partition for partition in member.holds if partition in owned)
            member.joins, member.owes_ms, member.other = True, None, ""
            member.session_ms, member.rebalance_ms = request.session_timeout_ms, _rebalance_ms(request)
        elif isinstance(request, cm.ConsumerGroupHeartbeatRequest):
            if request.rebalance_timeout_ms >= 0:
                member.rebalance_ms = request.rebalance_timeout_ms
            if request.topic_partitions is not None:
                said = self._names.of_rows(request.topic_partitions)
                if set(said) <= set(member.holds):
                    member.owes_ms = None
        return self._if_changed(group_id)

    def answered(self, now: int, request: m.RequestBody, response: m.ResponseBody) -> tuple[GroupAt, ...]:
        """Handle an answer."""
        errors = errors_in(response)
        if isinstance(request, m.LeaveGroupRequest):
            return () if errors else self._left(request)
        if isinstance(request, m.DeleteGroupsRequest) and isinstance(response, m.DeleteGroupsResponse):
            deleted = [row.group_id for row in response.results if row.error_code is ErrorCode.NONE]
            return tuple(group for name in deleted for group in self._remove(name, set(self._ids(name))))
        if not isinstance(
            request, m.SyncGroupRequest | m.JoinGroupRequest | m.HeartbeatRequest | cm.ConsumerGroupHeartbeatRequest
        ):
            return ()
        group_id = request.group_id
        if any(error in _FENCED for error in errors):
            return self._remove(group_id, {request.member_id})
        if errors:
            self._to_rejoin(now, group_id, request.member_id, errors)
        elif isinstance(request, m.JoinGroupRequest) and isinstance(response, m.JoinGroupResponse):
            self._joined(now, request, response)
        elif isinstance(request, m.SyncGroupRequest) and isinstance(response, m.SyncGroupResponse):
            self._synced(now, request, response)
        elif isinstance(request, cm.ConsumerGroupHeartbeatRequest) and isinstance(
            response, cm.ConsumerGroupHeartbeatResponse
        ):
            self._beaten(now, request, response)
        return self._if_changed(group_id)

    # ---- answers ------------------------------------------------------------------------------------------------

    def _left(self, request: m.LeaveGroupRequest) -> tuple[GroupAt, ...]:
        ids = {row.member_id for row in request.members if row.member_id}
        instances = {row.group_instance_id for row in request.members if not row.member_id} - {None}
        ids |= {name for name, member in self._of(request.group_id) if member.instance in instances}
        return self._remove(request.group_id, ids)

    def _to_rejoin(self, now: int, group_id: str, member_id: str, errors: Iterable[ErrorCode]) -> None:
        for name, member in self._of(group_id):
            if name == member_id and member.owes_ms is None and ErrorCode.REBALANCE_IN_PROGRESS in errors:
                member.owes_ms = now

    def _joined(self, now: int, request: m.JoinGroupRequest, response: m.JoinGroupResponse) -> None:
        member = self._member(request.group_id, response.member_id, CLASSIC, request.group_instance_id)
        member.session_ms, member.rebalance_ms = request.session_timeout_ms, _rebalance_ms(request)
        member.heard_ms, member.joins, member.owes_ms = now, True, None

    def _synced(self, now: int, request: m.SyncGroupRequest, response: m.SyncGroupResponse) -> None:
        member = self._member(request.group_id, request.member_id, CLASSIC, request.group_instance_id)
        held = decoded(response.assignment)
        member.holds = held or ()
        member.other = assignment_words(response.assignment) if held is None else ""
        member.generation, member.joins, member.owes_ms = request.generation_id, False, None
        member.epochs = f"gen {request.generation_id}"
        rows = dict(self._of(request.group_id))
        if not any(each.protocol == CONSUMER for each in rows.values()):
            absent = {name for name, each in rows.items() if each.generation < member.generation and not each.joins}
            self._drop(request.group_id, absent)
        self._overtaken(now, request.group_id, member)

    def _beaten(
        self, now: int, request: cm.ConsumerGroupHeartbeatRequest, response: cm.ConsumerGroupHeartbeatResponse
    ) -> None:
        member_id = response.member_id or request.member_id
        if request.member_epoch in (cm.LEAVE_EPOCH, cm.STATIC_LEAVE_EPOCH):
            self._drop(request.group_id, {member_id})
            return
        member = self._member(request.group_id, member_id, CONSUMER, request.instance_id)
        member.session_ms = self._settings.group_consumer_session_timeout_ms
        if request.rebalance_timeout_ms >= 0:
            member.rebalance_ms = request.rebalance_timeout_ms
        member.heard_ms = max(member.heard_ms, now if member.heard_ms == 0 else 0)
        member.epochs = f"epoch {response.member_epoch}"
        if response.assignment is not None:
            held = self._names.of_rows(response.assignment)
            if set(member.holds) - set(held) and member.owes_ms is None:
                member.owes_ms = now
            member.holds = held
            self._overtaken(now, request.group_id, member)

    def _overtaken(self, now: int, group_id: str, winner: _Member) -> None:
        """Remove members that held what the winner just got, and whose timeouts had passed."""
        given = set(winner.holds)
        self._drop(group_id, {
            name for name, each in self._of(group_id)
            if each is not winner and given.intersection(each.holds) and each.may_be_gone(now)
        })  # fmt: skip

    # ---- the table ----------------------------------------------------------------------------------------------

    def _of(self, group_id: str) -> list[tuple[str, _Member]]:
        group = self._groups.get(group_id)
        return list(group.members.items()) if group is not None else []

    def _ids(self, group_id: str) -> list[str]:
        return [name for name, _ in self._of(group_id)]

    def _member(self, group_id: str, member_id: str, protocol: str, instance: str | None) -> _Member:
        """Return the member's row, created if needed; remove a member that had its instance id."""
        group = self._groups.setdefault(group_id, _Group(protocol))
        group.kind = protocol
        member = group.members.setdefault(member_id, _Member(protocol))
        member.protocol = protocol
        member.instance = instance if instance is not None else member.instance
        if instance is not None:
            others = {name for name, each in group.members.items() if each.instance == instance and each is not member}
            self._drop(group_id, others)
        return member

    def _drop(self, group_id: str, members: set[str]) -> None:
        for name in members:
            self._groups[group_id].members.pop(name, None)

    def _remove(self, group_id: str, members: set[str]) -> tuple[GroupAt, ...]:
        if group_id in self._groups:
            self._drop(group_id, members)
        return self._if_changed(group_id)

    def _if_changed(self, group_id: str) -> tuple[GroupAt, ...]:
        """Return the group, if it has changed since the last call. A member without any assignment is not shown."""
        group = self._groups.get(group_id)
        if group is None:
            return ()
        rows = sorted(
            (
                MemberAt(self._names.member(name), each.protocol, each.epochs, "", each.holds, other=each.other)
                for name, each in group.members.items()
                if each.epochs
            ),
            key=lambda row: row.member,
        )
        now = GroupAt(group_id, group.kind, "as answered", members=tuple(rows))
        before = self._shown.get(group_id)
        if before == now or (before is None and not rows):
            return ()
        self._shown[group_id] = now
        return (now,)


def _rebalance_ms(request: m.JoinGroupRequest) -> int:
    """Return the rebalance timeout; JoinGroup v0 has none, so its session timeout counts (G-WIRE-01)."""
    return request.rebalance_timeout_ms if request.rebalance_timeout_ms >= 0 else request.session_timeout_ms


def _owned(request: m.JoinGroupRequest) -> set[Partition]:
    """Return the partitions that a JoinGroup lists as owned; none where they are in another format."""
    found: set[Partition] = set()
    for protocol in request.protocols:
        try:
            rows = decode_subscription(protocol.metadata).owned_partitions
        except SchemaError:
            continue
        found |= {(row.topic, row.partition) for row in rows}
    return found
