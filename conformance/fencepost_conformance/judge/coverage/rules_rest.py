"""Conditions under which a step shows a rule about SyncGroup, Heartbeat, LeaveGroup, timers, administration or the
log."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.events import AppendFailed, Request, TimerKind
from fencepost.protocol.view import GroupState, GroupView

from .open_rules import Part, Table, Tables
from .situation import Situation as S

_EMPTY, _PREPARING = GroupState.EMPTY, GroupState.PREPARING_REBALANCE
_COMPLETING, _STABLE = GroupState.COMPLETING_REBALANCE, GroupState.STABLE
Rules = dict[str, Callable[[S], bool]]


def _refused(*errors: E) -> Callable[[S], bool]:
    return lambda s: s.error in errors


def _parked_in_completing(s: S) -> bool:
    return s.member is not None and s.state is _COMPLETING and (s.answer is None or s.error is not E.ILLEGAL_GENERATION)


def _led(s: S) -> bool:
    return _parked_in_completing(s) and s.is_leader and bool(s.seen.records)


SYNC: Rules = {
    "C-SYNC-01": lambda s: s.version >= 5 and None in (s.body.protocol_type, s.body.protocol_name),
    "C-SYNC-02": _refused(E.GROUP_AUTHORIZATION_FAILED),
    "C-SYNC-03": _refused(E.INVALID_GROUP_ID),
    "C-SYNC-04": _refused(E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS),
    "C-SYNC-05": lambda s: s.error is E.UNKNOWN_MEMBER_ID and s.state in (None, _EMPTY),
    "C-SYNC-08": lambda s: s.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID) and s.before is not None,
    "C-SYNC-09": _refused(E.ILLEGAL_GENERATION),
    "C-SYNC-10": lambda s: s.error is E.INCONSISTENT_GROUP_PROTOCOL and s.before is not None,
    "C-SYNC-11": lambda s: s.initial and s.answer is not None,
    "C-SYNC-12": lambda s: (
        s.error is E.UNKNOWN_MEMBER_ID and s.before is not None and s.body.member_id in s.before.pending_join
    ),
    "C-SYNC-15": _refused(E.REBALANCE_IN_PROGRESS),
    "C-SYNC-16": lambda s: _parked_in_completing(s) and not s.is_leader and s.answer is None,
    "C-SYNC-17": _led,
    "C-SYNC-31": _led,
    "C-SYNC-18": lambda s: s.state is _STABLE and s.error is E.NONE,
    "C-SYNC-19": lambda s: _parked_in_completing(s) and s.member is not None and s.member.awaiting_sync,
    "C-SYNC-24": lambda s: (
        s.state is _STABLE and s.error is E.NONE and s.before is not None and s.body.member_id in s.before.pending_sync
    ),
    "C-SYNC-25": lambda s: _parked_in_completing(s) and not s.is_leader and bool(s.body.assignments),
    "C-SYNC-32": lambda s: (
        _led(s) and len({row.member_id for row in s.body.assignments}) < len(s.body.assignments)
    ),
}  # fmt: skip

HEARTBEAT: Rules = {
    "C-HB-01": _refused(E.GROUP_AUTHORIZATION_FAILED),
    "C-HB-02": _refused(E.INVALID_GROUP_ID),
    "C-HB-03": lambda s: s.loading and s.error is E.NONE,
    "C-HB-04": _refused(E.NOT_COORDINATOR),
    "C-HB-05": lambda s: s.before is None and s.error is E.UNKNOWN_MEMBER_ID,
    "C-HB-08": lambda s: s.before is not None and s.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID),
    "C-HB-09": _refused(E.ILLEGAL_GENERATION),
    "C-HB-11": _refused(E.REBALANCE_IN_PROGRESS),
    "C-HB-12": lambda s: s.member is not None and s.error is E.NONE,
    "C-HB-13": lambda s: s.state is _PREPARING and s.member is not None and s.member.is_new and bool(s.seen.timers),
    "C-STATIC-17": lambda s: s.state is _STABLE and s.member is not None and s.member.awaiting_join,
    "C-HB-14": lambda s: s.member is not None and not s.seen.records,
}


def _rows(s: S) -> list[tuple[m.LeaveGroupMember, E | None]]:
    """Return the entries of a LeaveGroup and, if the answer came in this step, their results."""
    if s.answer is None:
        return [(row, None) for row in s.body.members]
    if s.version <= 2:
        return [(row, s.answer.error_code) for row in s.body.members]
    answered = s.answer.members or [None] * len(s.body.members)
    return [(row, reply and reply.error_code) for row, reply in zip(s.body.members, answered, strict=False)]


def _entry(test: Callable[[S, m.LeaveGroupMember, E | None], bool]) -> Callable[[S], bool]:
    return lambda s: s.before is not None and any(test(s, row, result) for row, result in _rows(s))


def _instances(s: S) -> dict[str, str]:
    return dict(s.before.static_members) if s.before else {}


def _left(s: S) -> bool:
    """At least one entry succeeded."""
    pending = bool(s.before and s.after and s.before.pending_join - s.after.pending_join)
    return bool(s.gone) or pending


def _gone_members(s: S) -> list[bool]:
    """For each member that left, whether it had a SyncGroup parked."""
    return [row.awaiting_sync for row in s.before.members if row.member_id in s.gone] if s.before else []


LEAVE: Rules = {
    "C-LEAVE-01": _refused(E.GROUP_AUTHORIZATION_FAILED),
    "C-LEAVE-02": _refused(E.INVALID_GROUP_ID, E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS),
    "C-LEAVE-03": lambda s: s.before is None and s.error in (E.NONE, E.UNKNOWN_MEMBER_ID),
    "C-LEAVE-10": _entry(
        lambda s, row, _: not row.member_id and _instances(s).get(row.group_instance_id or "") in s.gone
    ),
    "C-LEAVE-11": _entry(lambda s, row, error: not row.member_id and error is E.UNKNOWN_MEMBER_ID),
    "C-LEAVE-12": _entry(lambda s, row, _: row.member_id in s.before.pending_join),  # type: ignore[union-attr]
    "C-LEAVE-13": _entry(
        lambda _, row, error: bool(row.member_id) and error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID)
    ),
    "C-LEAVE-14": _entry(lambda s, row, _: row.member_id in s.gone),
    "C-LEAVE-20": lambda s: s.before is not None and s.answer is not None and not _left(s),
    "C-LEAVE-21": lambda s: s.state in (_STABLE, _COMPLETING) and _left(s) and s.rebalanced,
    "C-LEAVE-22": lambda s: s.state is _PREPARING and _left(s),
    "C-LEAVE-23": lambda s: bool(s.seen.records),
    "C-LEAVE-24": lambda s: any(_gone_members(s)),
    "C-LEAVE-25": lambda s: bool(s.gone),
    "C-LEAVE-27": lambda s: (len(set(s.body.members)) < len(s.body.members) and _left(s))
    or (not s.body.members and s.error is E.NONE),
    "C-LEAVE-28": lambda s: _left(s) and any(sync.group_id == s.group_id for sync in s.leader_syncs),
}  # fmt: skip


def _session(s: S) -> bool:
    return s.event.key.kind is TimerKind.SESSION  # type: ignore[union-attr]


def _sync_timer(s: S) -> bool:
    return s.event.key.kind is TimerKind.SYNC  # type: ignore[union-attr]


def _join_timer(s: S) -> bool:
    return s.event.key.kind is TimerKind.JOIN  # type: ignore[union-attr]


def _sync_hits(s: S) -> bool:
    return _sync_timer(s) and s.state in (_COMPLETING, _STABLE) and s.before is not None and bool(s.before.pending_sync)


TIMER: Rules = {
    "C-ST-24": lambda s: s.event.key.kind is not TimerKind.OPERATION and s.before is None,  # type: ignore[union-attr]
    "C-JOIN-43": lambda s: _join_timer(s) and s.initial,
    "C-JOIN-46": lambda s: (
        _join_timer(s)
        and not s.initial
        and s.after is not None
        and s.before is not None
        and s.after.generation_id == s.before.generation_id
        and any(row.group_instance_id for row in s.after.members)
    ),
    "C-JOIN-68": lambda s: _join_timer(s) and s.state is _PREPARING and not s.initial and bool(s.completed),
    "C-SYNC-20": _sync_hits,
    "C-SYNC-26": lambda s: s.state is _COMPLETING and s.is_leader and bool(s.gone),
    "C-SYNC-33": lambda s: (
        s.event.key.kind is TimerKind.OPERATION  # type: ignore[union-attr]
        and any(isinstance(request.body, m.SyncGroupRequest) for request, _ in s.failed)
    ),
    "C-TMR-06": lambda s: (
        _session(s) and s.before is not None and s.event.key.member_id in s.before.pending_join  # type: ignore[union-attr]
    ),
    "C-TMR-07": lambda s: _session(s) and s.member is not None,
    "C-TMR-08": lambda s: _session(s) and s.initial and bool(s.completed),
    "C-TMR-09": lambda s: _session(s) and s.before is not None and s.member is None,
    "C-TMR-10": lambda s: bool(s.gone),
    "C-TMR-12": lambda s: _join_timer(s) and s.state is not _PREPARING,
}

_NOT_SHOWN_AS_STABLE = (_PREPARING, _COMPLETING)
DESCRIBE: Rules = {
    "C-ADM-01": lambda s: any(row.error_code is E.GROUP_AUTHORIZATION_FAILED for row in s.answer.groups),
    "C-ADM-02": lambda s: any(row.group_state == "Dead" for row in s.answer.groups),
    "C-ADM-03": lambda s: any(row.group_state == "Stable" and row.members for row in s.answer.groups),
    "C-ADM-04": lambda s: any(row.group_state for row in s.answer.groups),
    "C-ADM-08": lambda s: any(row.group_state == "Dead" and row.group_id in s.groups for row in s.answer.groups),
    "C-ADM-12": lambda s: any(
        row.group_state in ("PreparingRebalance", "CompletingRebalance") and row.members for row in s.answer.groups
    ),
}
LIST: Rules = {
    "C-ADM-05": lambda s: bool(s.body.states_filter or s.body.types_filter),
    "C-ADM-13": lambda s: any(not row.protocol_type for row in s.answer.groups),
}
DELETE: Rules = {
    "C-ADM-09": lambda _: True,
    "C-ADM-10": lambda s: any(
        s.groups[name].protocol_type is None for name in s.body.groups_names if s.groups.get(name)
    ),
}


def _parked_failed(s: S) -> bool:
    """A parked request was answered with an error, but its group still counts the member as parked."""
    for request, _ in s.failed:
        view = s.seen.groups.get(
            getattr(request.body, "group_id", ""), s.groups.get(getattr(request.body, "group_id", ""))
        )
        if view is not None and any(row.awaiting_join or row.awaiting_sync for row in view.members):
            return True
    return False


def _resolved(s: S) -> Iterator[tuple[bool, GroupView | None]]:
    """Leaders' SyncGroups whose record became durable now: whether the group was unchanged since, and the group."""
    for sync in s.leader_syncs:
        if sync.offset <= s.event.offset:  # type: ignore[union-attr]
            view = s.groups.get(sync.group_id)
            yield (
                view is not None and view.state is _COMPLETING and view.generation_id == sync.generation,
                s.seen.groups.get(sync.group_id),
            )


