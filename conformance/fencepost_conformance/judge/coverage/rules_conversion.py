"""Conditions under which a step shows a rule about conversions of a group (rule book, sections 9.1, 9.2, 9.5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
)
from fencepost.protocol.embedded import PROTOCOL_TYPE, SchemaError, decode_subscription, decode_topics
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.events import TimerKind
from fencepost.protocol.records import GroupMetadataKey
from fencepost.protocol.settings import MigrationPolicy
from fencepost.protocol.view import GroupState, MemberView

from .consumer_situation import ConsumerSituation as S
from .open_rules import Part, Table, Tables
from .rules_mixed import MixedRules

T = TypeVar("T")
_CONSUMER_TIMERS = tuple(kind for kind in TimerKind if kind.value.startswith("consumer"))
_PREPARING = GroupState.PREPARING_REBALANCE


def _read(decode: Callable[[bytes], T], data: bytes | None) -> T | None:
    """Return the decoded bytes; None if they are unreadable."""
    if data is None:
        return None
    try:
        return decode(data)
    except SchemaError:
        return None


def _policy(s: S) -> MigrationPolicy:
    return s.settings.group_consumer_migration_policy


def _metadata(s: S, row: MemberView) -> bytes | None:
    """Return the member's metadata for the selected protocol."""
    name = s.classic_before.protocol_name if s.classic_before else None
    return next((each.metadata for each in row.protocols if each.name == name), None)


def _classic_members(s: S) -> tuple[MemberView, ...]:
    return s.classic_before.members if s.classic_before else ()


def _barred(s: S) -> bool:
    """X-UP-02, except for the contents of assignments."""
    old = s.classic_before
    return old is not None and (
        not _policy(s).upgrades
        or old.protocol_type != PROTOCOL_TYPE
        or len(old.members) > s.settings.group_consumer_max_size
    )


def _customised(s: S) -> bool:
    """A custom assignor has added its own data to an assignment."""
    assignments = [_read(decode_topics, row.assignment) for row in _classic_members(s)]
    return any(each is not None and bool(each[1]) for each in assignments)


def _unreadable(s: S) -> bool:
    return any(
        (row.assignment and _read(decode_topics, row.assignment) is None)
        or _read(decode_subscription, _metadata(s, row)) is None
        for row in _classic_members(s)
    )


def _unselected(s: S) -> bool:
    """Some member lacks the selected protocol, perhaps since none is selected."""
    return any(_metadata(s, row) is None for row in _classic_members(s))


def _continued(s: S) -> MemberView | None:
    """The classic member that the request's sender replaces."""
    instance = s.body.instance_id
    return next(
        (
            row
            for row in _classic_members(s)
            if row.member_id == s.member_id or (instance is not None and row.group_instance_id == instance)
        ),
        None,
    )


def _continues_alike(s: S) -> bool:
    row = _continued(s)
    said = None if row is None else _read(decode_subscription, _metadata(s, row))
    return said is not None and s.now is not None and {*said.topics} == {*s.now.subscribed_topic_names}


def _generation(s: S) -> int:
    return s.classic_before.generation_id if s.classic_before else -1


def _group_epochs(s: S) -> list[int]:
    return [value.epoch for value in s.wrote(r.ConsumerGroupMetadataKey)]


#: a ConsumerGroupHeartbeat that meets a classic group with members
_UPGRADE: MixedRules = {
    "M-VAL-23": lambda s: s.upgraded,
    "M-VAL-24": lambda s: s.error is E.GROUP_ID_NOT_FOUND,
    "X-POL-03": lambda s: (
        s.error is E.GROUP_ID_NOT_FOUND and s.body.member_epoch == 0 and _policy(s) is MigrationPolicy.DOWNGRADE
    ),
    "X-UP-01": lambda s: s.upgraded,
    "X-UP-02": lambda s: (
        s.error is E.GROUP_ID_NOT_FOUND and s.body.member_epoch == 0 and (_barred(s) or _customised(s))
    ),
    "X-UP-03": lambda s: any(
        isinstance(reply.body, m.JoinGroupResponse | m.SyncGroupResponse)
        and reply.body.error_code is E.REBALANCE_IN_PROGRESS
        for reply in s.seen.replies
    ),
    "X-UP-04": lambda s: s.upgraded and _generation(s) in _group_epochs(s),
    "X-UP-05": lambda s: s.upgraded and any(row.assignment for row in _classic_members(s)),
    "X-UP-06": lambda s: (
        s.error in (E.GROUP_ID_NOT_FOUND, E.UNKNOWN_SERVER_ERROR)
        and s.body.member_epoch == 0
        and not _barred(s)
        and not _unselected(s)
        and _unreadable(s)
    ),
    "X-UP-07": lambda s: s.error in (E.UNKNOWN_SERVER_ERROR, E.COORDINATOR_LOAD_IN_PROGRESS) and _unselected(s),
    "X-UP-08": lambda s: s.upgraded and any(
        key.kind is TimerKind.CONSUMER_SESSION and key.member_id != s.member_id for key in s.seen.timers
    ),
    "X-UP-09": lambda s: (
        s.error is E.GROUP_MAX_SIZE_REACHED or (s.upgraded and max(_group_epochs(s)) > _generation(s))
    ),
    "X-UP-10": lambda s: s.upgraded and bool(s.wrote(GroupMetadataKey, removed=True)),
    "X-UP-11": lambda s: s.upgraded and any(
        row.classic is not None and row.member_epoch < s.after.assignment_epoch  # type: ignore[union-attr]
        for row in s.after.members  # type: ignore[union-attr]
    ),
    "X-UP-12": lambda s: s.upgraded and bool(s.classic_before.pending_join),  # type: ignore[union-attr]
    "X-UP-14": lambda s: s.upgraded and s.computed and any(row.assignment for row in _classic_members(s)),
    "X-UP-15": lambda s: s.upgraded and _continues_alike(s),
}  # fmt: skip


