"""Conditions under which a step shows a rule about classic members of a consumer group (rule book, 9.3 and 9.4)."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.consumer_view import ConsumerMemberView, MemberState
from fencepost.protocol.embedded import SchemaError, decode_subscription, version_of
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.events import TimerKey, TimerKind
from fencepost.protocol.settings import MigrationPolicy

from .consumer_situation import ConsumerSituation as S
from .open_rules import Part, Table, Tables

MixedRules = dict[str, Callable[[S], bool]]
_UNREVOKED, _UNRELEASED = MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS
_EARLY = (E.GROUP_AUTHORIZATION_FAILED, E.INVALID_SESSION_TIMEOUT)


def took(s: S) -> bool:
    """The JoinGroup was accepted, and its sender is now a classic member of the group."""
    return s.error in (None, E.NONE) and s.now is not None and s.now.classic is not None


def _rejoined(s: S) -> bool:
    return took(s) and s.member is not None and s.member.classic is not None


def _changed_protocol(s: S) -> bool:
    return took(s) and s.member is not None and s.member.classic is None


def _static(s: S) -> bool:
    return s.body.group_instance_id is not None


def _key(s: S, kind: TimerKind) -> TimerKey:
    return TimerKey(kind, s.group_id, s.member_id)


def _refused(s: S) -> bool:
    return s.error not in (None, E.NONE, E.MEMBER_ID_REQUIRED)


def _classic(row: ConsumerMemberView | None) -> bool:
    return row is not None and row.classic is not None


def _various(s: S) -> bool:
    """Classic members with different first protocols, or at different epochs."""
    rows = [row for row in s.after.members if row.classic is not None] if s.after else []
    said = {(row.classic.supported_protocols[0].name, row.member_epoch) for row in rows if row.classic}
    return len(said) > 1


def _was_answered(s: S, kind: type, error: E = E.NONE) -> bool:
    """A consumer group answered a request of the classic protocol with this error, now or later."""
    return any(
        isinstance(body, kind) and getattr(body, "error_code", None) is error for _, body in s.answers_to_classic
    )


def _armed_for(s: S, kind: TimerKind) -> bool:
    return any(key.kind is kind and at is not None for key, at in s.seen.timers.items())


def _unversioned(s: S) -> bool:
    """The metadata of the member's first protocol does not say which version to write."""
    if s.member is None or s.member.classic is None:
        return False
    try:
        return version_of(s.member.classic.supported_protocols[0].metadata) < 0
    except SchemaError:
        return True


def _says_it_owns(s: S) -> bool:
    try:
        return bool(decode_subscription(s.body.protocols[0].metadata).owned_partitions)
    except SchemaError:
        return False


#: a JoinGroup to a consumer group that has members
JOIN: MixedRules = {
    "C-JOIN-09": lambda _: True,
    "X-POL-04": lambda s: (
        s.error is E.INCONSISTENT_GROUP_PROTOCOL
        and s.settings.group_consumer_migration_policy is MigrationPolicy.DISABLED
    ),
    "X-JOIN-01": lambda s: s.error in _EARLY,
    "X-JOIN-02": lambda s: not s.body.member_id and (s.error is E.MEMBER_ID_REQUIRED or took(s)),
    "X-JOIN-03": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED,
    "X-JOIN-04": lambda s: (
        s.error is E.INCONSISTENT_GROUP_PROTOCOL
        and s.settings.group_consumer_migration_policy is not MigrationPolicy.DISABLED
    ),
    "X-JOIN-05": lambda s: s.error is E.MEMBER_ID_REQUIRED,
    "X-JOIN-06": lambda s: took(s) and bool(s.body.member_id) and not _static(s),
    "X-JOIN-07": lambda s: took(s) and not s.body.member_id and _static(s),
    "X-JOIN-08": lambda s: (
        _static(s) and bool(s.body.member_id) and s.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID)
    ),
    "X-JOIN-09": lambda s: s.error is E.UNKNOWN_SERVER_ERROR,
    "X-JOIN-10": lambda s: took(s) and len({each.metadata for each in s.body.protocols}) > 1,
    "X-JOIN-11": lambda s: took(s) and s.member is not None and s.now != s.member,
    "X-JOIN-12": _rejoined,
    "X-JOIN-13": _changed_protocol,
    "X-JOIN-14": lambda s: took(s) and s.answer is None,
    "X-JOIN-16": lambda s: took(s) and _various(s),
    "X-JOIN-17": lambda s: took(s) and s.now.state is _UNREVOKED and s.now.member_epoch > 0,  # type: ignore[union-attr]
    "X-JOIN-18": lambda s: _rejoined(s) and not _says_it_owns(s) and bool(s.dropped) and s.now.state is not _UNREVOKED,  # type: ignore[union-attr]
    "X-JOIN-21": lambda s: (
        took(s)
        and s.now.state is _UNREVOKED  # type: ignore[union-attr]
        and not _armed_for(s, TimerKind.CONSUMER_REBALANCE)
    ),
    "X-JOIN-22": lambda s: (
        _rejoined(s)
        and s.member.state is _UNRELEASED  # type: ignore[union-attr]
        and bool(s.granted)
        and s.now.member_epoch == s.member.member_epoch  # type: ignore[union-attr]
    ),
    "X-JOIN-23": lambda s: took(s) and s.now.state is _UNREVOKED and s.now.member_epoch == 0,  # type: ignore[union-attr]
    "X-JOIN-24": lambda s: (
        _changed_protocol(s) and not _static(s) and all(row.classic is not None for row in s.after.members)  # type: ignore[union-attr]
    ),
    "X-JOIN-26": lambda s: _refused(s) and not s.answer.member_id,
}
SYNC: MixedRules = {
    "C-SYNC-06": lambda _: True,
    "X-SYNC-01": lambda s: s.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID) and not s.member,
    "X-SYNC-02": lambda s: s.error is E.UNKNOWN_MEMBER_ID and s.member is not None and not _classic(s.member),
    "X-SYNC-03": lambda s: s.error is E.ILLEGAL_GENERATION,
    "X-SYNC-04": lambda s: (
        s.error is E.INCONSISTENT_GROUP_PROTOCOL and None not in (s.body.protocol_type, s.body.protocol_name)
    ),
    "X-SYNC-05": lambda s: s.error is E.REBALANCE_IN_PROGRESS,
    "X-SYNC-07": lambda s: s.error in (None, E.UNKNOWN_SERVER_ERROR) and _unversioned(s),
}
HEARTBEAT: MixedRules = {
    "C-HB-06": lambda _: True,
    "X-HB-01": lambda s: s.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID, E.ILLEGAL_GENERATION),
    "X-HB-02": lambda s: _armed_for(s, TimerKind.CONSUMER_SESSION),
    "X-HB-04": lambda s: _armed_for(s, TimerKind.CONSUMER_JOIN),
    "X-HB-06": lambda s: s.error is E.REBALANCE_IN_PROGRESS and _classic(s.member) and s.member.state is not _UNREVOKED,  # type: ignore[union-attr]
    "X-HB-07": lambda s: s.error is E.REBALANCE_IN_PROGRESS and _classic(s.member) and s.member.state is _UNREVOKED,  # type: ignore[union-attr]
}


