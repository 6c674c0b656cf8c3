"""ListGroups agrees with the history of each group (C-ADM-04, C-ADM-05)."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost.protocol.errors import ErrorCode as E
from fencepost.protocol.messages import (
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from fencepost.protocol.profiles import KAFKA_4_4
from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.listings import ALL, LISTS
from fencepost_conformance.judge.checker.verdict import Verdict
from fencepost_conformance.traces.files import WireTrace
from fencepost_conformance.traces.lines import ReceivedLine, SentLine

from .test_scala import Classic
from .written import Wire, parts

STABLE = {"group_id": "g", "protocol_type": "consumer", "group_state": "Stable", "group_type": "classic"}
EMPTY = {**STABLE, "group_state": "Empty"}
KIP_848 = {**STABLE, "group_type": "consumer"}
STRANGER, OWN = 200, ord("a")
EITHER = {"states_filter": ["Assigning", "reconciling", " STABLE"]}


def lists(wire: Wire, at: int, asked: dict[str, Any], *rows: dict[str, Any], by: int = OWN) -> None:
    wire.asked += 1
    wire._line(SentLine, at, by, 16, 5, asked)
    wire._line(ReceivedLine, at + 5, by, 16, 5, {"error_code": 0, "groups": list(rows)})


def verdict(wire: Wire, *, sees_all: bool = False) -> Verdict:
    provenance = ((LISTS, ALL), ("coordinated", "g")) if sees_all else ()
    return check_trace(WireTrace(wire.settings, KAFKA_4_4, tuple(wire.lines), provenance=provenance))


def field(wire: Wire, *, sees_all: bool = False) -> str:
    """Return the errors; empty if the trace is accepted."""
    found = verdict(wire, sees_all=sees_all)
    assert found.outcome in {"accepted", "refused"}
    if found.outcome == "accepted":
        return ""
    (refusal,) = found.refusals
    assert refusal.line == len(wire.lines)
    assert refusal.difference is not None
    assert {"C-ADM-04", "C-ADM-05"}.intersection(refusal.rules)
    return refusal.difference.field


@pytest.mark.parametrize(
    ("asked", "rows", "wrong"),
    [
        ({}, [STABLE], ""),
        ({}, [STABLE, STABLE], ""),  # Kafka does so after a deletion that failed
        ({}, [], "groups"),
        ({}, [EMPTY], "groups[0].group_state"),
        ({}, [KIP_848], "groups[0].group_type"),
        ({}, [{**STABLE, "protocol_type": "connect"}], "groups[0].protocol_type"),
        ({}, [{**STABLE, "protocol_type": "share", "group_type": "share"}], ""),  # a group about which nothing is known
        ({"states_filter": ["stable"], "types_filter": ["Classic"]}, [], "groups"),
        ({"states_filter": ["Empty"]}, [], ""),
        ({"types_filter": ["consumer"]}, [], ""),
    ],
)
def test_a_classic_group_with_a_member_is_listed_as_classic(asked: Any, rows: list[Any], wrong: str) -> None:
    wire = Classic()
    wire.alone()
    lists(wire, 50, asked, *rows)
    assert field(wire) == wrong


def test_a_caller_that_may_not_see_the_group_sees_none() -> None:
    wire = Classic()
    wire.alone()
    lists(wire, 50, {}, by=STRANGER)
    assert field(wire) == ""
    assert field(wire, sees_all=True) == "groups"
    lists(wire, 60, {}, EMPTY, by=STRANGER)
    assert field(wire) == "groups[0].group_state"


def test_a_group_of_which_nothing_is_known_yet_may_be_any() -> None:
    wire = Classic()
    lists(wire, 0, {}, EMPTY)
    number = wire.join(10, "a")
    lists(wire, 15, {}, EMPTY)
    wire.joined(30, "a", number, 1, "a", "a")
    assert field(wire, sees_all=True) == ""


@pytest.mark.parametrize(("rows", "wrong"), [([], ""), ([EMPTY], "groups")])
def test_a_classic_group_that_was_deleted_is_not_listed(rows: list[Any], wrong: str) -> None:
    wire = Classic()
    wire.alone()
    wire.leave(20, "a")
    lists(wire, 30, {}, EMPTY)
    wire.delete(40)
    lists(wire, 50, {}, *rows)
    assert field(wire) == wrong


@pytest.mark.parametrize("state", ["", "Empty", "Stable", "PreparingRebalance"])
def test_during_a_deletion_a_group_may_be_listed_in_any_earlier_state(state: str) -> None:
    wire = Classic()
    wire.alone()
    rows = (ListedGroup("g", protocol_type="consumer", group_state=state, group_type="classic"),)
    wire.asked += 1
    number = wire.asked
    wire.send(15, OWN, 16, 5, ListGroupsRequest())
    wire.leave(20, "a")
    wire.delete(40)
    wire.answer(60, OWN, 16, 5, number, ListGroupsResponse(E.NONE, rows if state else ()))
    assert field(wire) == ("groups[0].group_state" if state == "PreparingRebalance" else "")


@pytest.mark.parametrize(
    ("asked", "rows", "wrong"),
    [
        ({}, [KIP_848], ""),
        ({}, [{**KIP_848, "group_state": "Assigning"}], ""),
        ({}, [], "groups"),
        ({}, [{**KIP_848, "group_state": "Empty"}], "group_state"),
        ({}, [STABLE], "groups[0].group_type"),
        (EITHER, [], "groups"),
        ({"states_filter": ["Stable"]}, [], ""),  # it may be in another state
        ({"types_filter": ["classic"]}, [], ""),
        ({"types_filter": ["CONSUMER"]}, [], "groups"),
    ],
)
def test_a_consumer_group_with_a_member_is_listed(asked: Any, rows: list[Any], wrong: str) -> None:
    wire = Wire()
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    lists(wire, 50, asked, *rows)
    assert field(wire) == wrong


def deletes(wire: Wire, at: int) -> None:
    answer = DeleteGroupsResponse((DeletedGroup("g", E.NONE),))
    wire.exchange(at, 8, 42, 2, DeleteGroupsRequest(("g",)), answer)


@pytest.mark.parametrize(("rows", "wrong"), [([], ""), ([KIP_848], "groups")])
def test_a_consumer_group_that_was_deleted_is_not_listed(rows: list[Any], wrong: str) -> None:
    wire = Wire()
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(20, "a", -1, -1)
    deletes(wire, 40)
    lists(wire, 50, {}, *rows)
    assert field(wire) == wrong


def test_a_deleted_group_may_come_again_at_the_same_time() -> None:
    wire = Wire()
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    wire.beat(20, "a", -1, -1)
    join = wire.ask(30, "b", 0)
    deletes(wire, 40)
    lists(wire, 50, {}, KIP_848)
    assert field(wire) == ""
    wire.respond(60, join, 2, parts(0, 1, 2, 3))
    wire.beat(70, "b", -1, -1)
    deletes(wire, 80)
    wire.ask(90, "c", 0)
    lists(wire, 95, {}, KIP_848)
    assert field(wire) == ""


def test_a_group_that_is_not_listed_has_no_members() -> None:
    """When the session of a may be over, the list shows whether it is (M-VAL-20)."""
    wire = Wire()
    wire.beat(0, "a", 0, 2, parts(0, 1, 2, 3))
    lists(wire, 5_990, {})
    assert field(wire) == ""
    wire.beat(6_100, "a", 2, 2)
    assert "UNKNOWN_MEMBER_ID" in wire.refusal().allowed


def test_one_broker_of_several_need_not_list_the_group() -> None:
    """A broker lists the groups that it coordinates (C-ADM-05)."""
    wire = Classic()
    wire.alone()
    lists(wire, 50, {})
    provenance = (("nodes", "2"), (LISTS, ALL))
    assert (
        check_trace(WireTrace(wire.settings, KAFKA_4_4, tuple(wire.lines), provenance=provenance)).outcome == "accepted"
    )
