"""One event in, one outcome out.

Nothing in here reads a clock, draws a random number or touches anything outside: the same events give the same
outcomes. If a handler raises, the given state is unchanged.
"""

from __future__ import annotations

from fencepost.protocol.choices import Choices
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

from . import lifecycle, reversion, routing
from .consumer import regex
from .consumer.group_epoch import request_metadata_refresh
from .kernel import contract, operations
from .kernel.persistent import with_entry, without
from .kernel.replies import error_response
from .kernel.state import CoordinatorState, Status
from .kernel.step import Step
from .kernel.topics import has_new
from .kernel.topics import image as image_of
from .offsets import deletion
from .replay import APPLIERS


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
            operations.replicated(current, event.offset)
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
    """Check the request, then let its handler serve it."""
    api = routing.APIS[type(event.body)]
    failed = api.check(step.state, event, event.body)
    if failed is not None:
        step.reply(event.id, error_response(event, failed.error, failed.member_id))
    else:
        api.handle(step, event, event.body)
