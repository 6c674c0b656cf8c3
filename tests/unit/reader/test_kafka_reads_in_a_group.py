"""Kafka's own consumers read in a group beside the core's: schedules that agree, and faults that they find."""

from __future__ import annotations

import pytest

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.events import CommitFinished, Poll, PollPart
from fencepost.member.subscription import SubscriptionState
from fencepost.protocol.profiles import PROFILES
from fencepost.reader import background, commits, consumer
from fencepost.reader.consumer import TellMember
from fencepost_conformance.clientside.judge import Half, MemberProtocol, judge
from fencepost_conformance.console import CannotRun
from fencepost_conformance.jvm import clients
from fencepost_conformance.jvm.builds import Build
from fencepost_conformance.jvm.releases import NEWEST

pytestmark = pytest.mark.jvm

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
SEEDS = range(52)
CLASSIC, CONSUMER = MemberProtocol


def differing(protocol: MemberProtocol = CLASSIC, seeds: range = SEEDS) -> set[int]:
    """The seeds of schedules that differ."""
    try:
        clients.command(Build(NEWEST), protocol, "group-reader")
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    found = judge(Build(NEWEST), PROFILE, seeds, 60, protocol, Half.GROUP_READER)
    return {each.seed for each in found if each.difference is not None}


@pytest.mark.parametrize("protocol", MemberProtocol)
def test_what_agreed_agrees(protocol: MemberProtocol) -> None:
    assert differing(protocol) == set()


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


# --- KIP-848 ---


def test_a_commit_before_a_reconciliation_that_is_not_tried_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-REC-04."""
    monkeypatch.setattr(commits, "_comes_again", lambda *_: False)
    assert differing(CONSUMER, range(680, 686))


def test_who_takes_a_position_for_what_is_lost_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-TR-07, N-TR-11: what is about to be given up is not marked."""
    monkeypatch.setattr(SubscriptionState, "mark_all", lambda self: self)
    assert differing(CONSUMER)


def test_who_searches_for_positions_before_it_reconciles_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-POLL-01: the member has its turn when the reader has had all of its own."""

    def late(both: consumer._Both) -> None:
        both._read(Poll(both.now, PollPart.BEGIN))
        if not both._thrown():
            both._read(Poll(both.now, PollPart.BACKGROUND))
        if not both._thrown():
            both._join(Poll(both.now, PollPart.BACKGROUND))
            both.stage = consumer.Stage.POLL
            both._join(Poll(both.now, PollPart.ERRANDS))

    monkeypatch.setattr(consumer._Both, "_go_round", late)
    assert differing(CONSUMER)


def test_a_poll_event_that_is_never_over_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-POLL-01: what a listener gives the background time for."""
    monkeypatch.setattr(background, "lasts", lambda _: None)
    assert differing(CONSUMER, range(200))


def test_who_commits_in_no_name_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-CMT-01."""
    monkeypatch.setattr(ConsumerMember, "commits_as", property(lambda member: (member.member_id, member.epoch)))
    assert differing(CONSUMER)
