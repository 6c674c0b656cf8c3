"""The checks for the events that no driver may deliver (``fencepost.protocol.events``), made before each step.

Every check raises ``IllegalEvent`` with a message that says what is wrong and what would be correct.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.protocol.carried import uncarried
from fencepost.protocol.choices import Choices
from fencepost.protocol.errors import IllegalEvent
from fencepost.protocol.events import (
    Appended,
    AppendFailed,
    Event,
    GroupConfigChanged,
    Load,
    LoadFailed,
    LoadStarted,
    Request,
    TaskDone,
    TimerFired,
    TimerKey,
    TimerKind,
    TopicsChanged,
    Unload,
)
from fencepost.protocol.messages import VERSIONS, RequestBody
from fencepost.protocol.misuse import expect, expect_methods
from fencepost.protocol.offset_messages import TxnOffsetCommitRequest, WriteTxnMarkerRequest
from fencepost.protocol.shapes import fault

from .state import CoordinatorState, Status

#: classes whose objects are known to have the methods of ``Choices``
_CHOOSERS: Final[set[type]] = set()


def check(state: CoordinatorState, event: Event, choices: Choices) -> None:
    """Raise ``IllegalEvent`` if no driver may deliver this event now, ``WrongType`` for a wrong state or choices."""
    if type(state) is not CoordinatorState:
        expect(CoordinatorState, state, "state", "start with initial_state, then pass what the previous step returned")
    if type(choices) not in _CHOOSERS:
        expect_methods(Choices, choices, "choices", "use RandomChoices() unless another implementation is needed")
        _CHOOSERS.add(type(choices))
    look = _CHECKS.get(type(event))
    if look is None:
        raise IllegalEvent(f"{type(event).__name__} is not an event type; fencepost.protocol.events defines them")
    wrong = fault(event)
    if wrong is not None:
        raise IllegalEvent(wrong)
    if event.at_ms < state.now:
        raise IllegalEvent(
            f"at_ms is {event.at_ms}, but the time of the coordinator is already {state.now} ms; deliver the events of "
            "one coordinator one at a time, in the order of their times, starting at 0"
        )
    look(state, event)


def _request(state: CoordinatorState, event: Request) -> None:
    first, last = VERSIONS[type(event.body)]
    if not first <= event.version <= last:
        name = type(event.body).__name__
        raise IllegalEvent(f"{name} has no version {event.version}; use one of {first} to {last}")
    wrong = uncarried(event.body, event.version) or _of_no_producer(event.body)
    if wrong is not None:
        raise IllegalEvent(wrong)
    if event.id < 0:
        raise IllegalEvent(f"Request.id must be >= 0 (got {event.id}); negative ids are reserved for timer writes")
    if event.id in state.operations or event.id in state.parked:
        raise IllegalEvent(
            f"request {event.id} is still open: it has no answer yet, or its records are not replicated; use an id "
            "that no earlier request had"
        )


def _of_no_producer(body: RequestBody) -> str | None:
    """What is wrong with the producer ids. The host checks with the transaction coordinator that the producer exists
    before it delivers the request (O-TXN-01)."""
    if isinstance(body, TxnOffsetCommitRequest | WriteTxnMarkerRequest):
        for name, number in (("producer_id", body.producer_id), ("producer_epoch", body.producer_epoch)):
            if number < 0:
                return f"{type(body).__name__}.{name} must be >= 0 (got {number}); no producer has a negative one"
    return None


def _timer(state: CoordinatorState, event: TimerFired) -> None:
    """F-RT-17."""
    armed = state.armed(event.key)
    if armed is None:
        raise IllegalEvent(
            f"{_name(event.key)} is not set: it was never set, was cancelled, or has fired; "
            "drop a timer when an outcome cancels it or sets it again",
            "NoSuchTimer",
        )
    if event.at_ms < armed.due:
        raise IllegalEvent(
            f"{_name(event.key)} is due at {armed.due} ms, not at {event.at_ms} ms; deliver it then or later",
            "NoSuchTimer",
        )


def _name(key: TimerKey) -> str:
    if key.kind is TimerKind.EXPIRY:
        return "the expiry timer"
    what = f"operation {key.operation}" if not key.group_id and not key.member_id else f"group {key.group_id!r}"
    member = f", member {key.member_id!r}" if key.member_id else ""
    return f"the {key.kind.value} timer of {what}{member}"


def _task(state: CoordinatorState, event: TaskDone) -> None:
    """M-RX-03. A task that ends after the partition was lost is late and has no effect (F-UNLOAD-01)."""
    if state.status is Status.ACTIVE and event.key.group_id not in state.tasks:
        raise IllegalEvent(
            f"no {event.key.kind.value} task of group {event.key.group_id!r} is running; deliver one TaskDone for "
            "each task of an outcome, and none for a task that was started before an Unload",
            "NoSuchTask",
        )


def _appended(state: CoordinatorState, event: Appended) -> None:
    """F-RT-04, F-RT-05. The same high watermark may be reported twice."""
    offset = event.offset
    if offset == state.committed or offset in state.ends:
        return
    if offset < state.committed:
        raise IllegalEvent(
            f"the high watermark must not go back to {offset}: it was {state.committed} before; report it only when "
            "it rises"
        )
    if offset > state.end:
        raise IllegalEvent(f"the high watermark cannot be {offset}: the log ends at {state.end}", "OffsetBeyondLog")
    raise IllegalEvent(
        f"offset {offset} lies between records of one outcome, which are replicated together; "
        f"report one of {', '.join(map(str, state.ends))}",
        "OffsetInsideBatch",
    )


def _append_failed(state: CoordinatorState, event: AppendFailed) -> None:
    """F-RT-08."""
    if state.base == state.end:
        raise IllegalEvent(
            "the previous step wrote nothing, so no append can have failed; deliver AppendFailed directly after the "
            "outcome whose records failed",
            "NothingToAppend",
        )


def _topics(state: CoordinatorState, event: TopicsChanged) -> None:
    """M-RX-03."""
    if event.version < state.topics.version:
        raise IllegalEvent(
            f"TopicsChanged.version is {event.version}, but version {state.topics.version} was delivered before; "
            "deliver the images in order"
        )
    for kind, names in (("name", [t.name for t in event.topics]), ("topic_id", [t.topic_id for t in event.topics])):
        if len(set(names)) < len(names):
            raise IllegalEvent(f"two topics of an image have the same {kind}")
    for topic in event.topics:
        if topic.partitions < 0 or len(topic.racks) > topic.partitions:
            raise IllegalEvent(
                f"topic {topic.name!r} has {topic.partitions} partitions and {len(topic.racks)} rows of racks; give at "
                "most one row of racks for each partition, and at least 0 partitions"
            )


def _config(state: CoordinatorState, event: GroupConfigChanged) -> None:
    """G-CFG-28."""
    config = event.config
    if config is None:
        return
    values = (
        ("consumer_session_timeout_ms", config.consumer_session_timeout_ms, 1),
        ("consumer_heartbeat_interval_ms", config.consumer_heartbeat_interval_ms, 1),
        ("consumer_assignment_interval_ms", config.consumer_assignment_interval_ms, 0),
    )
    for name, value, least in values:
        if value is not None and value < least:
            raise IllegalEvent(f"GroupConfig.{name} must be >= {least} (got {value})")


def _epoch(state: CoordinatorState, event: LoadStarted | Load | LoadFailed | Unload) -> None:
    """F-LOAD-03, F-LOAD-08. An event with an epoch that is not the newest is late and has no effect."""
    epoch = event.leader_epoch
    if epoch is not None and epoch < 0:
        raise IllegalEvent(f"leader_epoch must be >= 0 (got {epoch}); it counts the leaders of the partition")
    if isinstance(event, Load) and event.committed is not None and not 0 <= event.committed <= len(event.records):
        raise IllegalEvent(
            f"Load.committed must be >= 0 and <= {len(event.records)}, the number of records (got {event.committed})"
        )


_CHECKS: Final[Mapping[type, Callable[[CoordinatorState, Any], None]]] = {
    Request: _request,
    TimerFired: _timer,
    TaskDone: _task,
    Appended: _appended,
    AppendFailed: _append_failed,
    TopicsChanged: _topics,
    GroupConfigChanged: _config,
    LoadStarted: _epoch,
    Load: _epoch,
    LoadFailed: _epoch,
    Unload: _epoch,
}
