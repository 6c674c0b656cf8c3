"""Conditions under which a step shows a rule about JoinGroup (rule book, section 3)."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import JoinGroupRequest
from fencepost.protocol.view import GroupState

from .open_rules import Part, Table, Tables
from .situation import Situation as S

_EMPTY, _PREPARING = GroupState.EMPTY, GroupState.PREPARING_REBALANCE
_COMPLETING, _STABLE = GroupState.COMPLETING_REBALANCE, GroupState.STABLE
_Rules = dict[str, Callable[[S], bool]]


def _accepted(s: S) -> bool:
    """The member is in the group and its request parked, or it was answered NONE."""
    return s.added is not None or s.replaced is not None or (s.member is not None and s.error in (None, E.NONE))


def _known(s: S, state: GroupState) -> bool:
    return s.member is not None and s.state is state and s.error in (None, E.NONE) and not s.gone


def _own_error(s: S, error: E) -> bool:
    return s.error is error and bool(s.body.member_id)


def _mapped(s: S) -> bool:
    """The request's instance id belongs to a member."""
    return s.before is not None and s.body.group_instance_id in dict(s.before.static_members)


def _pending(s: S) -> bool:
    return s.before is not None and s.body.member_id in s.before.pending_join


def _replaced_in(s: S, state: GroupState) -> bool:
    return s.replaced is not None and s.state is state


def _renewed(s: S) -> bool:
    """Replacement in Stable that is answered after the append (C-STATIC-03)."""
    return _replaced_in(s, _STABLE) and not s.rebalanced


def _at_once(s: S) -> bool:
    """C-JOIN-51, C-JOIN-55."""
    return s.member is not None and s.error is E.NONE and s.same_protocols and s.state in (_COMPLETING, _STABLE)


def _other_timeouts(s: S) -> bool:
    return s.member is not None and (
        s.member.session_timeout_ms != s.body.session_timeout_ms
        or s.member.rebalance_timeout_ms != s.body.rebalance_timeout_ms
    )


