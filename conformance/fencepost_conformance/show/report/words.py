"""The messages and events of both protocols in words.

Used by every view of a trace, so that the terminal and the page say the same. ``*_words`` contain all that matters;
``*_brief`` fit on an arrow: the member, and the epoch or generation or the error.
"""

from __future__ import annotations

from collections.abc import Mapping

from fencepost.protocol import consumer_messages as cm
from fencepost.protocol import events as ev
from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode

from ...common.counting import counted
from ...traces.answers import errors_of
from .consumer_words import answer_brief as consumer_answer_brief
from .consumer_words import answer_words as consumer_answer_words
from .consumer_words import described, heartbeat_brief, heartbeat_words
from .names import Names, assignment_words


def api_of(body: m.RequestBody | m.ResponseBody) -> str:
    return type(body).__name__.removesuffix("Request").removesuffix("Response")


def body_words(body: m.RequestBody, names: Names) -> str:
    if isinstance(body, m.JoinGroupRequest):
        offers = ", ".join(f"{row.name}({len(row.metadata)} B)" for row in body.protocols)
        return (
            f"{_who(body)} {body.protocol_type}: "
            f"{offers or 'nothing'}; session {body.session_timeout_ms}, rebalance {body.rebalance_timeout_ms}"
        )
    if isinstance(body, m.SyncGroupRequest):
        given = ", ".join(f"{row.member_id}={assignment_words(row.assignment)}" for row in body.assignments)
        return f"{_who(body)} generation {body.generation_id}{f'; assigns {given}' if given else ''}"
    if isinstance(body, m.HeartbeatRequest):
        return f"{_who(body)} generation {body.generation_id}"
    if isinstance(body, m.LeaveGroupRequest):
        return f"{body.group_id or '(empty)'}: {_leavers(body)}"
    if isinstance(body, m.ListGroupsRequest):
        return f"states {list(body.states_filter)} types {list(body.types_filter)}"
    if isinstance(body, cm.ConsumerGroupHeartbeatRequest):
        return heartbeat_words(body, names)
    return _groups(body)


def request_brief(body: m.RequestBody, names: Names) -> str:
    """Return API, member and epoch or generation, and the group if there are several."""
    api = api_of(body)
    group = f" {body.group_id or '(empty)'}" if names.several and hasattr(body, "group_id") else ""
    if isinstance(body, cm.ConsumerGroupHeartbeatRequest):
        return f"{api}{group} {heartbeat_brief(body, names)}"
    if isinstance(body, m.LeaveGroupRequest):
        return f"{api}{group} {_leavers(body)}"
    if isinstance(body, m.JoinGroupRequest | m.SyncGroupRequest | m.HeartbeatRequest):
        member = body.member_id or body.group_instance_id or "(new)"
        generation = "" if isinstance(body, m.JoinGroupRequest) else f" gen {body.generation_id}"
        given = " + assignment" if isinstance(body, m.SyncGroupRequest) and body.assignments else ""
        return f"{api}{group} {member}{generation}{given}"
    return api if isinstance(body, m.ListGroupsRequest) else f"{api} {_groups(body)}"


def _leavers(body: m.LeaveGroupRequest) -> str:
    rows = [
        f"{row.member_id or '(none)'}{f' instance {row.group_instance_id}' if row.group_instance_id else ''}"
        for row in body.members
    ]
    return ", ".join(rows) or "nobody"


def _groups(body: m.RequestBody) -> str:
    if isinstance(body, m.DescribeGroupsRequest):
        names = body.groups
    elif isinstance(body, m.DeleteGroupsRequest):
        names = body.groups_names
    else:
        names = body.group_ids if isinstance(body, cm.ConsumerGroupDescribeRequest) else ()
    return ", ".join(name or "(empty)" for name in names)


def _who(body: m.JoinGroupRequest | m.SyncGroupRequest | m.HeartbeatRequest) -> str:
    instance = f" instance {body.group_instance_id}" if body.group_instance_id is not None else ""
    return f"{body.group_id or '(empty)'} member {body.member_id or '(none)'}{instance}"


def event_words(event: ev.Event) -> str:
    """Describe an event that is not a request."""
    if isinstance(event, ev.TimerFired):
        return f"timer fires: {key_words(event.key)}"
    if isinstance(event, ev.TaskDone):
        return f"task {task_words(event.key)} {'fails' if event.failed else 'is done'}"
    if isinstance(event, ev.Appended):
        return f"replicated below {event.offset}"
    if isinstance(event, ev.AppendFailed):
        return f"append fails: {event.error.name}"
    if isinstance(event, ev.LoadStarted):
        return f"loading starts, epoch {event.leader_epoch}"
    if isinstance(event, ev.Load):
        return f"loaded, epoch {event.leader_epoch}, {counted(len(event.records), 'records')}"
    if isinstance(event, ev.LoadFailed):
        return f"loading fails, epoch {event.leader_epoch}"
    if isinstance(event, ev.Unload):
        return f"partition lost, epoch {event.leader_epoch}"
    if isinstance(event, ev.GroupConfigChanged):
        return f"configuration of {event.group_id}: {_config(event.config)}"
    if isinstance(event, ev.TopicsChanged):
        topics = ", ".join(f"{topic.name}({topic.partitions})" for topic in event.topics)
        return f"topics change, image {event.version}: {topics or 'none'}"
    raise TypeError(f"not an event without a sender: {event}")


