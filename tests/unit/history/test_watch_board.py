"""The board of a watch, from records of a log alone: bounds on memory, unknown records, clocks, and reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from fencepost.protocol.consumer_records import (
    AssignedPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from fencepost.protocol.consumer_view import MemberState
from fencepost.protocol.records import Record
from fencepost_conformance.generate.plan import GroupProtocol
from fencepost_conformance.judge.history.events import Kind, Why
from fencepost_conformance.judge.history.one_pass import history_of
from fencepost_conformance.judge.watch.board import Board
from fencepost_conformance.judge.watch.rebalances import EVENTS
from fencepost_conformance.traces.live.look import Look
from fencepost_conformance.traces.offsets_log.follow import Piece
from fencepost_conformance.traces.offsets_log.rows import LogRow
from fencepost_server.observe.groups import GroupCounts
from fencepost_server.observe.rebalances import KEPT

from .logs import play, rows_of
from .test_input import BEGIN_MS, classic, commit, log


def board_of(*rows: LogRow, live: int | None = None, most: int = 1_000, names: tuple[str, ...] = ()) -> Board:
    """Return a board that has taken these records; the last ``live`` of them are new, or all."""
    board = Board(names, most, GroupCounts())
    board.take(Piece(0, restarted=True))
    board.take(Piece(0, rows, len(rows) if live is None else live))
    return board


def looked(board: Board, *groups: str) -> Board:
    """Let the board take a look that lists these groups without describing them."""
    board.looked(Look(dict.fromkeys(groups, "Empty")), 0.0, caught_up=True)
    return board


def numbers(board: Board, name: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in board.metrics(0.0) if line.startswith(name)]
    return {labels[len(name) :]: float(value) for labels, _, value in lines}


def gone(record: Record) -> Record:
    return replace(record, value=None)


def test_groups_above_the_limit_are_skipped_and_counted() -> None:
    board = looked(board_of(*log(*[commit(1, group=f"g{each % 50}") for each in range(200)]), most=5))
    assert len(board.lives) == 5
    assert "180 records of groups above --max-groups were skipped" in board.warnings()


def test_groups_that_are_not_shown_are_counted() -> None:
    board = looked(board_of(most=1), "a", "b", "c")
    assert board.warnings() == ["not shown, only counted: 3 groups; --max-groups sets how many are shown"]
    assert 'fencepost_groups{state="Empty"} 3' in [*board.metrics(0.0)]


def test_deleted_groups_and_offsets_are_forgotten() -> None:
    board = looked(
        board_of(*log(commit(1, 0), commit(1, 1), commit(1, group="h"), gone(commit(0, 0)), gone(commit(0, group="h"))))
    )
    assert {*board.lives} == {"g"}
    assert len(board.lives["g"].commits.committed) == 1
    board.take(Piece(0, tuple(rows_of([commit(7, group="h")], BEGIN_MS, 5)), 1))
    assert board.lives["h"].commits.total == 1
    generations = [classic(1, "a"), gone(classic(1))]
    assert looked(board_of(*log(*generations))).lives == {}


def test_events_and_rebalances_are_bounded_and_the_newest_stay() -> None:
    board = board_of(*log(*[classic(each, f"m{each}") for each in range(1, 2_000)]))
    assert len(board.rebalances.events(10**6)) < 2 * EVENTS
    assert len(board.rebalances.last(10**6)) < 2 * KEPT
    assert [each.generation for each in board.rebalances.last(KEPT)] == [*range(1_999, 1_999 - KEPT, -1)]
    assert len(board.rebalances.new) == EVENTS
    assert numbers(board, "fencepost_rebalances_total") == {"": 1_999}


def test_older_events_of_a_partition_that_is_read_later_do_not_displace_newer_ones() -> None:
    board = board_of(*log(*[classic(each, f"m{each}") for each in range(1, 10)]))
    old = [row for each in range(3 * EVENTS) for row in rows_of([commit(-each)], BEGIN_MS - 10**9 + each, each, 1)]
    board.take(Piece(1, tuple(old), 0))
    newest = board.rebalances.events(1)[0]
    assert (newest.at_ms, newest.group) == (BEGIN_MS + 8_000, "g")


def test_member_that_does_not_give_up_its_partitions_in_time_is_an_eviction() -> None:
    member = ConsumerGroupMemberMetadataValue(
        instance_id=None, rack_id=None, client_id="c", client_host="/h", subscribed_topic_names=("t",),
        subscribed_topic_regex="", rebalance_timeout_ms=1_000, server_assignor=None,
    )  # fmt: skip
    revokes = ConsumerGroupCurrentMemberAssignmentValue(
        1, previous_member_epoch=1, state=MemberState.UNREVOKED_PARTITIONS.value, assigned_partitions=(),
        partitions_pending_revocation=(AssignedPartitions(bytes(15) + b"1", (0,)),),
    )  # fmt: skip
    current, metadata = ConsumerGroupCurrentMemberAssignmentKey("g", "a"), ConsumerGroupMemberMetadataKey("g", "a")
    board = board_of(
        *log(
            Record(metadata, member),
            Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(1)),
            Record(current, revokes),
            Record(current, None),
            Record(metadata, None),
            Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(2)),
            step_ms=600,
        )
    )
    assert numbers(board, "fencepost_group_evictions_total") == {'{group="(other)"}': 1}
    assert board.rebalances.last(1)[0].reason == "rebalance timeout expired"


def test_only_new_records_are_counted() -> None:
    rows = log(classic(1, "a"), commit(5), classic(2, "a", "b"), commit(3))
    board = looked(board_of(*rows, live=2))
    assert numbers(board, "fencepost_rebalances_total") == {"": 1}
    assert numbers(board, "fencepost_group_commits_total") == {'{group="(other)"}': 1}
    assert [each.reason for each in board.rebalances.last(5)] == ["member joined", "member joined"]
    assert [each.event.kind for each in board.rebalances.new if not isinstance(each.event, str)] == [
        Kind.JOINED, Kind.GENERATION, Kind.COMMIT_BACK,
    ]  # fmt: skip


def test_partition_that_is_read_again_replaces_the_past() -> None:
    board = board_of(*log(classic(5, "a"), commit(5)))
    board.take(Piece(0, restarted=True))
    board.take(Piece(0, tuple(log(classic(1, "b"))), 1))
    life = board.lives["g"]
    assert (life.epoch, life.leader, life.commits.total, life.broken) == (1, "b", 0, 0)


def test_records_of_unknown_types_and_a_clock_that_runs_back_are_one_line_each() -> None:
    rows = [*log(commit(1), commit(2), step_ms=-60_000), LogRow(0, 2, BEGIN_MS, b"\x00\x63key", b"v")]
    rows.append(LogRow(0, 3, BEGIN_MS, b"\x00\x63other", b"v"))
    board = looked(board_of(*rows, *rows_of([commit(9)], BEGIN_MS, 4)), "g")
    assert [line for line in board.warnings() if "not shown" not in line] == [
        "the clock of the log ran back 1 time, by up to 60000 ms; durations there are too short",
        "2 records of unknown type 99 were skipped",
    ]
    assert board.lives["g"].commits.committed.popitem()[1].offset == 9


def test_problems_of_partitions_are_one_line_for_each_reason() -> None:
    board = board_of()
    board.problems = dict.fromkeys(range(50), "no right to read it")
    board.problems[7] = "UNKNOWN_SERVER_ERROR"
    assert board.warnings() == [
        "49 partitions of __consumer_offsets cannot be read now: no right to read it; history is missing",
        "partition 7 of __consumer_offsets cannot be read now: UNKNOWN_SERVER_ERROR; history is missing",
    ]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ((classic(1, "a"), classic(2, "a", "b")), Why.JOINED),
        ((classic(1, "a", "b"), classic(2, "a")), Why.GONE),
        ((classic(1, "a"), classic(2, "b")), Why.SEVERAL),
        ((classic(1, "a"), classic(2, "a")), Why.UNKNOWN),
    ],
)
def test_reason_of_a_classic_rebalance_is_the_difference_of_generations(
    records: tuple[Record, ...], reason: Why
) -> None:
    assert board_of(*log(*records)).rebalances.last(1)[0].reason == reason.value


@pytest.mark.parametrize("protocol", GroupProtocol)
def test_counts_are_those_of_the_history(protocol: GroupProtocol) -> None:
    """Random traces: the board hears what the history tells, and knows a cause exactly when the history does."""
    for seed in range(3):
        rows = [row._replace(at_ms=row.at_ms + BEGIN_MS) for row in next(iter(play(seed, protocol))).rows]
        board, history = board_of(*rows), history_of(rows, keep_events=True)
        looked(board)
        events = [each for group in history.groups for each in group.events]
        kinds = (Kind.BEGAN, Kind.GENERATION, Kind.EMPTY)
        expected = Counter(each.why.value for each in events if each.kind in kinds and each.why is not None)
        assert board.rebalances.total == sum(expected.values())
        assert Counter(each.reason for each in board.rebalances.last(KEPT)) == expected
        assert sum(numbers(board, "fencepost_group_commits_total").values()) == sum(
            each.commits for each in history.groups
        )
        fenced = [each for each in events if each.kind is Kind.GONE and each.why is Why.FENCED]
        assert sum(numbers(board, "fencepost_group_evictions_total").values()) == len(fenced)
        for each in events:
            if each.kind is Kind.BEGAN:
                assert (each.why is Why.UNKNOWN) == (each.cause == "the log does not show why")


def test_state_has_all_that_the_page_reads() -> None:
    board = looked(board_of(*log(classic(1, "a"), commit(1))), "g")
    state: dict[str, Any] = board.state(0.0, BEGIN_MS, "title")
    assert {"title", "lines", "notices", "groups", "groups_total", "rebalances"} <= state.keys()
    assert state["rebalances"][0]["cause"] == "a joined"
