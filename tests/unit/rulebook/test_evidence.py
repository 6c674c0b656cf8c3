"""Evidence that a rule was compared: steps that the model explains, in traces without impossible events."""

from __future__ import annotations

from dataclasses import replace

from fencepost.protocol.errors import ErrorCode
from fencepost.protocol.messages import HeartbeatResponse
from fencepost.protocol.profiles import KAFKA_4_3
from fencepost_conformance.generate.generator import generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.atomic import fails_within
from tools.evidence.traces import Tally

TRACE = generate(3, KAFKA_4_3, 60)
#: A step that answers a heartbeat; the first half of the trace comes before it.
PLACE = next(
    place
    for place, seen in enumerate(TRACE.observations)
    if place > 10 and any(isinstance(reply.body, HeartbeatResponse) for reply in seen.replies)
)


def tally_of(**changes: object) -> Tally:
    """Tally the trace with another observation of that step."""
    seen = list(TRACE.observations)
    seen[PLACE] = replace(seen[PLACE], **changes)
    tally = Tally()
    tally.add(TRACE, seen)
    return tally


def test_a_trace_that_the_model_explains_counts_with_all_its_steps() -> None:
    tally = tally_of()
    assert (tally.steps, tally.refused, tally.impossible) == (len(TRACE.observations), 0, {})
    assert tally.rules
    assert tally.seen_in


def test_an_impossible_event_ends_the_trace_without_a_rejection() -> None:
    tally = tally_of(error="NoSuchTimer")
    assert (tally.steps, tally.refused, tally.impossible) == (PLACE, 0, {"NoSuchTimer": 1})
    assert tally.seen_in


def test_a_step_that_the_model_does_not_allow_is_a_refusal() -> None:
    replies = tuple(
        replace(reply, body=HeartbeatResponse(ErrorCode.UNKNOWN_SERVER_ERROR))
        for reply in TRACE.observations[PLACE].replies
    )
    tally = tally_of(replies=replies)
    assert (tally.steps, tally.refused, tally.impossible) == (PLACE, 1, {})


def test_an_error_of_another_name_is_judged_by_the_model() -> None:
    assert tally_of(error="NullPointerException").impossible == {}


def test_an_append_that_fails_within_its_step_ends_the_trace_without_a_rejection() -> None:
    trace = generate(200_021, KAFKA_4_3, 60, GroupProtocol.MIXED, offsets=None)
    place = next(index for index in range(len(trace.events)) if fails_within(trace.events, index))
    tally = Tally()
    tally.add(trace, trace.observations)
    assert (tally.steps, tally.refused, tally.within) == (place, 0, 1)