def _config(config: ev.GroupConfig | None) -> str:
    if config is None:
        return "removed"
    fields = {
        "session timeout": config.consumer_session_timeout_ms,
        "heartbeat interval": config.consumer_heartbeat_interval_ms,
        "assignment interval": config.consumer_assignment_interval_ms,
    }
    return ", ".join(f"{name} {value} ms" for name, value in fields.items() if value is not None) or "nothing set"


def errors_in(body: m.ResponseBody) -> list[ErrorCode]:
    """Return the errors in an answer, without NONE."""
    return [error for error in errors_of(body) if error is not ErrorCode.NONE]


def answer_words(body: m.ResponseBody, names: Names) -> str:
    """Describe an answer: its error, and the other main values."""
    if isinstance(body, m.JoinGroupResponse):
        if body.generation_id < 0:
            return f"{body.error_code.name} member {body.member_id or '(none)'}"
        rows = f", members {', '.join(row.member_id for row in body.members)}" if body.members else ""
        skip = ", skip assignment" if body.skip_assignment else ""
        return (
            f"{body.error_code.name} member {body.member_id} generation {body.generation_id} leader {body.leader} "
            f"protocol {body.protocol_name}{skip}{rows}"
        )
    if isinstance(body, m.SyncGroupResponse):
        if body.error_code is not ErrorCode.NONE:
            return body.error_code.name
        return f"{body.error_code.name} assignment {assignment_words(body.assignment)}"
    if isinstance(body, m.LeaveGroupResponse):
        rows = ", ".join(f"{row.member_id or row.group_instance_id}: {row.error_code.name}" for row in body.members)
        return f"{body.error_code.name}{f' [{rows}]' if rows else ''}"
    if isinstance(body, m.DescribeGroupsResponse):
        return "; ".join(
            f"{row.error_code.name} {row.group_id} {row.group_state} {counted(len(row.members), 'members')}"
            for row in body.groups
        )
    if isinstance(body, cm.ConsumerGroupDescribeResponse):
        return "; ".join(described(group, names) for group in body.groups)
    if isinstance(body, m.ListGroupsResponse):
        return f"{body.error_code.name} {', '.join(f'{row.group_id} {row.group_state}' for row in body.groups)}"
    if isinstance(body, m.DeleteGroupsResponse):
        return "; ".join(f"{row.error_code.name} {row.group_id}" for row in body.results)
    if isinstance(body, cm.ConsumerGroupHeartbeatResponse):
        return consumer_answer_words(body, names)
    return ", ".join(dict.fromkeys(error.name for error in errors_of(body)))


def answer_brief(body: m.ResponseBody, names: Names) -> str:
    """Return the error, or what the sender now knows."""
    errors = errors_in(body)
    if errors:
        given = f" → {body.member_id}" if isinstance(body, m.JoinGroupResponse) and body.member_id else ""
        return f"{', '.join(dict.fromkeys(error.name for error in errors))}{given}"
    if isinstance(body, m.JoinGroupResponse):
        return f"gen {body.generation_id}{', leads' if body.leader == body.member_id else ''}"
    if isinstance(body, m.SyncGroupResponse):
        return assignment_words(body.assignment)
    if isinstance(body, cm.ConsumerGroupHeartbeatResponse):
        return consumer_answer_brief(body, names)
    if isinstance(body, m.DescribeGroupsResponse | cm.ConsumerGroupDescribeResponse):
        return ", ".join(row.group_state for row in body.groups) or "nothing"
    if isinstance(body, m.ListGroupsResponse):
        return counted(len(body.groups), "groups")
    return "NONE"


def timer_words(timers: Mapping[ev.TimerKey, int | None]) -> list[str]:
    """Return the changes of timers, in a fixed order."""
    return sorted(f"{key_words(key)} {'off' if at is None else f'at {at}'}" for key, at in timers.items())


_TIMERS = {
    ev.TimerKind.SESSION: "session",
    ev.TimerKind.CONSUMER_SESSION: "session",
    ev.TimerKind.CONSUMER_REBALANCE: "revocation",
    ev.TimerKind.CONSUMER_JOIN: "rejoin",
    ev.TimerKind.CONSUMER_SYNC: "sync",
}


def key_words(key: ev.TimerKey) -> str:
    if key.kind is ev.TimerKind.OPERATION:
        return f"operation #{key.operation}"
    return f"{_TIMERS.get(key.kind, key.kind.value)} of {key.member_id or key.group_id}"


def task_words(key: ev.TaskKey) -> str:
    return f"{key.kind.value} of {key.group_id}"