#: a JoinGroup that is answered with an error
_REFUSED: _Rules = {
    "C-JOIN-02": lambda s: s.error is E.GROUP_AUTHORIZATION_FAILED,
    "C-JOIN-04": lambda s: s.error is E.INVALID_GROUP_ID,
    "C-JOIN-05": lambda s: s.error is E.INVALID_SESSION_TIMEOUT,
    "C-JOIN-06": lambda s: s.error is E.NOT_COORDINATOR,
    "C-JOIN-07": lambda s: s.error is E.COORDINATOR_LOAD_IN_PROGRESS,
    "C-JOIN-11": lambda s: s.before is None and _own_error(s, E.UNKNOWN_MEMBER_ID),
    "C-JOIN-13": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED,
    "C-JOIN-23": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED and (s.member is not None or _pending(s)),
    "C-JOIN-75": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED and not s.body.member_id and _mapped(s),
    "C-JOIN-31": lambda s: s.error is E.INCONSISTENT_GROUP_PROTOCOL and not s.body.member_id,
    "C-JOIN-34": lambda s: s.error is E.MEMBER_ID_REQUIRED,
    "C-JOIN-38b": lambda s: _own_error(s, E.INCONSISTENT_GROUP_PROTOCOL),
    "C-JOIN-38c": lambda s: s.error is E.UNKNOWN_SERVER_ERROR and _pending(s),
    "C-JOIN-38e": lambda s: (
        s.before is not None and _own_error(s, E.UNKNOWN_MEMBER_ID) and s.body.group_instance_id is not None
    ),
    "C-JOIN-38f": lambda s: _own_error(s, E.FENCED_INSTANCE_ID),
    "C-JOIN-38g": lambda s: (
        s.before is not None and _own_error(s, E.UNKNOWN_MEMBER_ID) and s.body.group_instance_id is None
    ),
    "C-JOIN-74": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED and bool(s.body.member_id) and s.member is None,
    "C-JOIN-77": lambda s: _own_error(s, E.UNKNOWN_MEMBER_ID) or _own_error(s, E.FENCED_INSTANCE_ID),
    "C-STATIC-13": lambda s: s.error is E.FENCED_INSTANCE_ID,
}
#: one that adds a member
_ADDED: _Rules = {
    "C-JOIN-20": lambda s: s.state is _EMPTY and s.added is not None,
    "C-JOIN-33": lambda s: s.added is not None and s.added.group_instance_id is not None,
    "C-JOIN-35": lambda s: s.version < 4 and not s.body.member_id and s.added is not None,
    "C-JOIN-38d": lambda s: s.added is not None and _pending(s),
    "C-JOIN-40": lambda s: s.added is not None,
    "C-JOIN-65": lambda s: s.state is _EMPTY and s.added is not None and s.before.generation_id > 0,  # type: ignore[union-attr]
    "C-JOIN-71": lambda s: s.state is _EMPTY and s.before.new_member_added and s.added is not None,  # type: ignore[union-attr]
    "C-STATIC-01": lambda s: s.version >= 4 and s.added is not None and s.added.group_instance_id is not None,
    "C-TMR-11": lambda s: s.added is not None and _pending(s),
}
#: one that replaces a static member
_REPLACED: _Rules = {
    "C-JOIN-32": lambda s: s.replaced is not None,
    "C-STATIC-02": lambda s: s.replaced is not None,
    "C-STATIC-03": lambda s: _renewed(s) and bool(s.seen.records),
    "C-STATIC-07": lambda s: _renewed(s) and s.replaced is not None and s.replaced.protocols != s.body.protocols,
    "C-STATIC-08": lambda s: _replaced_in(s, _STABLE) and s.rebalanced,
    "C-STATIC-09": lambda s: _replaced_in(s, _COMPLETING),
    "C-STATIC-10": lambda s: _replaced_in(s, _PREPARING),
    "C-STATIC-15": _renewed,
    "C-STATIC-16": lambda s: _renewed(s) and s.replaced.member_id in s.before.pending_sync,  # type: ignore[union-attr]
    "C-STATIC-18": lambda s: _replaced_in(s, _STABLE) and s.replaced is not None and s.replaced.awaiting_join,
    "C-STATIC-20": lambda s: s.replaced is not None and s.initial,
    "C-STATIC-21": lambda s: (
        _renewed(s) and s.replaced is not None and s.replaced.client_host != s.event.client_host  # type: ignore[union-attr]
    ),
}
#: one of a member
_KNOWN: _Rules = {
    "C-JOIN-38h": lambda s: s.member is not None and s.error in (None, E.NONE),
    "C-JOIN-50": lambda s: _known(s, _PREPARING),
    "C-JOIN-51": lambda s: _at_once(s) and s.state is _COMPLETING,
    "C-JOIN-52": lambda s: _known(s, _COMPLETING) and not s.same_protocols and s.rebalanced,
    "C-JOIN-53": lambda s: _known(s, _STABLE) and s.is_leader and s.rebalanced,
    "C-JOIN-54": lambda s: _known(s, _STABLE) and not s.is_leader and not s.same_protocols and s.rebalanced,
    "C-JOIN-55": lambda s: _at_once(s) and s.state is _STABLE and not s.is_leader,
    "C-JOIN-58": lambda s: _at_once(s) and not s.seen.timers,
    "C-JOIN-59": lambda s: _known(s, _PREPARING) and s.member is not None and s.member.awaiting_join,
    "C-JOIN-73": lambda s: s.member is not None and s.error in (None, E.NONE) and _other_timeouts(s),
    "C-JOIN-61": lambda s: s.member is not None and s.state in (_COMPLETING, _STABLE),
    "C-STATIC-12": lambda s: (
        _known(s, _STABLE) and s.is_leader and s.rebalanced and s.body.group_instance_id is not None
    ),
    "C-STATIC-19": lambda s: (
        s.member is not None and s.member.group_instance_id is not None and s.body.group_instance_id is None
    ),
    "C-SYNC-34": lambda s: _at_once(s) and s.state is _COMPLETING and s.member is not None and s.member.awaiting_sync,
    "C-TMR-13": lambda s: (
        _known(s, _STABLE) and s.member is not None and len(s.member.protocols) == 1 < len(s.body.protocols)
    ),
    "C-TMR-14": lambda s: _known(s, _PREPARING) and not s.seen.timers,
}
#: any JoinGroup
_JOIN: _Rules = {
    "C-JOIN-12": lambda s: s.before is None and s.after is not None,
    "C-JOIN-14": lambda s: s.before is not None and s.error in (None, E.NONE, E.MEMBER_ID_REQUIRED),
    "C-JOIN-16": lambda s: s.before is None and bool(s.seen.records),
    "C-JOIN-21": lambda s: s.state is _PREPARING and _accepted(s),
    "C-JOIN-22": lambda s: s.state in (_COMPLETING, _STABLE) and _accepted(s),
    "C-JOIN-36": lambda s: (
        not s.body.member_id
        and (s.added is not None or s.error is E.MEMBER_ID_REQUIRED)
        and s.before is not None
        and any(row.client_id == s.event.client_id for row in s.before.members)  # type: ignore[union-attr]
    ),
    "C-JOIN-60": lambda s: s.error is E.INCONSISTENT_GROUP_PROTOCOL or s.added is not None,
    "C-JOIN-72": lambda s: len({p.name for p in s.body.protocols}) < len(s.body.protocols) and s.error is None,
    "C-JOIN-41": lambda s: s.state is _PREPARING and _accepted(s),
    "C-JOIN-66": lambda s: (
        s.after is not None
        and s.after.state is _PREPARING
        and s.after.previous_state is not _EMPTY
        and bool(s.after.pending_join)
        and all(row.awaiting_join for row in s.after.members)
    ),
    "C-JOIN-67": lambda s: s.body.reason is not None,
}
_OF = (JoinGroupRequest,)
JOIN: Tables = (
    Table(_REFUSED, lambda s: s.error not in (None, E.NONE), of=_OF, needs=Part.REPLIES),
    Table(_ADDED, lambda s: s.added is not None, of=_OF, needs=Part.GROUPS),
    Table(_REPLACED, lambda s: s.replaced is not None, of=_OF, needs=Part.GROUPS),
    Table(_KNOWN, lambda s: s.member is not None, of=_OF),
    Table(_JOIN, of=_OF),
)
