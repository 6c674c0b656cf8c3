"""Kafka's own consumers read in a group beside the core's: schedules that agree, and faults that the comparison
finds."""

from __future__ import annotations

from contextlib import closing

import pytest

from fencepost.member.consumer.state import ConsumerMember
from fencepost.member.events import CommitFinished, Poll, PollPart
from fencepost.member.subscription import SubscriptionState
from fencepost.protocol.profiles import PROFILES
from fencepost_conformance.common.errors import CannotRun
from fencepost_conformance.judge.client.judge import judge
from fencepost_conformance.judge.client.kinds import Half, MemberProtocol
from fencepost_conformance.targets.jvm import clients
from fencepost_conformance.targets.jvm.builds import Build
from fencepost_conformance.targets.jvm.releases import NEWEST
from fencepost_consumer import background, commits, consumer
from fencepost_consumer.consumer import PassToMember

pytestmark = pytest.mark.jvm

PROFILE = PROFILES[f"kafka-{'.'.join(NEWEST.split('.')[:2])}"]
SEEDS = range(52)
CLASSIC, CONSUMER = MemberProtocol


def differing(protocol: MemberProtocol = CLASSIC, seeds: range = SEEDS) -> int | None:
    """Return the first seed whose schedule differs; None if all agree."""
    try:
        clients.command(Build(NEWEST), protocol, "group-reader")
    except CannotRun as reason:
        pytest.skip(str(reason).splitlines()[0])
    with closing(judge(Build(NEWEST), PROFILE, seeds, 60, protocol, Half.GROUP_READER)) as found:
        return next((each.seed for each in found if each.difference is not None), None)


@pytest.mark.parametrize("protocol", MemberProtocol)
def test_protocols_that_agreed_still_agree(protocol: MemberProtocol) -> None:
    assert differing(protocol) is None


def test_a_member_without_the_error_of_its_commit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """K-OFF-12, K-OFF-13."""
    monkeypatch.setattr(commits, "_report_refused", lambda *_: None)
    assert differing() is not None


def test_a_commit_before_a_rejoin_that_is_not_waited_for_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The result of the commit is reported immediately (K-CB-01)."""

    def at_once(turn: commits.Turn, commit_id: int, *_: object, **__: object) -> None:
        turn.emit(PassToMember(CommitFinished(turn.now, commit_id=commit_id, result=commits.CommitResult.DONE)))

    monkeypatch.setattr(commits, "wanted", at_once)
    assert differing() is not None


# --- KIP-848 ---


def test_a_commit_before_a_reconciliation_that_is_not_tried_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-REC-04."""
    monkeypatch.setattr(commits, "_comes_again", lambda *_: False)
    assert differing(CONSUMER, range(680, 686)) is not None


def test_a_position_for_a_lost_partition_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions that are about to be lost are not marked (N-TR-07, N-TR-11)."""
    monkeypatch.setattr(SubscriptionState, "mark_all", lambda self: self)
    assert differing(CONSUMER) is not None


def test_a_position_search_before_the_reconciliation_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The member takes its turn after the reader has finished its own (N-POLL-01)."""

    def late(pair: consumer._BackgroundPair, event: Poll) -> None:
        del event
        pair._read(Poll(pair.now, PollPart.BEGIN))
        if not pair._thrown():
            pair._read(Poll(pair.now, PollPart.BACKGROUND))
        if not pair._thrown():
            pair._join(Poll(pair.now, PollPart.BACKGROUND))
            pair.stage = consumer.Stage.POLL
            pair._join(Poll(pair.now, PollPart.BACKGROUND_EVENTS))

    monkeypatch.setattr(consumer._BackgroundPair, "_poll_in_group", late)
    assert differing(CONSUMER) is not None


def test_a_poll_event_that_is_never_over_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The background thread runs while a listener runs (N-POLL-01)."""
    monkeypatch.setattr(background, "lasts", lambda _: None)
    assert differing(CONSUMER, range(200)) is not None


def test_commits_without_an_identity_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """N-CMT-01."""
    monkeypatch.setattr(ConsumerMember, "commits_as", property(lambda member: (member.member_id, member.epoch)))
    assert differing(CONSUMER) is not None