def _replaced_answers(s: S) -> list[tuple[Request, m.JoinGroupResponse]]:
    """Answers to static replacements that waited for their record (C-STATIC-03)."""
    found = []
    for reply in s.seen.replies:
        request = s.requests.get(reply.request_id)
        body = reply.body
        if (
            request is not None
            and isinstance(body, m.JoinGroupResponse)
            and isinstance(request.body, m.JoinGroupRequest)
            and request.body.group_instance_id is not None
            and not request.body.member_id
        ):
            found.append((request, body))
    return found


APPENDED: Rules = {
    "C-SYNC-21": lambda s: any(same and view is not None and view.state is _STABLE for same, view in _resolved(s)),
    "C-SYNC-23": lambda s: any(not same for same, _ in _resolved(s)),
    "C-STATIC-04": lambda s: any(
        request.version >= 9 and body.error_code is E.NONE for request, body in _replaced_answers(s)
    ),
    "C-STATIC-05": lambda s: any(
        request.version < 9 and body.error_code is E.NONE for request, body in _replaced_answers(s)
    ),
}


def _closed(s: S) -> bool:
    """A failed append, or a write operation that timed out."""
    return isinstance(s.event, AppendFailed) or s.event.key.kind is TimerKind.OPERATION  # type: ignore[union-attr]


