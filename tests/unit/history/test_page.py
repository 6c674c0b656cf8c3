"""The page of a history with thousands of rebalances stays small, and its links lead to rows."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from fencepost.member.consumer_protocol import Assignment, encode_assignment
from fencepost.member.partitions import TopicPartition
from fencepost.protocol.records import GroupMetadataKey, GroupMetadataMember, GroupMetadataValue, Record
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.show.history.page import history_page
from fencepost_conformance.show.history.words import COLUMNS
from fencepost_server.look.made import Made

from .logs import rows_of

BEGIN_MS = 1_767_323_040_000
STEP_MS = 10_000


def generation(number: int, at_ms: int) -> Record:
    """Return the record of a generation in which a new member gets the partition t-0; it took a second."""
    given = encode_assignment(Assignment((TopicPartition("t", 0),)))
    member = GroupMetadataMember(
        f"m-{number}", group_instance_id=None, client_id="c", client_host="/h", rebalance_timeout=9, session_timeout=9,
        subscription=b"", assignment=given,
    )  # fmt: skip
    value = GroupMetadataValue(
        "consumer", generation=number, protocol="range", leader=member.member_id, current_state_timestamp=at_ms - 1_000,
        members=(member,),
    )  # fmt: skip
    return Record(GroupMetadataKey("g"), value)


@cache
def page_of(generations: int) -> str:
    times = [(number, BEGIN_MS + number * STEP_MS) for number in range(1, generations + 1)]
    rows = [row for number, at_ms in times for row in rows_of([generation(number, at_ms)], at_ms, number)]
    history = history_of(rows, "g")
    assert history.groups[0].rebalances == generations
    return history_page(history, history.groups[0], [], Made("1.2.3", "", "today", "a test")).split("<script>")[0]


def test_the_picture_does_not_grow_with_the_number_of_rebalances() -> None:
    """What is too narrow to be seen is drawn with its neighbours."""
    few, some, many = (page_of(count).count("<rect") for count in (20, 900, 4_000))
    assert few == 1 + 20 + 20
    assert many < some + 50 < 1_000
    assert "rebalances to 1 … " in page_of(4_000)
    assert many > 200
    assert re.search(r"t-0: \d\d owners, ", page_of(4_000))
    assert re.search(r'<rect data-about="\[[^]]*m-3999', page_of(4_000))


def test_the_legend_has_some_of_many_members() -> None:
    assert page_of(20).count('class="swatch') == 20
    assert page_of(900).count('class="swatch') == 20
    assert "and 880 more members" in page_of(900)
    assert "too short to draw" in page_of(900)
    assert "too short to draw" not in page_of(20)


def test_each_bar_of_a_rebalance_leads_to_a_row_of_the_page() -> None:
    for count in (20, 4_000):
        rows = set(re.findall(r' id="(o\d+)"', page_of(count)))
        links = re.findall(r'href="#(o\d+)"', page_of(count))
        assert links
        assert set(links) <= rows


def test_events_are_in_tables_of_a_hundred() -> None:
    parts = page_of(4_000).split('<div class="part">')[1:]
    sizes = [part.count("<tr") for part in parts]
    assert sum(sizes) == 5_000
    assert set(sizes) == {100}


def test_thousands_of_groups_are_in_tables_of_a_hundred() -> None:
    rows = [
        row
        for number in range(250)
        for row in rows_of([replace(generation(1, BEGIN_MS), key=GroupMetadataKey(f"g-{number}"))], BEGIN_MS, number)
    ]
    page = history_page(history_of(rows), None, [], Made("1.2.3", "", "today", "a test"))
    parts = page.split('<div class="part">')[1:]
    assert [part.count("<tr data-about") for part in parts] == [100, 100, 50]
    assert parts[0].count("<td class=n>") == 100 * (len(COLUMNS) - 3)
    assert page.count("<th class=n>") == len(COLUMNS) - 3