def _entries(s: S) -> list[E]:
    return [row.error_code for row in s.answer.members] if s.answer is not None else []


LEAVE: MixedRules = {
    "C-LEAVE-04": lambda _: True,
    "X-LEAVE-01": lambda s: any(error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID) for error in _entries(s)),
    "X-LEAVE-02": lambda s: any(row.classic is None for row in s.gone),
    "X-LEAVE-03": lambda s: bool(s.gone),
    "X-LEAVE-04": lambda s: s.fenced or (s.before is not None and not s.gone and not s.seen.records),
    "M-EPOCH-05": lambda s: s.fenced,
    "X-LEAVE-05": lambda s: s.downgraded,
    "X-LEAVE-06": lambda s: bool(s.gone) and len({row.member_id for row in s.body.members}) < len(s.body.members),
}
#: requests of the classic protocol that met a consumer group
TO_CONSUMER_GROUP: Tables = (
    Table(JOIN, of=(m.JoinGroupRequest,)),
    Table(SYNC, of=(m.SyncGroupRequest,)),
    Table(HEARTBEAT, of=(m.HeartbeatRequest,)),
    Table(LEAVE, of=(m.LeaveGroupRequest,)),
)


def _expired(s: S, kind: TimerKind) -> bool:
    """The timer ended the membership of a classic member."""
    fired = isinstance(s.event, ev.TimerFired) and s.event.key.kind is kind
    return fired and _classic(s.member) and (s.fenced or s.downgraded)


def _joined(s: S) -> bool:
    return any(isinstance(body, m.JoinGroupResponse) and body.error_code is E.NONE for _, body in s.answers_to_classic)


#: any step that answers requests of the classic protocol that met a consumer group
_ANSWERED: MixedRules = {
    "X-JOIN-15": _joined,
    "X-JOIN-20": lambda s: _joined(s) and _armed_for(s, TimerKind.CONSUMER_SYNC),
    "X-SYNC-06": lambda s: _was_answered(s, m.SyncGroupResponse),
    "X-HB-03": lambda s: _was_answered(s, m.HeartbeatResponse, E.REBALANCE_IN_PROGRESS),
    "X-HB-05": lambda s: _was_answered(s, m.HeartbeatResponse),
}  # fmt: skip
#: any timer that fires
_FIRED: MixedRules = {
    "X-JOIN-19": lambda s: (
        _expired(s, TimerKind.CONSUMER_SESSION) and _key(s, TimerKind.CONSUMER_SYNC) in s.armed
    ),
    "X-TMR-01": lambda s: _expired(s, TimerKind.CONSUMER_SESSION),
    "X-TMR-02": lambda s: _expired(s, TimerKind.CONSUMER_JOIN),
    "X-TMR-03": lambda s: _expired(s, TimerKind.CONSUMER_SYNC),
}  # fmt: skip
#: any step that sets or cancels timers
_TIMERS: MixedRules = {
    "M-TMR-03": lambda s: _armed_for(s, TimerKind.CONSUMER_JOIN) or _armed_for(s, TimerKind.CONSUMER_SYNC),
}
#: a load that restores groups
_LOADED: MixedRules = {
    "X-TMR-04": lambda s: any(
        _classic(row) for view in s.seen.consumer_groups.values() if view is not None for row in view.members
    ),
}
ANY: Tables = (
    Table(_ANSWERED, lambda s: bool(s.answers_to_classic), needs=Part.REPLIES),
    Table(_FIRED, of=(ev.TimerFired,)),
    Table(_TIMERS, needs=Part.TIMERS),
    Table(_LOADED, of=(ev.Load,), needs=Part.CONSUMER_GROUPS),
)