FAILED: Rules = {
    "C-JOIN-70": lambda s: _closed(s) and _parked_failed(s),
    "C-SYNC-22": lambda s: _closed(s) and any(isinstance(request.body, m.SyncGroupRequest) for request, _ in s.failed),
    "C-SYNC-30": lambda s: _closed(s) and bool(s.failed),
    "C-STATIC-06": lambda s: _closed(s) and any(
        body.error_code is not E.NONE and body.generation_id >= 0 for _, body in _replaced_answers(s)
    ),
}  # fmt: skip


def _changes(s: S) -> Iterator[tuple[GroupView, GroupView]]:
    for name, view in s.seen.groups.items():
        if view is not None and name in s.groups:
            yield s.groups[name], view


def _leader_moved(s: S) -> bool:
    """The leader was removed and another remaining member leads, with no join phase completed (C-JOIN-76)."""
    return any(
        old.leader is not None
        and new.leader not in (None, old.leader)
        and old.generation_id == new.generation_id
        and all(row.member_id != old.leader for row in new.members)
        and any(row.member_id == new.leader for row in old.members)
        for old, new in _changes(s)
    )


#: any step that completes a join phase
_COMPLETED: Rules = {
    "C-ST-21": lambda s: bool(s.completed),
    "C-ST-23": lambda s: bool(s.completed),
    "C-JOIN-44": lambda s: bool(s.completed),
    "C-JOIN-45": lambda s: any(new.leader != old.leader and new.members for old, new in s.completed),
    "C-JOIN-47": lambda s: any(new.state is _EMPTY for _, new in s.completed),
    "C-JOIN-48": lambda s: any(new.state is _COMPLETING for _, new in s.completed),
    "C-JOIN-63": lambda s: any(new.state is _COMPLETING for _, new in s.completed),
    "C-STATIC-14": lambda s: any(
        new.state is _COMPLETING
        and any(row.group_instance_id and not row.awaiting_join and row in old.members for row in old.members)
        and {row.member_id for row in old.members if row.group_instance_id and not row.awaiting_join}
        & {row.member_id for row in new.members}
        for old, new in s.completed
    ),
}  # fmt: skip
#: any step that sets or cancels timers
_TIMERS: Rules = {
    "C-ST-22": lambda s: any(key.kind is TimerKind.SYNC and at is not None for key, at in s.seen.timers.items()),
    "C-TMR-01": lambda s: any(key.kind is TimerKind.JOIN for key in s.seen.timers),
    "C-TMR-02": lambda s: any(key.kind is TimerKind.SYNC for key in s.seen.timers),
    "C-TMR-03": lambda s: any(
        key.kind is TimerKind.SESSION and deadline == s.event.at_ms + s.settings.new_member_join_timeout_ms
        for key, deadline in s.seen.timers.items()
    ),
    "C-TMR-04": lambda s: any(key.kind is TimerKind.SESSION and key in s.armed for key in s.seen.timers),
    "C-TMR-05": lambda s: any(
        new.pending_join - old.pending_join and any(key.kind is TimerKind.SESSION for key in s.seen.timers)
        for old, new in _changes(s)
    ),
}  # fmt: skip
#: any step that changes groups
_CHANGED: Rules = {
    "C-ST-06": lambda s: any(view and view.previous_state is GroupState.DEAD for view in s.seen.groups.values()),
    "C-JOIN-76": _leader_moved,
}  # fmt: skip
#: any step after which a changed group is about to rebalance
_GATHERING: Rules = {
    "C-ST-20": lambda s: any(
        new.state is _PREPARING and new.previous_state is _EMPTY and old.state is _EMPTY for old, new in _changes(s)
    ),
    "C-ST-26": lambda s: any(view and view.state is _PREPARING and not view.members for view in s.seen.groups.values()),
    "C-JOIN-42": lambda s: any(new.state is _PREPARING and old.state is not _PREPARING for old, new in _changes(s)),
}  # fmt: skip
#: any step that completes a join phase without members
_UNCHANGED: Rules = {
    "C-ST-27": lambda s: any(
        new.state is old.state and new.previous_state is old.previous_state and new.state in (_EMPTY, _PREPARING)
        for old, new in s.completed
    ),
}
#: any step that answers, and changes a group or its timers
_ANSWERED: Rules = {
    "C-JOIN-49": lambda s: any(isinstance(r.body, m.JoinGroupResponse) and r.body.members for r in s.seen.replies),
}  # fmt: skip
_KINDS = (TimerKind.JOIN, TimerKind.SYNC, TimerKind.SESSION)
ANY: Tables = (
    Table(_COMPLETED, lambda s: bool(s.completed), needs=Part.GROUPS),
    Table(_TIMERS, lambda s: any(key.kind in _KINDS for key in s.seen.timers), needs=Part.TIMERS),
    Table(_UNCHANGED, lambda s: bool(s.completed), needs=Part.GROUPS),
    Table(
        _GATHERING,
        lambda s: any(view and view.state is _PREPARING for view in s.seen.groups.values()),
        needs=Part.GROUPS,
    ),
    Table(_CHANGED, needs=Part.GROUPS),
    Table(_ANSWERED, lambda s: bool(s.seen.groups or s.seen.timers), needs=Part.REPLIES),
)
