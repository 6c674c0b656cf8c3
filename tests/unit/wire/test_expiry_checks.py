"""A check for expired offsets deletes an empty group without offsets, once in an interval (O-EXP-20, O-EXP-21)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0, KAFKA_4_4
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .test_scala import SETTINGS, TXN_COMMIT, Classic
from .written import Wire, parts

INTERVAL_MS = 600_000


def verdict(wire: Wire, profile: Profile = KAFKA_4_4, *, interval_ms: int = INTERVAL_MS) -> Verdict:
    settings = replace(wire.settings, offsets_retention_check_interval_ms=interval_ms)
    return check_trace(WireTrace(settings, profile, tuple(wire.lines)))


def pending_id_is_gone(wire: Classic, at: int, client: str) -> None:
    """Assign a member id, which is unknown when its client returns with it."""
    wire.pending(at, client)
    again = wire.join(at + 10, client, client, version=9)
    wire.refused(at + 20, client, again, E.UNKNOWN_MEMBER_ID, client, version=9)


@pytest.mark.parametrize("profile", [KAFKA_4_0, KAFKA_4_4, INTENDED], ids=lambda each: each.name)
def test_a_pending_id_may_disappear_once(profile: Profile) -> None:
    wire = Classic()
    pending_id_is_gone(wire, 0, "a")
    assert verdict(wire, profile).outcome == "accepted"


@pytest.mark.parametrize(("later_ms", "outcome"), [(1_000, "refused"), (9_900, "refused"), (10_000, "accepted")])
def test_twice_only_one_interval_later(later_ms: int, outcome: str) -> None:
    wire = Classic()
    pending_id_is_gone(wire, 0, "a")
    pending_id_is_gone(wire, later_ms, "b")
    found = verdict(wire, interval_ms=10_000)
    assert found.outcome == outcome
    for refusal in found.refusals:
        assert refusal.line == len(wire.lines)  # the second one, not the first
        assert "error_code is UNKNOWN_MEMBER_ID; expected NONE, because the member is in the group" in refusal.sentence


def test_an_expiry_check_removes_all_pending_ids_together() -> None:
    wire = Classic()
    wire.pending(0, "a")
    wire.pending(10, "b")
    for at, client in ((20, "a"), (40, "b")):
        wire.refused(at + 10, client, wire.join(at, client, client, version=9), E.UNKNOWN_MEMBER_ID, client, version=9)
    assert verdict(wire).outcome == "accepted"


def test_an_empty_group_with_offsets_stays() -> None:
    """The offsets have not expired."""

    def deleted(*, offsets: bool) -> Classic:
        wire = Classic()
        wire.alone()
        wire.leave(20, "a")
        if offsets:
            wire.commit(30, E.NONE)
        wire.delete(40, E.GROUP_ID_NOT_FOUND)
        return wire

    assert verdict(deleted(offsets=False)).outcome == "accepted"
    (refusal,) = verdict(deleted(offsets=True)).refusals
    assert refusal.allowed == ("NONE",)


def test_a_group_in_an_open_transaction_stays() -> None:
    wire = Classic()
    wire.alone()
    wire.leave(20, "a")
    wire.commit(30, E.NONE, key=TXN_COMMIT)
    wire.delete(40, E.GROUP_ID_NOT_FOUND)
    assert verdict(wire).outcome == "accepted"  # the transaction may have begun long before, and be aborted now
    begun: dict[str, Any] = {"transactional_id": "p", "transaction_timeout_ms": 60_000}
    answer: dict[str, Any] = {"error_code": 0, "producer_id": 1, "producer_epoch": 0}
    about: dict[str, Any] = {"connection": 7, "correlation_id": 99, "api_key": 22, "api_version": 4}
    wire.lines[3:3] = [SentLine(at_ms=0, body=begun, **about), ReceivedLine(at_ms=0, body=answer, **about)]
    (refusal,) = verdict(wire).refusals
    assert refusal.allowed == ("NONE",)


def test_offsets_that_may_have_expired_keep_no_group() -> None:
    wire = Classic()
    wire.alone()
    wire.leave(20, "a")
    wire.commit(30, E.NONE)
    wire.delete(70_000, E.GROUP_ID_NOT_FOUND)
    assert verdict(wire).outcome == "refused"
    wire.settings = replace(SETTINGS, offsets_retention_ms=60_000)
    assert verdict(wire).outcome == "accepted"


def test_a_group_with_members_stays() -> None:
    wire = Classic()
    wire.alone()
    wire.heartbeat(20, "a", 1, E.UNKNOWN_MEMBER_ID)
    (refusal,) = verdict(wire).refusals
    assert refusal.allowed == ("NONE",)


def epochs_begin_again(wire: Wire, at: int, member: str, upto: int) -> None:
    """Let a new member join alone, at the first epoch, reach a later one, and leave."""
    wire.beat(at, member, 0, 1, parts(0, 1, 2, 3))
    for epoch in range(1, upto):
        topics = ("t", *[f"u{number}" for number in range(epoch)])
        wire.beat(at + 2_000 * epoch, member, epoch, epoch + 1, subscribed_topic_names=topics)
    wire.beat(at + 2_000 * upto, member, -1, -1)


@pytest.mark.parametrize(("interval_ms", "outcome"), [(60_000, "refused"), (10_000, "accepted")])
def test_a_consumer_group_counts_from_the_start_once_in_an_interval(interval_ms: int, outcome: str) -> None:
    wire = Wire()
    for at, member in ((0, "a"), (20_000, "b")):
        epochs_begin_again(wire, at, member, 3)
    assert verdict(wire, interval_ms=60_000).outcome == "accepted"
    epochs_begin_again(wire, 40_000, "c", 1)
    assert verdict(wire, interval_ms=interval_ms).outcome == outcome


def test_a_consumer_group_with_a_member_does_not_count_from_the_start() -> None:
    wire = Wire()
    epochs_begin_again(wire, 0, "a", 3)
    del wire.lines[-2:]  # it has not left
    wire.beat(6_000, "b", 0, 1, ())
    assert verdict(wire).outcome == "refused"
