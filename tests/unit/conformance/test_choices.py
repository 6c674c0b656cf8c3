"""Hidden choices of the other coordinator are found by trying (NOT-10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from fencepost.protocol.profiles import INTENDED, KAFKA_4_3
from fencepost_conformance.generate.generator import Generated, generate
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.compare.choices import Answer, Call, Place, WatchedChoices, unobserved_choices
from fencepost_conformance.judge.compare.lockstep import compare
from fencepost_conformance.targets.core import Core
from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder, java_order, timeline_order

Kept = Callable[..., list[Generated]]
ONE, OTHER, ALONE = bytes(15) + b"\x01", bytes(15) + b"\x11", bytes(15) + b"\x02"


class LastIn(JavaOrder):
    """A coordinator whose tables of topics were filled in the opposite order."""

    def topics(self, group_id: str, topic_ids: Sequence[bytes]) -> Sequence[bytes]:
        return topic_ids[::-1]


class LastMember(JavaOrder):
    """A coordinator that once had many members, so that its table is larger."""

    def order(self, group_id: str, keys: Sequence[str]) -> Sequence[str]:
        return java_order(timeline_order(keys), 24)


@pytest.mark.parametrize(("other", "seeds"), [(LastIn, (11147, 40025)), (LastMember, ())])
def test_other_orders_are_found(other: Callable[[MemberIds], JavaOrder], seeds: tuple[int, ...], kept: Kept) -> None:
    """In few traces a member loses a topic that shares a bucket with another; the kept traces are of this kind."""
    followed = 0
    made = (generate(seed, KAFKA_4_3, 60, GroupProtocol.CONSUMER) for seed in range(60))
    for trace in kept(GroupProtocol.CONSUMER, KAFKA_4_3, *seeds) if seeds else made:
        theirs, _ = Core(lambda: other(MemberIds())).run_until_raised(trace.settings, KAFKA_4_3, trace.events)
        found = compare(trace.settings, KAFKA_4_3, trace.events, trace.observations, theirs)
        assert found.difference is None, f"seed {trace.seed}: {found.difference}"
        followed += found.followed
    assert followed


def tried(*calls: Call, event: int = 7) -> list[dict[Place, Answer]]:
    """Return the answers that are tried at that event if no answer helps and the calls stay the same."""
    found: list[dict[Place, Answer]] = []

    def attempt(answers: Mapping[Place, Answer]) -> tuple[bool, Sequence[Call]]:
        found.append(dict(answers))
        return False, calls

    assert unobserved_choices(calls, event, attempt) == {}
    return found


def test_topics_change_places_within_their_bucket_only() -> None:
    call = Call(7, 0, "topics", "g", (ONE, ALONE, OTHER), (ONE, ALONE, OTHER))
    assert tried(call) == [{(7, 0): (ONE, OTHER, ALONE)}, {(7, 0): (OTHER, ONE, ALONE)}]
    assert tried(call, event=8) == []


def test_answers_of_one_step_are_tried_alone_and_then_together() -> None:
    assert tried(
        Call(7, 0, "order", "g", ("Aa", "BB"), ("Aa", "BB")),
        Call(7, 1, "assignor", "g", ("range", "uniform"), "range"),
    ) == [
        {(7, 0): ("BB", "Aa")},
        {(7, 1): "uniform"},
        {(7, 0): ("BB", "Aa"), (7, 1): "uniform"},
    ]


def test_a_choice_that_an_answer_brings_is_answered_too() -> None:
    """The topics that stand for all members decide whether any of them share a bucket (A-UHOM-07)."""
    order = Call(7, 0, "order", "g", ("Aa", "BB"), ("Aa", "BB"))
    topics = Call(7, 1, "topics", "g", (ONE, OTHER), (ONE, OTHER))

    def attempt(answers: Mapping[Place, Answer]) -> tuple[bool, Sequence[Call]]:
        asked = [order, topics] if (7, 0) in answers else [order]
        return answers.get((7, 1)) == (OTHER, ONE), asked

    assert unobserved_choices([order], 7, attempt) == {(7, 0): ("BB", "Aa"), (7, 1): (OTHER, ONE)}


def test_an_answer_to_another_question_is_not_used() -> None:
    choices = WatchedChoices(JavaOrder(MemberIds()), {(7, 0): (OTHER, ONE)})
    choices.event = 7
    assert choices.topics("g", (ONE, ALONE)) == (ONE, ALONE)
    choices.calls.clear()
    assert choices.topics("g", (ONE, OTHER)) == (OTHER, ONE)


def test_a_switch_and_another_order_explain_together(kept: Kept) -> None:
    """With a stale subscription type, only the other coordinator's order gives another target (M-TGT-06)."""
    (trace,) = kept(GroupProtocol.MIXED, INTENDED, 395)
    theirs, _ = Core(lambda: LastMember(MemberIds())).run_until_raised(trace.settings, KAFKA_4_3, trace.events)
    found = compare(trace.settings, INTENDED, trace.events, trace.observations, theirs)
    assert found.divergence == "fault_stale_subscription_type"