def _all_classic(s: S) -> bool:
    """A member left, and the group stayed a consumer group although only classic members remain."""
    rows = s.after.members if s.after is not None else ()
    return s.fenced and bool(rows) and all(row.classic is not None for row in rows)


def _by_departure(s: S) -> bool:
    return s.downgraded and not isinstance(s.body, m.JoinGroupRequest)


def _by_replacement(s: S) -> bool:
    return s.downgraded and isinstance(s.body, m.JoinGroupRequest)


def _lagging(s: S) -> bool:
    """A member of the new classic group is at another epoch than its generation."""
    left = {row.member_id for row in s.classic_after.members} if s.classic_after else set()
    generation = s.classic_after.generation_id if s.classic_after else -1
    return s.downgraded and any(
        row.member_id in left and row.member_epoch != generation
        for row in (s.before.members if s.before else ())
    )  # fmt: skip


def _takes_instance(s: S) -> bool:
    """A ConsumerGroupHeartbeat replaces a classic member that had not left."""
    if not isinstance(s.body, ConsumerGroupHeartbeatRequest) or s.body.instance_id is None or not s.accepted:
        return False
    if s.upgraded:
        row = _continued(s)
        return row is not None and row.member_id != s.member_id
    old = dict(s.before.static_members).get(s.body.instance_id) if s.before else None
    return s.replaced and any(row.member_id == old and row.classic is not None for row in s.before.members)  # type: ignore[union-attr]


def _cannot_leave(s: S) -> bool:
    """A departure that would downgrade the group had no effect."""
    if s.before is None or s.seen.records or s.after is None or not any(row.classic for row in s.before.members):
        return False
    if isinstance(s.event, ev.TimerFired):
        return s.event.key.kind in _CONSUMER_TIMERS and s.member is not None and s.now == s.member
    leaves = isinstance(s.body, m.LeaveGroupRequest) or (
        isinstance(s.body, ConsumerGroupHeartbeatRequest) and s.body.member_epoch < 0
    )
    return leaves and bool(s.before.members) and s.error is E.GROUP_ID_NOT_FOUND


def _old_sync_ends(s: S) -> bool:
    """The write of a classic leader's SyncGroup ends when its group is already a consumer group."""
    if isinstance(s.event, ev.Appended):
        return any(sync.offset <= s.event.offset and sync.group_id in s.groups for sync in s.leader_syncs)
    return (
        isinstance(s.event, ev.TimerFired)
        and s.event.key.kind is TimerKind.OPERATION
        and any(
            key.kind is TimerKind.JOIN and at is not None and key.group_id in s.groups
            for key, at in s.seen.timers.items()
        )
    )


def _gives_way(s: S) -> bool:
    """A JoinGroup meets an empty consumer group, which is removed (C-JOIN-10)."""
    return isinstance(s.body, m.JoinGroupRequest) and s.before is not None and not s.before.members and s.after is None


def _empty_converted(s: S) -> bool:
    old = s.classic_before
    return (
        isinstance(s.body, ConsumerGroupHeartbeatRequest)
        and old is not None
        and not old.members
        and s.before is None
        and s.after is not None
    )


