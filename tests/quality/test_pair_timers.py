"""The pairs of a member and its model compare timers and requests for metadata. They find a member whose timers are
wrong and whose other outputs are right."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from fencepost.member import MemberSettings, leading
from fencepost.member.assignors.range import RangeAssignor
from fencepost.member.consumer import ConsumerSettings, heartbeats
from fencepost.member.events import CommitResult, MemberTimer, RequestMetadata
from fencepost.member.turn import AnyTurn
from fencepost_conformance.generate.simulate.beside import Beside, Disagreement
from fencepost_conformance.generate.simulate.consumer_pair import ConsumerPair
from fencepost_conformance.generate.simulate.pair import Pair
from fencepost_conformance.generate.simulate.pairs import explore_pairs
from fencepost_conformance.run.mutants.consumer_member_checks import choose

#: Packages export functions under the names of these modules.
CLASSIC, CONSUMER = (sys.modules[f"fencepost.member.{name}"] for name in ("step", "consumer.step"))
Patch = pytest.MonkeyPatch


def pair() -> Pair:
    return Pair(MemberSettings("g", assignors=(RangeAssignor(),)), (("t", 2), ("u", 1)))


def consumer_pair() -> ConsumerPair:
    return ConsumerPair(ConsumerSettings("g", auto_commit=True))


def problem(start: Beside) -> str:
    return explore_pairs(start, 6_000).problem or ""


def late(patch: Patch, late_one: MemberTimer) -> None:
    """The fault: that timer runs one millisecond too long."""
    set_deadline = AnyTurn.set_deadline

    def later(turn: AnyTurn, timer: MemberTimer, delay_ms: int) -> None:  # type: ignore[type-arg]
        set_deadline(turn, timer, delay_ms + (timer is late_one))

    patch.setattr(AnyTurn, "set_deadline", later)


def unset(patch: Patch, module: object, lost_one: MemberTimer) -> None:
    """The fault: the host is not asked to set that timer."""
    armed = module.armed  # type: ignore[attr-defined]
    patch.setattr(module, "armed", lambda member: {k: at for k, at in armed(member).items() if k is not lost_one})


T = MemberTimer


@pytest.mark.parametrize("timer", [T.HEARTBEAT, T.SESSION, T.POLL, T.RETRY])
def test_a_timer_of_a_classic_member_that_is_late_is_found(monkeypatch: Patch, timer: MemberTimer) -> None:
    late(monkeypatch, timer)
    assert f"'{timer.value}'" in problem(pair())


@pytest.mark.parametrize("timer", [T.HEARTBEAT, T.SESSION, T.POLL, T.RETRY])
def test_a_timer_of_a_classic_member_that_is_never_set_is_found(monkeypatch: Patch, timer: MemberTimer) -> None:
    unset(monkeypatch, CLASSIC, timer)
    assert f"'{timer.value}'" in problem(pair())


@pytest.mark.parametrize("timer", [T.HEARTBEAT, T.BACKOFF, T.POLL, T.LOOKUP])
def test_a_timer_of_a_consumers_member_that_is_late_is_found(monkeypatch: Patch, timer: MemberTimer) -> None:
    late(monkeypatch, timer)
    assert f"'{timer.value}'" in problem(consumer_pair())


@pytest.mark.parametrize("timer", [T.HEARTBEAT, T.BACKOFF, T.POLL, T.LOOKUP])
def test_a_timer_of_a_consumers_member_that_is_never_set_is_found(monkeypatch: Patch, timer: MemberTimer) -> None:
    unset(monkeypatch, CONSUMER, timer)
    assert f"'{timer.value}'" in problem(consumer_pair())


def test_a_late_back_off_of_a_commit_is_found(monkeypatch: Patch) -> None:
    """The pair differs only far from the start, so random walks look for it."""
    late(monkeypatch, T.RETRY)
    found: list[str] = []
    for seed in range(20):
        rng, walk = Random(seed), consumer_pair()
        try:
            for _ in range(60):
                inputs = walk.inputs()
                again = [each for each in inputs if each.value is CommitResult.RETRIABLE]
                walk = walk.after(again[0] if again else choose(rng, inputs))
        except (Disagreement, IndexError) as failure:
            found.append(str(failure))
    assert any("'retry'" in each for each in found), found


@pytest.mark.parametrize(("start", "module"), [(pair, CLASSIC), (consumer_pair, CONSUMER)])
def test_timers_that_are_never_cancelled_are_found(
    monkeypatch: Patch, start: Callable[[], Beside], module: object
) -> None:
    monkeypatch.setattr(module, "armed", lambda member: dict(member.deadlines))
    assert "timers" in problem(start())


def test_a_timer_that_only_the_member_has_is_fired() -> None:
    """The fault: a timer that the model does not have may fire."""
    lonely = pair()
    lonely.alarms = replace(lonely.alarms, running={"heartbeat": None})
    due = next(each for each in lonely.inputs() if each.what == "heartbeat due")
    with pytest.raises(Disagreement, match="only one side lets the heartbeat timer expire"):
        lonely.after(due)


def test_a_back_off_that_is_not_skipped_is_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(heartbeats, "skip_backoff", lambda turn: None)
    assert problem(consumer_pair())


def test_metadata_that_is_not_asked_for_is_found(monkeypatch: Patch) -> None:
    emit = AnyTurn.emit

    def silent(turn: AnyTurn, command: object) -> None:  # type: ignore[type-arg]
        if not isinstance(command, RequestMetadata):
            emit(turn, command)  # type: ignore[arg-type]

    monkeypatch.setattr(AnyTurn, "emit", silent)
    assert "asks for metadata" in problem(pair())


def test_metadata_of_the_wrong_topics_is_found(monkeypatch: Patch) -> None:
    """The fault: a leader asks for its own topics only, and not for those of its group (K-JOIN-10)."""
    monkeypatch.setattr(leading, "RequestMetadata", lambda topics: RequestMetadata(frozenset("t")))
    assert "asks for metadata" in problem(pair())
