"""Kafka's own classic consumer reads in a group beside the core's: schedules that agree, and faults that they find."""

from __future__ import annotations

import pytest

from fencepost.member.events import CommitFinished
from fencepost.protocol.profiles import PROFILES
from fencepost.reader import commits
from fencepost.reader.consumer import TellMember
from fencepost_conformance.clientside.judge import Half, MemberProtocol, judge
from fencepost_conformance.console import CannotRun
from fencepost_conformance.jvm import clients
from fencepost_conformance.jvm.builds import Build
from fencepost_conformance.jvm.releases import NEWEST

pytestmark = pytest.mark.jvm

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
SEEDS = range(52)


def differing() -> set[int]:
    """The seeds of schedules that differ."""
    try:
        clients.command(Build(NEWEST), "classic", "group-reader")
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    found = judge(Build(NEWEST), PROFILE, SEEDS, 60, MemberProtocol.CLASSIC, Half.GROUP_READER)
    return {each.seed for each in found if each.difference is not None}


def test_what_agreed_agrees() -> None:
    assert differing() == set()


def test_a_member_that_does_not_hear_of_a_refused_commit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-OFF-12, K-OFF-13."""
    monkeypatch.setattr(commits, "_tell_refused", lambda *_: None)
    assert differing()


def test_a_commit_before_a_rejoin_that_is_not_waited_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-CB-01: whatever becomes of it is told at once."""

    def at_once(turn: commits.Turn, commit_id: int, *_: object, **__: object) -> None:
        turn.emit(TellMember(CommitFinished(turn.now, commit_id=commit_id, result=commits.CommitResult.DONE)))

    monkeypatch.setattr(commits, "wanted", at_once)
    assert differing()
