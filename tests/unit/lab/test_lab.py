"""The engine of the laboratory: actions, determinism, going back, and what a view shows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fencepost_conformance.generate.lab import ActionError, Lab, Protocol, Start, parse_actions, parse_start
from fencepost_conformance.generate.lab.journal import Kind
from fencepost_conformance.generate.lab.ownership import Ownership
from fencepost_conformance.run.lab.sessions import Sessions
from fencepost_conformance.show.lab.view import view_of

Actions = list[dict[str, Any]]


def start(name: str, protocol: str = "consumer", **more: Any) -> dict[str, Any]:
    return {"do": "start", "client": name, "protocol": protocol, **more}


def run(ms: int) -> dict[str, Any]:
    return {"do": "run", "ms": ms}


def played(actions: Actions, **changes: Any) -> Lab:
    return Lab(parse_start(changes)).play(parse_actions(actions))


def viewed(actions: Actions, **changes: Any) -> dict[str, Any]:
    return view_of(played(actions, **changes))


#: every action, with its fields
EVERYTHING: Actions = [
    start("c1"),
    run(3_000),
    start("c2", static=True),
    {"do": "step"},
    {"do": "lose"},
    {"do": "change"},
    {"do": "grow", "by": 2},
    run(4_000),
    {"do": "step"},
    {"do": "delay", "ms": 700},
    {"do": "fail-append"},
    run(3_000),
    {"do": "slow", "client": "c2", "ms": 900},
    {"do": "timeouts", "changes": {"session_ms": 8_000}},
    run(1_999),
    {"do": "step"},
    {"do": "freeze", "client": "c1", "ms": 12_000},
    {"do": "crash", "client": "c2"},
    {"do": "move", "ms": 500},
    run(9_000),
    start("c2", static=True),
    run(9_000),
    {"do": "stop", "client": "c2"},
    run(5_000),
]


@pytest.mark.parametrize("protocol", list(Protocol))
def test_clients_join_share_and_leave(protocol: str) -> None:
    lab = played([start("c1", protocol), run(8_000), start("c2", protocol), run(20_000)])
    assert {len(owners) for owners in lab.owners().values()} == {1}
    assert {name for owners in lab.owners().values() for name in owners} == {"c1", "c2"}
    lab.play(parse_actions([{"do": "stop", "client": "c1"}, run(15_000)]))
    assert set(lab.owners().values()) == {("c2",)}
    assert not lab.client("c1").running
    assert [row for row in lab.journal.rows if row.kind is Kind.ALERT] == []


@pytest.mark.parametrize("protocol", list(Protocol))
def test_the_partitions_of_a_crashed_client_are_without_an_owner_for_its_session(protocol: str) -> None:
    lab = played(
        [start("c1", protocol), run(3_000), start("c2", protocol), run(20_000), {"do": "crash", "client": "c1"}]
    )
    before = lab.ownership.unowned_ms(lab.now)
    lab.play(parse_actions([run(30_000)]))
    assert set(lab.owners().values()) == {("c2",)}
    unowned = lab.ownership.unowned_ms(lab.now) - before
    assert 3 * 6_000 <= unowned <= 6 * 16_000  # three partitions at least until the session ends


def test_a_poll_interval_that_passes_takes_the_partitions() -> None:
    view = viewed([start("c1"), run(5_000), {"do": "freeze", "client": "c1", "ms": 40_000}, run(25_000)])
    assert (view["group"]["state"], view["clients"][0]["state"]) == ("Empty", "Stale")


def test_a_static_client_that_returns_in_time_moves_nothing() -> None:
    lab = played([start("c1", "eager", static=True), start("c2", "eager", static=True), run(15_000)])
    moved, group = lab.ownership.moved, lab.core.groups["billing"].generation_id
    lab.play(parse_actions([{"do": "stop", "client": "c2"}, run(3_000), start("c2", "eager", static=True), run(9_000)]))
    assert (lab.ownership.moved, lab.core.groups["billing"].generation_id) == (moved, group)
    assert {len(owners) for owners in lab.owners().values()} == {1}


def test_offsets_are_committed_and_read_by_the_next_owner() -> None:
    view = viewed([start("c1"), run(12_000), {"do": "stop", "client": "c1"}, run(2_000), start("c2"), run(3_000)])
    assert view["counters"]["repeated"] == 0
    assert all(row["position"][0] == "c2" and row["position"][1] > row["committed"] > 50 for row in view["offsets"])
    crashed = viewed([start("c1"), run(12_000), {"do": "crash", "client": "c1"}, run(14_000), start("c2"), run(3_000)])
    assert crashed["counters"]["repeated"] > 0


def test_new_partitions_are_assigned() -> None:
    for protocol in Protocol:
        lab = played([start("c1", protocol), run(5_000), {"do": "grow", "by": 3}, run(15_000)])
        assert set(lab.owners()) == set(range(9)), protocol
        assert set(lab.owners().values()) == {("c1",)}, protocol


def test_a_lost_message_does_not_arrive_and_is_sent_again() -> None:
    lab = played([start("c1"), {"do": "step"}, {"do": "lose"}, run(6_000)])
    assert [message.fate.value for message in lab.journal.messages][:2] == ["lost", "arrived"]
    assert set(lab.owners().values()) == {("c1",)}


def test_a_delayed_message_arrives_later_and_a_repeated_one_twice() -> None:
    first = [start("c1"), run(41)]
    lab = played([*first, {"do": "delay", "ms": 1_000}, run(3_000)])
    request = lab.journal.message(1)
    assert next(row.at_ms for row in lab.journal.rows if row.message == 1) == request.sent_ms + 20 + 1_000
    lab = played([*first, {"do": "repeat"}, run(3_000)])
    again = lab.journal.message(2)
    assert again.copy
    assert (again.body, again.fate.value) == (lab.journal.message(1).body, "arrived")


def test_a_failed_append_is_answered_with_an_error() -> None:
    lab = played([start("c1"), {"do": "fail-append"}, run(81)])
    view = view_of(lab)
    assert any("append fails" in row["text"] for row in view["rows"])
    assert any(row["bad"] and "COORDINATOR_NOT_AVAILABLE" in row["text"] for row in view["rows"])


def test_the_coordinator_moves() -> None:
    lab = played([start("c1"), run(5_000), {"do": "move", "ms": 1_000}, run(500)])
    assert view_of(lab)["active"] is False
    lab.play(parse_actions([run(10_000)]))
    assert (lab.broker.leader_epoch, set(lab.owners().values())) == (2, {("c1",)})


def test_timeouts_change() -> None:
    change = {"do": "timeouts", "changes": {"heartbeat_ms": 500}}
    slow, quick = viewed([start("c1"), run(20_000)]), viewed([start("c1"), change, run(20_000)])
    assert quick["counters"]["requests"] > 2 * slow["counters"]["requests"]


def test_the_same_actions_give_the_same_view() -> None:
    once, again = viewed(EVERYTHING), viewed(EVERYTHING)
    assert json.dumps(once) == json.dumps(again)
    assert once != viewed(EVERYTHING, delay_ms=30)


def test_everything_is_played() -> None:
    from fencepost_conformance.generate.lab.actions import FORMS  # noqa: PLC0415

    assert {action["do"] for action in EVERYTHING} | {"repeat"} == {*FORMS}


def test_a_list_that_grows_gives_the_view_of_the_whole_list() -> None:
    sessions = Sessions()
    for length in range(len(EVERYTHING) + 1):
        actions = parse_actions(EVERYTHING[:length])
        assert json.dumps(view_of(sessions.lab(Start(), actions))) == json.dumps(viewed(EVERYTHING[:length]))


def test_a_run_that_grows_is_one_run() -> None:
    sessions = Sessions()
    for ms in (100, 1_000, 5_000):
        lab = sessions.lab(Start(), parse_actions([start("c1"), run(ms)]))
        assert json.dumps(view_of(lab)) == json.dumps(viewed([start("c1"), run(ms)]))


@pytest.mark.parametrize("more", [[], [run(5_000)]])
def test_going_back_and_another_way(more: Actions) -> None:
    sessions, common = Sessions(), [start("c1"), run(4_000), start("c2"), run(9_000)]
    crash, stop = ([*common, {"do": do, "client": "c1"}, *more] for do in ("crash", "stop"))
    views = [view_of(sessions.lab(Start(), parse_actions(each))) for each in (crash, common, stop, crash)]
    assert views[0] == views[3] == viewed(crash)
    assert (views[1], views[2]) == (viewed(common), viewed(stop))


def test_a_client_that_starts_again_is_a_new_member() -> None:
    lab = played([start("c1"), run(3_000), {"do": "crash", "client": "c1"}, start("c1"), run(200)])
    assert [member.member_id for member in lab.core.consumer_groups["billing"].members] == ["c1.1", "c1.2"]


def test_the_answer_to_a_repeated_request_is_dropped() -> None:
    lab = played([start("c1", "eager"), run(41), {"do": "repeat"}, run(3_000)])
    assert lab.journal.message(2).copy
    asked = [message.asked for message in lab.journal.messages]
    assert (1 in asked, 2 in asked) == (True, False)


@pytest.mark.parametrize(
    ("actions", "reason"),
    [
        ({}, "actions must be a list (got dict)"),
        ([{"do": "fly"}], "actions[0]: unknown action 'fly'; there are start, stop"),
        ([7], "actions[0]: unknown action None"),
        ([{"do": "start", "client": "c1"}], "actions[0]: start needs the field 'protocol'"),
        ([{"do": "step", "ms": 5}], "actions[0]: step has no field 'ms'"),
        ([{"do": "run", "ms": 0}], "actions[0].ms must be an integer from 1 to 600000 (got 0)"),
        ([{"do": "run", "ms": True}], "actions[0].ms must be an integer from 1 to 600000 (got True)"),
        ([start("C 1")], "actions[0].client must be 1 to 12 of a-z, 0-9 and '-', a letter first (got 'C 1')"),
        ([start("c1", "stream")], "actions[0].protocol must be one of eager, cooperative, consumer (got 'stream')"),
        ([start("c1", static="yes")], "actions[0].static must be true or false (got 'yes')"),
        ([{"do": "timeouts", "changes": {"x": 1}}], "changes must set some of session_ms, heartbeat_ms"),
        ([{"do": "timeouts", "changes": {}}], "changes must set some of session_ms"),
        ([{"do": "step"}] * 2_001, "a session has at most 2000 actions (got 2001)"),
        ([{"do": "crash", "client": "c9"}], "actions[0]: there is no client 'c9' (clients: none)"),
        ([start("c1"), start("c1")], "actions[1]: client 'c1' already runs; stop or crash it first"),
        ([start("c1"), {"do": "crash", "client": "c1"}, {"do": "stop", "client": "c1"}],
         "actions[2]: client 'c1' does not run; start it first"),
        ([{"do": "lose"}], "actions[0]: no message is on its way; step until one is sent"),
        ([start("c1"), {"do": "step"}, {"do": "delay", "ms": 1, "message": 99}], "no message 99 is on its way"),
        ([{"do": "move", "ms": 50}, {"do": "move", "ms": 50}], "actions[1]: the coordinator is already moving"),
        ([{"do": "grow", "by": 12}, {"do": "grow", "by": 12}], "at most 24 partitions (it has 18)"),
        ([{"do": "step"}], "actions[0]: nothing happens within 120 s; act, or start a client"),
        ([start("c1"), run(9_000), {"do": "change"}], "actions[2]: nothing but routine happens within 120 s"),
        ([run(600_000)] * 4, "actions[3]: a session lasts at most 30 minutes of virtual time"),
        ([start(f"c{number}") for number in range(9)], "actions[8]: a session has at most 8 clients"),
        ([{"do": "timeouts", "changes": {"heartbeat_ms": 10_000}}], "heartbeat_ms must be less than session_ms"),
    ],
)  # fmt: skip
def test_a_wrong_action_is_one_clear_line(actions: Any, reason: str) -> None:
    with pytest.raises(ActionError) as raised:
        Lab(Start()).play(parse_actions(actions))
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([], "start must be an object (got list)"),
        ({"color": 1}, "start has no field 'color'; it has seed, profile"),
        ({"partitions": 0}, "start.partitions must be an integer from 1 to 24 (got 0)"),
        ({"profile": "kafka-9"}, "start.profile must be one of kafka-4.0, kafka-4.1"),
        ({"profile": ["kafka-4.3"]}, "start.profile must be one of"),
        ({"heartbeat_ms": 9_000, "session_ms": 5_000}, "start.heartbeat_ms must be less than start.session_ms"),
    ],
)
def test_a_wrong_start_is_one_clear_line(data: Any, reason: str) -> None:
    with pytest.raises(ActionError) as raised:
        parse_start(data)
    assert reason in str(raised.value)


def test_rows_show_rules_and_what_another_release_does() -> None:
    view = viewed(EVERYTHING, profile="kafka-4.3", other="kafka-4.4")
    rows = [row for row in view["rows"] if row["rules"]]
    assert all(text for row in rows for rule, text in row["rules"] if rule.startswith(("M-", "N-")))
    differences = {(each["release"], each["switch"]) for row in rows for each in row["differences"]}
    assert ("kafka-4.3", "fault_relabelled_instance_stays") in differences
    assert not any(row["differences"] for row in viewed(EVERYTHING, profile="kafka-4.3", other="kafka-4.3")["rows"])
    joining = next(row for row in rows if "Joining → " in row["text"])
    assert "N-ST-21" in [rule for rule, _ in joining["rules"]]


def test_ownership_is_counted() -> None:
    seen = Ownership()
    for now, owners in ((0, ()), (5, ("a",)), (9, ()), (14, ("a",)), (20, ("b",)), (22, ("b", "a")), (25, ("b",))):
        seen.observe(now, {0: owners})
    assert (seen.unowned_ms(30), seen.shared_ms(30), seen.moved, seen.returned) == (5, 3, 2, 1)
    assert [each.owners for each in seen.strips[0]] == [(), ("a",), (), ("a",), ("b",), ("b", "a"), ("b",)]