#: any step that downgrades a consumer group with members
_DOWNGRADED: MixedRules = {
    "C-ST-08": lambda s: s.downgraded,
    "X-DOWN-01": _by_departure,
    "X-DOWN-02": lambda s: _by_departure(s) and bool(s.wrote(GroupMetadataKey)),
    "X-DOWN-03": lambda s: _by_departure(s) and s.classic_after.generation_id == s.before.group_epoch,  # type: ignore[union-attr]
    "X-DOWN-04": lambda s: _by_departure(s) and any(row.assignment for row in s.classic_after.members),  # type: ignore[union-attr]
    "X-DOWN-05": lambda s: _by_departure(s) and any(key.kind is TimerKind.SESSION for key in s.seen.timers),
    "X-DOWN-06": lambda s: _by_departure(s) and s.classic_after.state is _PREPARING,  # type: ignore[union-attr]
    "X-DOWN-20": _by_replacement,
    "X-DOWN-21": lambda s: _by_replacement(s) and bool(s.wrote(r.ConsumerGroupMetadataKey, removed=True)),
    "X-DOWN-22": lambda s: _by_replacement(s) and s.classic_after.state is GroupState.STABLE,  # type: ignore[union-attr]
    "X-DOWN-23": lambda s: _by_replacement(s) and s.classic_after.state is _PREPARING,  # type: ignore[union-attr]
    "X-DOWN-24": lambda s: _by_replacement(s) and not any(key.kind is TimerKind.CONSUMER_SYNC for key in s.seen.timers),
    "X-DOWN-32": _lagging,
}  # fmt: skip
#: any JoinGroup
_JOIN: MixedRules = {
    "C-JOIN-10": lambda s: _gives_way(s) and s.classic_after is not None,
    "C-JOIN-15": lambda s: _gives_way(s) and s.error is E.UNKNOWN_MEMBER_ID,
}  # fmt: skip
#: any request that creates or removes a consumer group
_EXCHANGED: MixedRules = {
    "M-VAL-22": _empty_converted,
    "X-POL-05": lambda s: _gives_way(s) or _empty_converted(s),
}  # fmt: skip
#: any heartbeat of a static member
_STATIC: MixedRules = {
    "M-STATIC-15": lambda s: s.replaced and s.member is not None and s.member.instance_id != s.body.instance_id,
    "X-UP-13": _takes_instance,
}  # fmt: skip
#: any heartbeat of the classic protocol
_BEAT: MixedRules = {
    "X-DOWN-07": lambda s: (
        isinstance(s.body, m.HeartbeatRequest)
        and s.classic_before is not None
        and s.classic_before.generation_id == s.downgraded_at
        and s.error in (E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION)
    ),
}  # fmt: skip
#: any step that converts a group, or permanently removes members of one
_CONVERTED: MixedRules = {
    "X-POL-01": lambda s: (s.upgraded or s.downgraded) and _policy(s) is MigrationPolicy.BIDIRECTIONAL,
    "X-POL-02": lambda s: (s.upgraded or _all_classic(s)) and _policy(s) is MigrationPolicy.UPGRADE,
    "X-DOWN-08": _all_classic,
}  # fmt: skip
#: replication, and any timer that fires
_ENDED: MixedRules = {"X-UP-16": _old_sync_ends}
#: any timer that fires
_FIRED: MixedRules = {
    "X-DOWN-33": lambda s: (
        isinstance(s.event, ev.TimerFired) and s.event.key.kind in _CONSUMER_TIMERS and s.classic_before is not None
    ),
}
#: any description
_DESCRIBED: MixedRules = {
    "C-ADM-06": lambda s: any(
        isinstance(reply.body, ConsumerGroupDescribeResponse)
        and any(row.error_code is E.GROUP_ID_NOT_FOUND for row in reply.body.groups)
        for reply in s.seen.replies
    ),
}
#: any step in which a member may leave
_DEPARTING: MixedRules = {"X-DOWN-09": _cannot_leave}
UPGRADE: Tables = (Table(_UPGRADE, of=(ConsumerGroupHeartbeatRequest,)),)
_CONSUMERS = Part.CONSUMER_GROUPS
ANY: Tables = (
    Table(_DOWNGRADED, lambda s: s.downgraded, needs=_CONSUMERS),
    Table(_JOIN, of=(m.JoinGroupRequest,), needs=_CONSUMERS),
    Table(
        _EXCHANGED,
        lambda s: (s.before is None) is not (s.after is None),
        of=(m.JoinGroupRequest, ConsumerGroupHeartbeatRequest),
        needs=_CONSUMERS,
    ),
    Table(_STATIC, lambda s: s.body.instance_id is not None, of=(ConsumerGroupHeartbeatRequest,), needs=_CONSUMERS),
    Table(_BEAT, of=(m.HeartbeatRequest,)),
    Table(_CONVERTED, lambda s: s.fenced or s.upgraded or s.downgraded, needs=_CONSUMERS | Part.RECORDS),
    Table(_ENDED, of=(ev.Appended, ev.TimerFired)),
    Table(_FIRED, of=(ev.TimerFired,)),
    Table(_DESCRIBED, of=(ConsumerGroupDescribeRequest,), needs=Part.REPLIES),
    Table(_DEPARTING, of=(ev.TimerFired, m.LeaveGroupRequest, ConsumerGroupHeartbeatRequest)),
)
