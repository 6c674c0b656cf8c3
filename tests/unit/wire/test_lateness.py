"""Late timers of a broker that is slow in every respect are accepted; those of a prompt broker are not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.protocol import messages as m
from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .test_scala import FETCH, HEARTBEAT, SETTINGS, Classic
from .written import Wire, parts

SLOW, AT_MS = 2, 7_000


def verdict(wire: Wire) -> Verdict:
    lines = tuple(sorted(wire.lines, key=lambda line: line.at_ms))  # lines of one time in the order of writing
    return check_trace(WireTrace(wire.settings, KAFKA_4_4, lines))


def stranger(wire: Wire, sent: int, answered: int) -> None:
    """Send a Heartbeat for another group, which no coordinator delays."""
    wire.asked += 1
    wire.send(sent, SLOW, HEARTBEAT, 4, m.HeartbeatRequest("h", generation_id=1, member_id="x"))
    wire.answer(answered, SLOW, HEARTBEAT, 4, wire.asked, m.HeartbeatResponse(E.UNKNOWN_MEMBER_ID))


def late_session(heard_ms: int) -> Classic:
    """A session of 6 s begins at 10 ms, and its member is still present at this time. 3 s are allowed."""
    wire = Classic()
    wire.alone(session=6_000)
    wire.heartbeat(heard_ms, "a", 1)
    return wire


@pytest.mark.parametrize(
    ("heard_ms", "took_ms", "outcome"),
    [
        (9_000, 5, "accepted"),
        (11_000, 5, "refused"),
        (9_500, 900, "refused"),  # still prompt
        (9_500, 1_100, "undecided"),
        (11_000, 3_500, "undecided"),
        (20_000, 3_500, "refused"),  # later than the slow answer explains
    ],
)
def test_a_session_that_ends_late(heard_ms: int, took_ms: int, outcome: str) -> None:
    wire = late_session(heard_ms)
    stranger(wire, heard_ms - took_ms - 10, heard_ms - 10)
    assert verdict(wire).outcome == outcome


def test_the_sentence_names_the_slow_answer_and_the_remedy() -> None:
    wire = late_session(11_000)
    stranger(wire, AT_MS, AT_MS + 3_700)
    found = verdict(wire)
    assert (found.outcome, found.line) == ("undecided", 8)
    assert "Heartbeat v4 on connection 2 was answered after 3700 ms; play fewer" in found.reason
    assert "--concurrency" in found.reason


def test_a_request_without_an_answer_is_slow_too() -> None:
    wire = late_session(11_000)
    wire.asked += 1
    wire.send(AT_MS, SLOW, HEARTBEAT, 4, m.HeartbeatRequest("h", generation_id=1, member_id="x"))
    assert verdict(wire).outcome == "undecided"


def test_a_delay_long_ago_explains_nothing() -> None:
    wire = late_session(11_000)
    stranger(wire, 1_000, AT_MS)
    assert verdict(wire).outcome == "refused"


def test_another_fault_behind_it_is_refused() -> None:
    wire = late_session(11_000)
    stranger(wire, AT_MS, 10_900)
    wire.heartbeat(12_000, "a", 1, E.FENCED_INSTANCE_ID)
    found = verdict(wire)
    assert (found.outcome, found.refusals[0].line) == ("refused", len(wire.lines))


@pytest.mark.parametrize(("took_ms", "outcome"), [(5, "refused"), (3_500, "undecided")])
def test_an_answer_that_comes_late(took_ms: int, outcome: str) -> None:
    """Two joins are answered by one generation, the second one 4 s after the first."""
    wire = Classic()
    first, second = wire.join(0, "a"), wire.join(1, "b")
    wire.joined(10, "a", first, 1, "a", "a")
    again = wire.join(20, "a", "a")
    wire.joined(30, "a", again, 2, "a", "a", "b")
    wire.joined(4_500, "b", second, 2, "a")
    stranger(wire, 4_400 - took_ms, 4_400)
    assert verdict(wire).outcome == outcome


@pytest.mark.parametrize(("took_ms", "outcome"), [(5, "refused"), (3_500, "undecided")])
def test_a_session_of_the_consumer_protocol_that_ends_late(took_ms: int, outcome: str) -> None:
    wire = Wire()
    wire.beat(0, "a", 0, 1, parts(0, 1, 2, 3))
    stranger(wire, 9_900 - took_ms, 9_900)
    wire.beat(10_000, "a", 1, 1)
    assert verdict(wire).outcome == outcome


@pytest.mark.parametrize(("appeared_ms", "outcome"), [(1_000, "refused"), (3_000, "undecided")])
def test_a_coordinator_that_learns_late_that_a_topic_has_grown(appeared_ms: int, outcome: str) -> None:
    """The topic took as long to appear when it was created, which no request of a member shows (A-PROP-01)."""
    wire = Wire()
    for at_ms, error in ((10, E.UNKNOWN_TOPIC_OR_PARTITION), (appeared_ms, E.NONE)):
        wire.asked += 1
        wire._line(SentLine, at_ms - 5, 1, 3, 12, {"topics": [{"name": "t"}]})
        wire._line(ReceivedLine, at_ms, 1, 3, 12, {"topics": [{"name": "t", "error_code": int(error)}]})
    wire.asked += 1
    wire._line(SentLine, 10_000, 1, 37, 3, {"topics": [{"name": "t", "count": 5}], "validate_only": False})
    wire._line(ReceivedLine, 10_010, 1, 37, 3, {"results": [{"name": "t", "error_code": 0}]})
    wire.beat(10_020, "a", 0, 2, parts(0, 1, 2, 3))
    for at_ms in range(10_500, 17_001, 500):
        wire.beat(at_ms, "a", 2, 2)
    found = verdict(wire)
    assert found.outcome == outcome
    if outcome == "undecided":
        assert f"topic 't' appeared in Metadata {appeared_ms} ms after CreateTopics was answered" in found.reason


@pytest.mark.parametrize(("took_ms", "outcome"), [(5, "refused"), (3_500, "undecided")])
def test_an_offset_that_expires_late(took_ms: int, outcome: str) -> None:
    """The commit asked for 1 s, in a group that checks each second."""
    wire = Classic()
    wire.settings = replace(SETTINGS, offsets_retention_ms=1_000, offsets_retention_check_interval_ms=1_000)
    wire.commit(0, E.NONE)
    stranger(wire, 6_900 - took_ms, 6_900)
    topics = [{"name": "t", "partition_indexes": [0]}]
    wire.about_offsets(7_000, FETCH, 7, {"group_id": "g", "topics": topics, "require_stable": False}, None)
    row = {"partition_index": 0, "committed_offset": 5, "committed_leader_epoch": -1, "metadata": "", "error_code": 0}
    wire._line(ReceivedLine, 7_005, 7, FETCH, 7, {"error_code": 0, "topics": [{"name": "t", "partitions": [row]}]})
    assert verdict(wire).outcome == outcome
