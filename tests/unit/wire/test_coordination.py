"""A broker may answer NOT_COORDINATOR only while that is possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED, KAFKA_4_4
from fencepost.protocol.settings import Settings
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.coordination import COORDINATED, LOADS_MS, NODES
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ConnectedLine, DisconnectedLine, ReceivedLine, SentLine

NOT_COORDINATOR, LOADING, UNKNOWN_MEMBER, NOT_AVAILABLE = 16, 14, 25, 15
HEARTBEAT = {"group_id": "g", "generation_id": 1, "member_id": "x", "group_instance_id": None}
BEAT = {
    "group_id": "g", "member_id": "x", "member_epoch": 1, "instance_id": None, "rack_id": None,
    "rebalance_timeout_ms": -1, "subscribed_topic_names": None, "subscribed_topic_regex": None,
    "server_assignor": None, "topic_partitions": None,
}  # fmt: skip
JOIN = {
    "group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 5_000, "member_id": "x",
    "group_instance_id": None, "protocol_type": "consumer", "protocols": [], "reason": None,
}  # fmt: skip


@dataclass
class Wire:
    """A trace of one connection, with heartbeats of a member that is not in the group."""

    lines: list[Any] = field(default_factory=lambda: [ConnectedLine(at_ms=0, connection=1, server="broker:9092")])
    count: int = 0
    connection: int = 1

    def ask(self, at: int, key: int, version: int, ask: dict[str, Any], answer: dict[str, Any]) -> Wire:
        self.count += 1
        about: dict[str, Any] = {
            "connection": self.connection,
            "correlation_id": self.count,
            "api_key": key,
            "api_version": version,
        }
        self.lines += [SentLine(at_ms=at, body=ask, **about), ReceivedLine(at_ms=at + 5, body=answer, **about)]
        return self

    def beats(self, at: int, code: int) -> Wire:
        return self.ask(at, 12, 4, HEARTBEAT, {"error_code": code})

    def finds(self, at: int, code: int = 0, port: int = 9092) -> Wire:
        row = {"key": "g", "node_id": 1, "host": "broker", "port": port, "error_code": code, "error_message": None}
        return self.ask(at, 10, 4, {"key_type": 0, "coordinator_keys": ["g"]}, {"coordinators": [row]})

    def cut(self, at: int) -> Wire:
        self.lines += [
            DisconnectedLine(at_ms=at, connection=1, by="server"),
            ConnectedLine(at_ms=at, connection=1, server="broker:9092"),
        ]
        return self

    def verdict(self, profile: Profile = KAFKA_4_4, **provenance: str) -> Verdict:
        return check_trace(WireTrace(Settings(), profile, tuple(self.lines), provenance=tuple(provenance.items())))


@pytest.mark.parametrize("code", [NOT_COORDINATOR, LOADING, NOT_AVAILABLE])
def test_a_coordinator_that_has_answered_cannot_be_away_without_a_sign(code: int) -> None:
    refused = Wire().beats(100, UNKNOWN_MEMBER).beats(200, code).verdict()
    assert refused.outcome == "refused"
    assert refused.refusals[0].line == 5


@pytest.mark.parametrize("code", [NOT_COORDINATOR, LOADING])
def test_a_broker_that_closes_connections_may_have_to_load(code: int) -> None:
    wire = Wire().beats(100, UNKNOWN_MEMBER).cut(150).beats(200, code)
    assert wire.verdict().outcome == "accepted"
    wire.beats(300, UNKNOWN_MEMBER)
    assert wire.verdict().outcome == "accepted"
    assert wire.beats(400, code).verdict().outcome == "refused"


def test_a_broker_may_answer_not_coordinator_before_it_closes_connections() -> None:
    wire = Wire().beats(100, UNKNOWN_MEMBER).beats(200, NOT_COORDINATOR)
    assert wire.verdict().outcome == "refused"
    assert wire.cut(1_000).verdict().outcome == "accepted"


def test_but_not_for_ever() -> None:
    late = LOADS_MS + 1_000
    assert Wire().beats(100, UNKNOWN_MEMBER).cut(150).beats(late, NOT_COORDINATOR).verdict().outcome == "refused"


def test_a_search_that_fails_or_finds_another_broker_is_a_sign() -> None:
    known = Wire().beats(100, UNKNOWN_MEMBER)
    assert known.finds(150, NOT_AVAILABLE).beats(200, NOT_COORDINATOR).verdict().outcome == "accepted"
    moved = Wire().finds(50).beats(100, UNKNOWN_MEMBER).finds(150, port=9093).beats(200, NOT_COORDINATOR)
    assert moved.verdict().outcome == "accepted"
    stays = Wire().finds(50).beats(100, UNKNOWN_MEMBER).finds(150).beats(200, NOT_COORDINATOR)
    assert stays.verdict().outcome == "refused"


def test_a_coordinator_of_several_brokers_may_move() -> None:
    wire = Wire().beats(100, UNKNOWN_MEMBER).beats(200, NOT_COORDINATOR)
    assert wire.verdict(**{NODES: "3"}).outcome == "accepted"
    assert wire.verdict(**{NODES: "1"}).outcome == "refused"


def at(wire: Wire, connection: int, server: str) -> Wire:
    """Continue on another connection, to this broker."""
    wire.connection = connection
    wire.lines.append(ConnectedLine(at_ms=0, connection=connection, server=server))
    return wire


def test_a_coordinator_has_not_moved_between_two_answers_without_a_sign() -> None:
    """With several brokers: the same broker answers as the coordinator before and after."""

    def moved(between: Callable[[Wire], Wire], code: int = NOT_COORDINATOR) -> Verdict:
        wire = between(Wire().finds(20).beats(100, UNKNOWN_MEMBER)).beats(200, code)
        return wire.beats(300, UNKNOWN_MEMBER).verdict(**{NODES: "3"})

    for code in (NOT_COORDINATOR, LOADING):
        refused = moved(lambda wire: wire, code)
        assert (refused.outcome, refused.refusals[0].line) == ("refused", 7)
    assert moved(lambda wire: wire.finds(150)).outcome == "refused"
    assert moved(lambda wire: wire.finds(150, port=9093)).outcome == "accepted"
    assert moved(lambda wire: wire.finds(150, NOT_AVAILABLE)).outcome == "accepted"
    assert moved(lambda wire: wire.cut(150)).outcome == "accepted"
    elsewhere = moved(lambda wire: at(at(wire, 2, "other:9092").beats(150, UNKNOWN_MEMBER), 1, "broker:9092"))
    assert elsewhere.outcome == "accepted"


def test_a_search_that_names_the_same_broker_shows_that_it_has_not_moved() -> None:
    known = Wire().finds(20).beats(100, UNKNOWN_MEMBER).beats(200, NOT_COORDINATOR)
    assert known.verdict(**{NODES: "3"}).outcome == "accepted"  # the trace ends before any sign
    assert known.finds(250).verdict(**{NODES: "3"}).outcome == "refused"
    moved = Wire().finds(20).beats(100, UNKNOWN_MEMBER).beats(200, NOT_COORDINATOR).finds(250, port=9093)
    assert moved.verdict(**{NODES: "3"}).outcome == "accepted"


def test_another_broker_is_not_the_coordinator() -> None:
    """No answer has shown that it ever was."""
    wire = at(Wire().beats(100, UNKNOWN_MEMBER), 2, "other:9092").beats(200, NOT_COORDINATOR)
    assert at(wire, 1, "broker:9092").beats(300, UNKNOWN_MEMBER).verdict().outcome == "accepted"


def test_another_broker_takes_over() -> None:
    wire = at(Wire().beats(100, UNKNOWN_MEMBER).beats(200, NOT_COORDINATOR), 2, "other:9092").beats(300, UNKNOWN_MEMBER)
    assert wire.verdict().outcome == "accepted"


def test_the_header_names_the_coordinated_groups() -> None:
    wire = Wire().beats(100, NOT_COORDINATOR).beats(200, UNKNOWN_MEMBER)
    assert wire.verdict(**{NODES: "3"}).outcome == "accepted"
    assert wire.verdict(**{NODES: "3", COORDINATED: "g"}).outcome == "refused"


def test_a_fresh_broker_may_be_loading() -> None:
    assert Wire().beats(100, NOT_COORDINATOR).beats(200, UNKNOWN_MEMBER).verdict().outcome == "accepted"


def test_a_broker_that_only_answers_not_coordinator_is_undecided() -> None:
    """Case 13: an unknown group, and a single answer."""
    verdict = Wire().beats(100, NOT_COORDINATOR).verdict()
    assert verdict.outcome == "undecided"
    assert "each answer says that the broker is not the coordinator" in verdict.reason


@pytest.mark.parametrize(("key", "version", "ask", "answer"), [
    (12, 4, HEARTBEAT, {"error_code": 16}),
    (68, 1, BEAT, {"error_code": 16, "error_message": None, "member_id": None, "member_epoch": 0,
                   "heartbeat_interval_ms": 0, "assignment": None}),
    (11, 9, JOIN, {"error_code": 16, "generation_id": -1, "protocol_type": None, "protocol_name": None, "leader": "",
                   "skip_assignment": False, "member_id": "x", "members": []}),
    (42, 2, {"groups_names": ["g"]}, {"results": [{"group_id": "g", "error_code": 16}]}),
])  # fmt: skip
def test_a_broker_that_was_asked_before_the_trace_is_refused(key: int, version: int, ask: Any, answer: Any) -> None:
    wire = Wire().ask(100, key, version, ask, answer)
    assert wire.verdict().outcome == "undecided"
    refused = wire.verdict(**{NODES: "1", COORDINATED: "g h"})
    assert refused.outcome == "refused"
    assert refused.refusals[0].rules


def test_a_broker_stays_the_coordinator_of_a_consumer_group() -> None:
    left = {"error_code": UNKNOWN_MEMBER, "error_message": None, "member_id": None, "member_epoch": 0,
            "heartbeat_interval_ms": 0, "assignment": None}  # fmt: skip
    lost = {**left, "error_code": NOT_COORDINATOR}
    wire = Wire().ask(100, 68, 1, BEAT, left).ask(200, 68, 1, BEAT, lost)
    refused = wire.verdict()
    assert (refused.outcome, refused.refusals[0].rules) == ("refused", ("F-RT-02",))
    assert Wire().ask(100, 68, 1, BEAT, left).cut(150).ask(200, 68, 1, BEAT, lost).verdict().outcome == "accepted"


def test_a_group_in_its_first_rebalance_lets_members_of_the_new_protocol_wait() -> None:
    """The group has not selected a protocol yet; in Kafka this is an internal error (X-UP-07)."""
    joins = {**BEAT, "member_epoch": 0, "rebalance_timeout_ms": 5_000, "subscribed_topic_names": ["t"],
             "topic_partitions": []}  # fmt: skip
    again = {"error_code": LOADING, "error_message": None, "member_id": None, "member_epoch": 0,
             "heartbeat_interval_ms": 0, "assignment": None}  # fmt: skip
    required = {"error_code": 79, "generation_id": -1, "protocol_type": None, "protocol_name": None, "leader": "",
                "skip_assignment": False, "member_id": "y", "members": []}  # fmt: skip
    classic = {**JOIN, "member_id": "", "protocols": [{"name": "range", "metadata": ""}]}
    rebalancing = Wire().ask(100, 11, 9, classic, required).ask(200, 68, 1, joins, again)
    assert rebalancing.verdict(INTENDED).outcome == "accepted"
    assert rebalancing.verdict(KAFKA_4_4).outcome == "refused"
    only_consumers = Wire().ask(100, 68, 1, BEAT, {**again, "error_code": UNKNOWN_MEMBER}).ask(200, 68, 1, joins, again)
    assert only_consumers.verdict(INTENDED).outcome == "refused"
