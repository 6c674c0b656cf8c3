"""Conditions under which a step shows a rule about consumer groups (rule book, section 7)."""

from __future__ import annotations

from collections.abc import Callable

from fencepost.protocol import consumer_messages as c
from fencepost.protocol import consumer_records as r
from fencepost.protocol import events as ev
from fencepost.protocol.consumer_view import ConsumerGroupState, MemberState, SubscriptionType
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.events import TimerKind
from fencepost.protocol.messages import LeaveGroupRequest

from .consumer_situation import ConsumerSituation as S
from .consumer_situation import pending
from .open_rules import Part, Table, Tables, names

_Rules = dict[str, Callable[[S], bool]]
_STABLE, _UNREVOKED = MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS
_UNRELEASED, _UNKNOWN = MemberState.UNRELEASED_PARTITIONS, MemberState.UNKNOWN
_SESSION = TimerKind.CONSUMER_SESSION


def _blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _invalid(s: S, holds: bool) -> bool:
    return s.error is E.INVALID_REQUEST and holds


def _instance_known(s: S) -> bool:
    return s.before is not None and s.body.instance_id in dict(s.before.static_members)


def _was(s: S, state: MemberState) -> bool:
    return s.member is not None and s.member.state is state and s.accepted


def _aligned(s: S) -> bool:
    return s.member is not None and s.before is not None and s.member.member_epoch == s.before.assignment_epoch


def _same_member(s: S) -> bool:
    return s.accepted and s.member is not None and not s.resubscribed


def _votes_otherwise(s: S) -> bool:
    return s.now is not None and (s.member.server_assignor if s.member else None) != s.now.server_assignor


def _timer(s: S, kind: TimerKind) -> bool:
    return any(key.kind is kind and at is not None for key, at in s.seen.timers.items())


def _by_timer(s: S, *kinds: TimerKind) -> bool:
    return isinstance(s.event, ev.TimerFired) and s.event.key.kind in kinds


