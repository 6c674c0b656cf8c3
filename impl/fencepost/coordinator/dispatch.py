"""One event in, one outcome out.

Nothing in here reads a clock, draws a random number or touches anything outside: the same events give the same
outcomes. If a handler raises, the given state is unchanged.
"""

from __future__ import annotations

from fencepost.protocol.choices import Choices
from fencepost.protocol.consumer_messages import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    GroupConfig,
    GroupConfigChanged,
    Load,
    LoadFailed,
    LoadStarted,
    Outcome,
    Request,
    TaskDone,
    TimerFired,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from fencepost.protocol.offset_messages import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)

from . import lifecycle, reversion, routing
from .consumer import regex, validation
from .consumer.group_epoch import request_metadata_refresh
from .kernel import availability, completion, contract
from .kernel.persistent import with_entry, without
from .kernel.replies import error_response
from .kernel.state import CoordinatorState, Status
from .kernel.step import Step
from .kernel.topics import has_new
from .kernel.topics import image as image_of
from .offsets import deletion
from .replay import APPLIERS

#: From this version on SyncGroup must contain protocol type and protocol name (C-SYNC-01).
PROTOCOL_NAMED_SINCE = 5

#: APIs that name one group and refuse an empty name (G-WIRE-27).
_OF_ONE_GROUP = (JoinGroupRequest, SyncGroupRequest, HeartbeatRequest, LeaveGroupRequest)
#: APIs whose handlers make all checks themselves.
_OF_OFFSETS = (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetDeleteRequest,
    TxnOffsetCommitRequest,
    WriteTxnMarkerRequest,
)


def step(state: CoordinatorState, event: Event, choices: Choices) -> tuple[CoordinatorState, Outcome]:
    """Handle one event, in the order in which they arrive (F-RT-03). Returns the state after it, and what the event
    asks of the host.

    Raises ``IllegalEvent`` for an event that no driver may deliver now, ``WrongType`` for a wrong state or choices. The
    given state is unchanged then.
    """
    contract.check(state, event, choices)
    current = Step(state, event.at_ms, choices, APPLIERS)
    match event:
        case Request():
            _request(current, event)
        case TimerFired():
            routing.timer(current, event)
        case Appended():
            completion.replicated(current, event.offset)
        case AppendFailed():
            reversion.report_undone(current)
            reversion.append_failed(current, event.error)
        case TaskDone():
            if state.status is Status.ACTIVE:
                regex.done(current, event)
        case TopicsChanged():
            _topics_changed(current, event)
        case GroupConfigChanged():
            _configured(current, event.group_id, event.config)
        case LoadStarted():
            lifecycle.load_started(current, event.leader_epoch)
        case Load():
            lifecycle.loaded(current, event)
        case LoadFailed():
            lifecycle.load_failed(current)
        case Unload():
            lifecycle.unload(current, event)
    return current.finish()


def _topics_changed(step: Step, event: TopicsChanged) -> None:
    """Store the image, loaded or not; the groups of a loaded coordinator react to it (M-META-03)."""
    new = image_of(event.topics, event.version, step.topics.created)
    if step.status is Status.ACTIVE:
        request_metadata_refresh(step, new)
        deletion.topics_deleted(step, step.topics, new)
        if has_new(step.topics, new) or step.topics.created < 0:  # M-RX-03
            new = new._replace(created=event.version)
    step.topics = new


def _configured(step: Step, group_id: str, config: GroupConfig | None) -> None:
    known = step.configs
    step.configs = without(known, group_id) if config is None else with_entry(known, group_id, config)


def _request(step: Step, event: Request) -> None:
    body = event.body
    error, member_id = _refused(step.state, event)
    if error is not None:
        step.reply(event.id, error_response(event, error, member_id))
    else:
        routing.HANDLERS[type(body)](step, event, body)


def _refused(state: CoordinatorState, event: Request) -> tuple[ErrorCode | None, str]:
    """The checks before the group is read, in order. Returns also the member id for the answer to a JoinGroup."""
    body = event.body
    member_id = ""
    if isinstance(body, _OF_ONE_GROUP):
        if isinstance(body, SyncGroupRequest) and event.version >= PROTOCOL_NAMED_SINCE and _unnamed(body):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ""  # C-SYNC-01
        if body.group_id in event.denied:
            return ErrorCode.GROUP_AUTHORIZATION_FAILED, ""  # C-JOIN-02, C-SYNC-02, C-HB-01, C-LEAVE-01
        if isinstance(body, JoinGroupRequest):
            member_id = body.member_id
        if not state.running:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id  # C-JOIN-03, C-SYNC-03, C-HB-02, C-LEAVE-02
        if not body.group_id:
            return ErrorCode.INVALID_GROUP_ID, member_id  # C-JOIN-04
        if isinstance(body, JoinGroupRequest):
            settings = state.settings
            low, high = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
            if not low <= body.session_timeout_ms <= high:
                return ErrorCode.INVALID_SESSION_TIMEOUT, member_id  # C-JOIN-05
    elif isinstance(body, _OF_OFFSETS):
        return None, ""  # parts of it may still be answered (O-COMMIT-04)
    elif isinstance(body, ConsumerGroupHeartbeatRequest):
        error = _heartbeat_refused(state, event, body)
        if error is not None:
            return error, ""
    elif isinstance(body, ConsumerGroupDescribeRequest) and not state.settings.consumer_protocol_enabled:
        return ErrorCode.UNSUPPORTED_VERSION, ""  # G-CFG-29
    elif not state.running:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, ""
    return availability.not_serving(state), ""


def _heartbeat_refused(
    state: CoordinatorState, event: Request, body: ConsumerGroupHeartbeatRequest
) -> ErrorCode | None:
    """The checks that need no group: authorization, a running coordinator, and the fields (M-VAL-01…15)."""
    error = validation.unauthorized(event, body, state.settings)
    if error is not None:
        return error
    if not state.running:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE  # M-VAL-03
    return validation.wrong_at_once(state, event, body)


def _unnamed(body: SyncGroupRequest) -> bool:
    return body.protocol_type is None or body.protocol_name is None
