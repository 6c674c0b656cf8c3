"""One copy of a log, and two copies: epochs, high watermark, truncation, and the point where copies differ."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost import log as lg
from fencepost.protocol.records import GroupMetadataKey, Record


def a(*names: str) -> list[Record]:
    return [Record(GroupMetadataKey(name), None) for name in names]


def names(log: lg.PartitionLog) -> str:
    return "".join(record.key.group for record in log.records)


def written(*batches: tuple[int, str]) -> lg.PartitionLog:
    log = lg.PartitionLog()
    for epoch, keys in batches:
        log = lg.append(log, a(*keys), epoch)
    return log


def test_a_leader_that_is_over_appends_nothing() -> None:
    """F-CONS-07."""
    log = lg.lead(written((1, "ab")), 2)
    with pytest.raises(lg.FencedEpoch):
        lg.append(log, a("c"), 1)
    with pytest.raises(lg.FencedEpoch):
        lg.lead(log, 1)
    assert names(lg.append(log, a("c"), 2)) == "abc"


def test_the_high_watermark_follows_the_slowest_copy_and_never_decreases() -> None:
    log = written((1, "abc"))
    assert lg.high_watermark(log, (3, 1, 2)) == 1
    log = lg.replicated(log, 2)
    assert lg.replicated(log, 1).committed == 2
    assert lg.high_watermark(log, (0,)) == 2
    with pytest.raises(lg.BehindLog):
        lg.replicated(log, 4)


def test_replicated_records_are_not_cut_and_batches_are_not_torn() -> None:
    """F-SURV-01, F-RT-05."""
    log = lg.replicated(written((1, "ab"), (1, "cd"), (2, "e")), 2)
    assert names(lg.truncate(log, 4)) == "abcd"
    assert lg.truncate(log, 4).epochs == (lg.Epoch(1, 0),)
    for kept, offset in ((log, 3), (lg.replicated(log, 4), 2)):
        with pytest.raises(lg.BehindLog):
            lg.truncate(kept, offset)


def test_a_follower_drops_records_that_another_leader_never_got() -> None:
    """A record whose write timed out is in the log until a fail-over to a copy without it (F-RT-09)."""
    behind = written((1, "ab"))
    old, new = lg.append(behind, a("x"), 1), lg.append(behind, a("y", "z"), 2)
    assert lg.parting(old, new) == 2
    assert names(lg.catch_up(old, new)) == "abyz"
    assert lg.catch_up(old, new).epochs == new.epochs
    with pytest.raises(lg.FencedEpoch):
        lg.catch_up(new, old)


def test_a_follower_that_has_all_keeps_it_although_it_knows_of_no_watermark() -> None:
    leader = lg.replicated(written((1, "ab"), (1, "c")), 3)
    follower = lg.catch_up(lg.PartitionLog(), written((1, "ab"), (1, "c")))
    assert (follower.committed, names(lg.catch_up(follower, lg.lead(leader, 2)))) == (0, "abc")
    assert names(lg.catch_up(follower, lg.lead(leader, 2), 0)) == "abc"  # truncated and not yet fetched
    assert lg.catch_up(follower, leader).committed == 3


def test_a_reader_continues_behind_compacted_records() -> None:
    log = written((1, "ab"), (1, "ac"))
    log = lg.compact(lg.replicated(log, 4), 0)
    assert [row.offset for row in lg.read(log, 0)] == [1, 2, 3]
    assert [row.offset for row in lg.read(log, 0, 1)] == [1]
    assert [row.offset for row in lg.read(log, 3)] == [3]


@given(st.data())
def test_copies_that_elect_and_fetch_lose_nothing_that_is_replicated(data: st.DataObject) -> None:
    """There are three copies, and every leader has the replicated records. A record below the high watermark keeps its
    place, and in the end all copies equal the leader's, compacted or not."""
    copies = [lg.PartitionLog() for _ in range(3)]
    kept: dict[int, Record] = {}
    leader, epoch, number = 0, 1, 0
    led = {0: 1}  #: the last epoch in which each copy was the leader
    for _ in range(data.draw(st.integers(1, 40))):
        what = data.draw(
            st.sampled_from(["append", "append", "fetch", "fetch", "watermark", "elect", "late", "compact"])
        )
        one = data.draw(st.integers(0, 2))
        if what == "append":
            number += 1
            keys = [f"{number}", f"{number % 3}"][: data.draw(st.integers(1, 2))]
            copies[leader] = lg.append(copies[leader], a(*keys), epoch)
        elif what == "fetch" and one != leader:
            copies[one] = lg.catch_up(copies[one], copies[leader], data.draw(st.sampled_from([None, 1])))
        elif what == "watermark":
            same = [lg.parting(each, copies[leader]) for each in copies]
            mark = lg.high_watermark(copies[leader], same)
            kept.update((row.offset, row.record) for row in copies[leader].rows if row.offset < mark)
            copies[leader] = lg.replicated(copies[leader], mark)
        elif what == "elect" and one != leader:
            mark = copies[leader].committed
            if lg.parting(copies[one], copies[leader]) >= mark:
                leader, epoch = one, epoch + 1
                led[one] = epoch
                copies[leader] = lg.lead(copies[leader], epoch)
        elif what == "late" and one != leader and copies[one].leader_epoch < epoch:
            if 0 < copies[one].leader_epoch <= led.get(one, 0):
                copies[one] = lg.append(copies[one], a(f"late {number}"), led[one])
        elif what == "compact":
            copies[one] = lg.compact(copies[one], 0)
    for one in range(3):
        if one != leader:
            copies[one] = lg.catch_up(copies[one], copies[leader])
    last = {record.key: offset for offset, record in kept.items()}
    for copy in copies:
        rows = dict(copy.rows)
        assert copy.end == copies[leader].end
        assert [offset for offset, _ in copy.rows] == sorted(rows)
        for key, offset in last.items():
            newer = [each for each, record in rows.items() if record.key == key and each > offset]
            assert newer or rows.get(offset) == kept[offset]