#: ConsumerGroupHeartbeat, in the step in which it arrives: answered with an error
_REFUSED: _Rules = {
    "M-VAL-01": lambda s: s.error is E.UNSUPPORTED_VERSION,
    "M-VAL-02": lambda s: s.error in (E.GROUP_AUTHORIZATION_FAILED, E.TOPIC_AUTHORIZATION_FAILED),
    "M-VAL-04": lambda s: s.error in (E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS),
    "M-VAL-05": lambda s: _invalid(s, _blank(s.body.group_id)),
    "M-VAL-06": lambda s: _invalid(s, _blank(s.body.instance_id)),
    "M-VAL-07": lambda s: _invalid(s, _blank(s.body.rack_id)),
    "M-VAL-08": lambda s: s.error is E.INVALID_REGULAR_EXPRESSION,
    "M-VAL-09": lambda s: _invalid(s, _blank(s.body.member_id)),
    "M-VAL-10": lambda s: _invalid(s, s.body.member_epoch == 0 and s.body.rebalance_timeout_ms == -1),
    "M-VAL-11": lambda s: _invalid(s, s.body.member_epoch == 0 and s.body.topic_partitions != ()),
    "M-VAL-12": lambda s: _invalid(
        s,
        s.body.member_epoch == 0 and s.body.subscribed_topic_names is None and s.body.subscribed_topic_regex is None,
    ),
    "M-VAL-13": lambda s: _invalid(s, s.body.member_epoch == c.STATIC_LEAVE_EPOCH and s.body.instance_id is None),
    "M-VAL-14": lambda s: _invalid(s, s.body.member_epoch < c.STATIC_LEAVE_EPOCH),
    "M-VAL-15": lambda s: s.error is E.UNSUPPORTED_ASSIGNOR,
    "M-VAL-20": lambda s: s.error is E.GROUP_ID_NOT_FOUND and s.body.member_epoch > 0,
    "M-VAL-25": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED,
    "M-VAL-28": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED and _instance_known(s),
    "M-VAL-30": lambda s: s.error is E.GROUP_MAX_SIZE_REACHED and s.body.member_epoch > 0,
    "M-FENCE-01": lambda s: s.error is E.UNKNOWN_MEMBER_ID and s.body.member_epoch > 0 and s.body.instance_id is None,
    "M-FENCE-03": lambda s: (
        s.error is E.FENCED_MEMBER_EPOCH and s.member is not None and s.body.member_epoch > s.member.member_epoch
    ),
    "M-FENCE-05": lambda s: (
        s.error is E.FENCED_MEMBER_EPOCH and s.member is not None and s.body.member_epoch < s.member.member_epoch
    ),
    "M-FENCE-08": lambda s: s.error is E.FENCED_MEMBER_EPOCH and s.now == s.member,
    "M-STATIC-02": lambda s: s.error is E.UNRELEASED_INSTANCE_ID,
    "M-STATIC-04": lambda s: (
        s.error is E.UNKNOWN_MEMBER_ID
        and s.body.member_epoch > 0
        and s.body.instance_id is not None
        and not _instance_known(s)
    ),
    "M-STATIC-05": lambda s: s.error is E.FENCED_INSTANCE_ID and s.body.member_epoch > 0,
    "M-STATIC-06": lambda s: s.error is E.FENCED_MEMBER_EPOCH and s.body.instance_id is not None,
    "M-STATIC-13": lambda s: s.error is E.UNKNOWN_MEMBER_ID and s.body.member_epoch == 0 and _instance_known(s),
    "M-REC-06": lambda s: s.error is E.FENCED_MEMBER_EPOCH and s.member is not None and s.member.state is _UNKNOWN,
    "M-LEAVE-01": lambda s: s.error is E.GROUP_ID_NOT_FOUND and s.body.member_epoch < 0,
    "M-LEAVE-02": lambda s: s.error in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID) and s.body.member_epoch < 0,
}
#: likewise: records were written
_WRITTEN: _Rules = {
    "M-STATIC-03": lambda s: s.replaced,
    "M-STATIC-10": lambda s: s.replaced and bool(s.wrote(r.ConsumerGroupCurrentMemberAssignmentKey, removed=True)),
    "M-STATIC-11": lambda s: s.replaced and not s.bumped,
    "M-HB-02": lambda s: s.accepted and bool(s.wrote(r.ConsumerGroupMemberMetadataKey)),
    "M-HB-03": lambda s: s.accepted and s.bumped and s.resubscribed,
    "M-HB-04": lambda s: _same_member(s) and s.bumped,
    "M-HB-06": lambda s: s.accepted and s.computed,
    "M-HB-08": lambda s: s.accepted and s.reconciled,
    "M-HB-14": lambda s: s.accepted and s.bumped and not s.resubscribed and _votes_otherwise(s),
    "M-EPOCH-01": lambda s: s.accepted and s.member is None and s.bumped,
    "M-EPOCH-02": lambda s: s.accepted and s.bumped and s.resubscribed,
    "M-EPOCH-03": lambda s: _same_member(s) and s.bumped,
    "M-EPOCH-06": lambda s: s.replaced and not s.bumped,
    "M-TGT-01": lambda s: s.accepted and s.computed and not s.bumped,
    "M-TGT-02": lambda s: s.computed and s.after is not None and any(row.server_assignor for row in s.after.members),
    "M-TGT-04": lambda s: s.computed and bool(s.wrote(r.ConsumerGroupTargetAssignmentMemberKey)),
    "M-TGT-05": lambda s: (
        s.bumped and s.after is not None and s.after.subscription_type is SubscriptionType.HETEROGENEOUS
    ),
    "M-TGT-06": lambda s: s.computed and not s.bumped and (s.member is None or s.resubscribed),
    "M-TGT-08": lambda s: s.computed and s.before is not None and s.before.assignment_timestamp > 0,
    "M-TGT-09": lambda s: s.accepted and s.bumped and not s.computed,
    "M-META-07": lambda s: any(value.metadata_hash for value in s.wrote(r.ConsumerGroupMetadataKey)),
    "M-META-08": lambda s: bool(s.wrote(r.ConsumerGroupPartitionMetadataKey, removed=True)),
    "M-REC-02": lambda s: _was(s, _STABLE) and s.reconciled and not s.resubscribed,
    "M-REC-04": lambda s: _was(s, _UNREVOKED) and s.reconciled,
    "M-REC-07": lambda s: _was(s, _UNKNOWN) and s.reconciled,
    "M-REC-10": lambda s: s.turned(_STABLE, _UNREVOKED) or s.turned(_UNRELEASED, _UNREVOKED),
    "M-REC-11": lambda s: s.reconciled and s.now is not None and s.now.state is _UNRELEASED and bool(s.granted),
    "M-REC-12": lambda s: s.reconciled and s.now is not None and s.now.state is _STABLE and bool(s.granted),
    "M-REC-13": lambda s: s.reconciled and s.now is not None and s.now.state is _UNRELEASED and not s.granted,
    "M-REC-14": lambda s: s.reconciled and s.now is not None and s.now.state is _STABLE and not s.granted,
    "M-REC-15": lambda s: s.reconciled and s.now is not None and s.now.previous_member_epoch == s.now.member_epoch,
    "M-REC-19": lambda s: s.turned(_UNREVOKED, _UNREVOKED),
    "M-REC-20": lambda s: s.turned(_UNREVOKED, _STABLE) or s.turned(_UNREVOKED, _UNRELEASED),
    "M-REC-22": lambda s: s.turned(None, _STABLE) or s.turned(None, _UNRELEASED),
    "M-REC-23": lambda s: s.turned(_STABLE, _STABLE) and bool(s.dropped),
    "M-REC-24": lambda s: s.replaced and s.reconciled,
    "M-PE-06": lambda s: any(
        row.assignment_epochs
        for value in s.wrote(r.ConsumerGroupCurrentMemberAssignmentKey)
        for row in value.assigned_partitions
    ),
    "M-TMR-05": lambda s: s.turned(_UNREVOKED, _UNREVOKED) and _timer(s, TimerKind.CONSUMER_REBALANCE),
    "M-TMR-06": lambda s: s.reconciled and s.now is not None and s.now.state is _UNRELEASED,
    "M-LEAVE-05": lambda s: s.now is not None and s.now.member_epoch == c.STATIC_LEAVE_EPOCH and s.reconciled,
}
#: likewise: accepted
_ACCEPTED: _Rules = {
    "M-VAL-26": lambda s: not s.body.member_id and s.accepted,
    "M-FENCE-02": lambda s: s.accepted and s.member is None and s.body.instance_id is None,
    "M-FENCE-04": lambda s: _same_member(s) and 0 < s.body.member_epoch < s.member.member_epoch,  # type: ignore[union-attr]
    "M-FENCE-06": lambda s: _same_member(s) and s.body.member_epoch == s.member.member_epoch,  # type: ignore[union-attr]
    "M-FENCE-07": lambda s: s.accepted and s.member is not None and s.body.member_epoch == 0 and not s.replaced,
    "M-FENCE-09": lambda s: _same_member(s) and s.body.instance_id is None and s.member.instance_id is not None,  # type: ignore[union-attr]
    "M-STATIC-01": lambda s: s.accepted and s.body.instance_id is not None and not _instance_known(s),
    "M-HB-01": lambda s: s.accepted and s.member is not None and s.now != s.member,
    "M-HB-07": lambda s: s.accepted and not s.computed and s.body.instance_id is not None,
    "M-HB-09": lambda s: _same_member(s) and _timer(s, TimerKind.CONSUMER_SESSION) and not s.seen.records,
    "M-META-01": lambda s: (
        _same_member(s)
        and s.before.refresh_deadline is None  # type: ignore[union-attr]
        and s.after.refresh_deadline is not None  # type: ignore[union-attr]
    ),
    "M-REC-01": lambda s: _was(s, _STABLE) and _aligned(s) and not s.reconciled,
    "M-REC-03": lambda s: _was(s, _UNREVOKED) and not s.reconciled,
    "M-REC-05": lambda s: _was(s, _UNRELEASED),
    "M-REC-18": lambda s: _was(s, _UNREVOKED) and s.body.topic_partitions is None and not s.reconciled,
    "M-TMR-04": lambda s: _was(s, _UNREVOKED) and not s.reconciled and not _timer(s, TimerKind.CONSUMER_REBALANCE),
    "M-TMR-07": lambda s: _was(s, _STABLE) and not _aligned(s),
    "M-RACK-01": lambda s: s.accepted and s.now is not None and s.now.rack_id is not None,
}
#: likewise: a group changed
_CHANGED: _Rules = {
    "M-VAL-21": lambda s: s.before is None and s.classic_before is None and s.now is not None,
    "M-REC-17": lambda s: bool(s.granted) and s.now is not None and s.now.member_epoch > 0,
    "M-REC-21": lambda s: bool(s.granted & pending(s.member)),
    "M-REC-25": lambda s: s.resubscribed and bool(s.dropped) and s.now.member_epoch == s.member.member_epoch,  # type: ignore[union-attr]
    "M-RX-07": lambda s: s.resubscribed and bool(s.now.subscribed_topic_regex and s.dropped),  # type: ignore[union-attr]
}
#: likewise: the sender is a static member that has left temporarily
_AWAY: _Rules = {
    "M-PE-04": lambda s: bool(s.now.assigned),  # type: ignore[union-attr]
    "M-PE-07": lambda s: any(0 in (row.assignment_epochs or ()) for row in s.now.assigned),  # type: ignore[union-attr]
}
#: likewise: answered
_TAKEN: _Rules = {"M-HB-10": lambda s: s.error is E.NONE}
#: likewise: background tasks started
_TASKS: _Rules = {
    "M-RX-03": lambda s: bool(s.seen.tasks),
    "M-RX-06": lambda s: bool(s.seen.tasks and s.event.denied_topics),  # type: ignore[union-attr]
}
#: replication that answers heartbeats
_REPLICATED: _Rules = {"M-HB-11": lambda s: bool(s.answers)}
#: any step that answers heartbeats
_ANSWERED: _Rules = {
    "M-RSP-01": lambda s: any(body.assignment is not None for _, body in s.answers),
    "M-RSP-02": lambda s: any(body.assignment for _, body in s.answers),
    "M-RSP-03": lambda s: any(
        body.assignment is not None and asked.body.member_epoch == body.member_epoch > 0  # type: ignore[union-attr]
        for asked, body in s.answers
    ),
    "M-RSP-04": lambda s: any(body.member_epoch < 0 for _, body in s.answers),
}  # fmt: skip
#: any step that removes members permanently
_FENCED: _Rules = {
    "M-EPOCH-04": lambda s: s.fenced and not isinstance(s.body, LeaveGroupRequest),
    "M-LEAVE-03": lambda s: s.fenced,
    "M-LEAVE-04": lambda s: s.fenced and s.after is not None and not s.after.members,
    "M-TGT-07": lambda s: s.fenced and bool(s.wrote(r.ConsumerGroupTargetAssignmentMemberKey, removed=True)),
    "M-PE-03": lambda s: s.fenced and s.before is not None and bool(s.before.partition_epochs),
    "M-LEAVE-07": lambda s: s.fenced and isinstance(s.event, ev.TimerFired),
    "M-LEAVE-08": lambda s: s.fenced and bool(s.wrote(r.ConsumerGroupTargetAssignmentMetadataKey)),
    "M-STATIC-12": lambda s: (
        s.fenced and s.member is not None and s.member.member_epoch == c.STATIC_LEAVE_EPOCH
        and _by_timer(s, TimerKind.CONSUMER_SESSION)
    ),
    "M-TMR-01": lambda s: _by_timer(s, TimerKind.CONSUMER_SESSION) and s.fenced,
    "M-TMR-02": lambda s: _by_timer(s, TimerKind.CONSUMER_REBALANCE) and s.fenced,
}  # fmt: skip
#: any step that changes a group
_SEEN: _Rules = {
    "M-ST-06": lambda s: any(
        view is not None and view.group_epoch > view.assignment_epoch for view in s.seen.consumer_groups.values()
    ),
    "M-ST-07": lambda s: any(
        view is not None and view.state is ConsumerGroupState.ASSIGNING for view in s.seen.consumer_groups.values()
    ),
    "M-ST-08": lambda s: any(
        view is not None
        and view.state is ConsumerGroupState.RECONCILING
        and any(row.member_epoch == c.STATIC_LEAVE_EPOCH for row in view.members)
        for view in s.seen.consumer_groups.values()
    ),
    "M-META-05": lambda s: any(
        view is not None and any("ghosts" in row.subscribed_topic_names for row in view.members)
        for view in s.seen.consumer_groups.values()
    ),
    "M-PE-01": lambda s: any(view is not None and view.partition_epochs for view in s.seen.consumer_groups.values()),
    "M-RX-01": lambda s: any(view is not None and view.regexes for view in s.seen.consumer_groups.values()),
}  # fmt: skip
#: a change of topics that changes a group
_TOPICS: _Rules = {"M-META-03": lambda s: bool(s.seen.consumer_groups)}
#: a load that restores groups
_LOADED: _Rules = {
    "M-META-04": lambda s: bool(s.seen.consumer_groups),
    "M-PE-05": lambda s: any(view is not None and view.partition_epochs for view in s.seen.consumer_groups.values()),
}
#: a failed append
_FAILED: _Rules = {
    "M-TMR-08": lambda s: any(
        at == s.event.at_ms + 500 for key, at in s.seen.timers.items() if key.kind.value.startswith("consumer")
    ),
    "M-TMR-10": lambda s: any(key.kind is _SESSION for key in s.armed),
}
#: a timer that fires
_FIRED: _Rules = {
    "M-TMR-09": lambda s: _by_timer(s, TimerKind.CONSUMER_SESSION) and s.member is None and not s.seen.records,
}
#: the end of a background task
_TASK: _Rules = {
    "M-RX-04": lambda s: not s.seen.records,
    "M-RX-05": lambda s: bool(s.wrote(r.ConsumerGroupRegularExpressionKey)),
    "M-EPOCH-07": lambda s: s.bumped,
}
#: a group's configuration
_CONFIGURED: _Rules = {"M-CFG-01": lambda s: s.event.config is not None}  # type: ignore[union-attr]
#: any step that writes
_ANY_WRITTEN: _Rules = {"M-RX-02": lambda s: bool(s.wrote(r.ConsumerGroupRegularExpressionKey, removed=True))}
#: any description
_DESCRIBED: _Rules = {
    "M-DESC-01": lambda s: any(
        isinstance(reply.body, c.ConsumerGroupDescribeResponse) and any(group.members for group in reply.body.groups)
        for reply in s.seen.replies
    ),
}
_BEAT = (c.ConsumerGroupHeartbeatRequest,)
HEARTBEAT: Tables = (
    Table(_REFUSED, lambda s: s.error not in (None, E.NONE), of=_BEAT, needs=Part.REPLIES),
    Table(_WRITTEN, of=_BEAT, needs=Part.RECORDS),
    Table(_ACCEPTED, lambda s: s.accepted, of=_BEAT),
    Table(_CHANGED, of=_BEAT, needs=Part.CONSUMER_GROUPS),
    Table(_AWAY, lambda s: s.now is not None and s.now.member_epoch == c.STATIC_LEAVE_EPOCH, of=_BEAT),
    Table(_TAKEN, of=_BEAT, needs=Part.REPLIES),
    Table(_TASKS, of=_BEAT, needs=Part.TASKS),
)
ANY: Tables = (
    Table(_REPLICATED, of=(ev.Appended,), needs=Part.REPLIES),
    Table(_ANSWERED, lambda s: bool(s.answers), needs=Part.REPLIES),
    Table(_FENCED, lambda s: s.fenced, needs=Part.RECORDS),
    Table(_SEEN, needs=Part.CONSUMER_GROUPS),
    Table(_TOPICS, of=(ev.TopicsChanged,), needs=Part.CONSUMER_GROUPS),
    Table(_LOADED, of=(ev.Load,), needs=Part.CONSUMER_GROUPS),
    Table(_FAILED, of=(ev.AppendFailed,)),
    Table(_FIRED, of=(ev.TimerFired,)),
    Table(_TASK, of=(ev.TaskDone,)),
    Table(_CONFIGURED, of=(ev.GroupConfigChanged,)),
    Table(_ANY_WRITTEN, needs=Part.RECORDS),
    Table(_DESCRIBED, of=(c.ConsumerGroupDescribeRequest,), needs=Part.REPLIES),
)
OF_MEMBER_STATE = {_STABLE: "M-MS-01", _UNREVOKED: "M-MS-02", _UNRELEASED: "M-MS-03", _UNKNOWN: "M-MS-04"}
OF_STATE = {
    ConsumerGroupState.EMPTY: "M-ST-01",
    ConsumerGroupState.ASSIGNING: "M-ST-02",
    ConsumerGroupState.RECONCILING: "M-ST-03",
    ConsumerGroupState.STABLE: "M-ST-04",
}

CONSUMER_RULES: tuple[str, ...] = (*names((*HEARTBEAT, *ANY)), *OF_STATE.values(), *OF_MEMBER_STATE.values())

_MIXED = "concerns groups with members of both protocols"
_OTHER = "follows from other rules; every record, view and timer that it concerns is compared"
#: rules that no trace can show; no evidence may count for them
CONSUMER_CANNOT_OCCUR: dict[str, str] = {
    "M-ST-05": "a name only; nothing computes it",
    "M-VAL-03": "the component is running whenever a trace runs",
    "M-LEAVE-06": "cannot occur: M-VAL-13 needs an instance id, which must be known",
}
UNREACHED_CONSUMER_RULES: dict[str, str] = CONSUMER_CANNOT_OCCUR | {
    **dict.fromkeys(("M-VAL-22", "M-VAL-23", "M-VAL-24", "M-EPOCH-05", "M-TMR-03"), _MIXED),
    **dict.fromkeys(("M-HB-05", "M-HB-13", "M-TGT-03", "M-REC-16", "M-META-02", "M-META-06", "M-RX-08"), _OTHER),
    "M-VAL-27": "describes a retry; the requests that it consists of are compared",
    "M-STATIC-15": "one in thousands of traces; the finding `merged-members-lose-partitions` and mixed traces show it",
    "M-STATIC-14": "describes what a client can do; M-FENCE-07 and M-LEAVE-05 show it",
    "M-HB-12": "the built-in assignors never fail",
    "M-HB-15": "a bump by a tie looks like one of M-HB-14; `tied-votes` and tests/wire/test_jvm_4_4.py show it",
    "M-TGT-10": "says that two settings have no effect",
    "M-PE-02": "an internal error of the coordinator; that none occurs is checked at every step",
    "M-PE-08": "concerns commits of offsets, which these traces do not contain",
}
