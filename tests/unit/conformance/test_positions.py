"""Positions of members: the parts that a recording keeps, and the reads that the checker rejects."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace as Some
from uuid import UUID

import pytest

from fencepost_conformance.judge.checker.check import check_trace
from fencepost_conformance.judge.checker.positions.clients import clients
from fencepost_conformance.judge.checker.positions.judge import FETCH, judged
from fencepost_conformance.judge.checker.positions.track import GRACE_MS, Track
from fencepost_conformance.traces.files import WireTrace, read_traces
from fencepost_conformance.traces.lines import SentLine
from fencepost_conformance.traces.recorder import reading

CORPUS = Path(__file__).parents[2] / "corpus"


def read(name: str) -> WireTrace:
    (trace,) = read_traces(CORPUS / f"{name}.jsonl.gz")
    assert isinstance(trace, WireTrace)
    return trace


def batch(base: int, last: int) -> bytes:
    """Return the header of a batch and as many bytes as it announces."""
    return struct.pack(">qiibIhi", base, 49, 0, 2, 0, 0, last) + bytes(49 + 12 - 27)


class TestRecording:
    def test_how_far_records_reach(self) -> None:
        assert reading.reach(b"") == (None, None)
        assert reading.reach(batch(5, 0)) == (5, 6)
        assert reading.reach(batch(5, 2) + batch(8, 4)) == (5, 13)

    def test_a_batch_that_is_cut_off_does_not_count(self) -> None:
        assert reading.reach(batch(5, 2) + batch(8, 4)[:-1]) == (5, 8)
        assert reading.reach(batch(5, 2)[:-1]) == (None, None)

    def test_a_topic_has_its_name_where_that_is_known(self) -> None:
        known, other = UUID(int=7), UUID(int=8)
        names = reading.names_of(
            "metadata", Some(topics=(Some(topic_id=known, name="t"), Some(topic_id=other, name=None)))
        )
        row = Some(partition=3, fetch_offset=9)
        fetch = Some(topics=[Some(topic_id=each, partitions=[row]) for each in (known, other)])
        assert [(topic["topic_id"], topic["name"]) for topic in reading.asked(fetch, names)["topics"]] == [
            (str(known), "t"),
            (str(other), ""),
        ]

    def test_a_repeated_fetch_is_not_recorded(self) -> None:
        quiet = reading.Quiet()
        one, none = {"topics": ["t"], "forgotten_topics_data": []}, {"topics": [], "forgotten_topics_data": []}
        assert [quiet.is_one(body) for body in (one, none, one, {**one, "topics": ["u"]}, one)] == [
            False, True, True, False, False,
        ]  # fmt: skip
        assert not quiet.is_one({**none, "forgotten_topics_data": ["t"]})


class TestTrack:
    def test_reading_continues_from_the_start_that_the_consumer_was_given(self) -> None:
        """A read continues within the fetched records, because an application may have consumed only some of them
        (K-POS-01, K-FETCH-02)."""
        track = Track()
        track.gain()
        assert not track.fetches(5, 0)
        track.may_begin_at(5, "OffsetFetch")
        assert track.fetches(5, 0)
        track.brought(9)
        assert track.fetches(7, 0)
        assert not track.fetches(6, 0)
        assert not track.fetches(9, 0)

    def test_a_start_position_counts_once(self) -> None:
        """Returning to it would be a seek (K-POS-05)."""
        track = Track()
        track.may_begin_at(5, "OffsetFetch")
        assert track.fetches(5, 0)
        track.brought(6)
        assert track.fetches(6, 0)
        assert not track.fetches(5, 0)

    def test_an_earlier_reset_counts_when_nothing_is_committed(self) -> None:
        """K-POS-02, K-POS-03."""
        track = Track()
        track.may_reset_to(0)
        track.gain()
        assert not track.fetches(0, 0)
        track.nothing_committed()
        assert track.fetches(0, 0)

    def test_a_revoked_partition_is_not_read(self) -> None:
        """There is a grace period, because two connections are two streams (K-SUB-02)."""
        track = Track()
        track.may_begin_at(5, "OffsetFetch")
        track.lost_ms = 100
        assert track.fetches(5, 100 + GRACE_MS)
        assert not track.fetches(5, 101 + GRACE_MS)


#: Traces of each kind of client and both protocols.
JUDGED = ("handed-over-java", "handed-over-aiokafka", "consumer-auto-commit-java", "cooperative-confluent-kafka")


@pytest.mark.parametrize("name", JUDGED)
def test_many_fetches_are_checked(name: str) -> None:
    assert len(judged(read(name))) > 20


def _read_by(trace: WireTrace, name: str) -> WireTrace:
    """Make every fetch one of this client."""
    return replace(
        trace,
        lines=tuple(
            line.model_copy(update={"client_id": name})
            if isinstance(line, SentLine) and line.api_key == FETCH
            else line
            for line in trace.lines
        ),
    )


#: Traces of eager, cooperative and KIP-848 members.
HANDED = ("auto-commit-aiokafka", "cooperative-java", "consumer-auto-commit-confluent-kafka")


@pytest.mark.parametrize("name", HANDED)
def test_reading_a_partition_of_another_member_is_rejected(name: str) -> None:
    """K-SUB-02."""
    verdict = check_trace(_read_by(read(name), "one"))
    assert verdict.outcome == "refused"
    assert verdict.refusals[0].seen.startswith(f"one read {name}-a-")
    assert "it gave the partition up" in verdict.refusals[0].allowed[0]


@pytest.mark.parametrize("name", HANDED)
def test_traces_whose_clients_may_seek_are_not_checked(name: str) -> None:
    """A recorder cannot see a seek (K-POS-05)."""
    trace = _read_by(read(name), "one")
    assert check_trace(replace(trace, provenance=())).outcome == "accepted"


def test_a_client_that_is_two_members_is_left_alone() -> None:
    """The recording does not show which of the two members reads."""
    trace = read("handed-over-java")
    assert clients(trace).keys() == {"one", "two"}
    alike = tuple(
        line.model_copy(update={"client_id": "one"}) if isinstance(line, SentLine) and line.client_id == "two" else line
        for line in trace.lines
    )
    assert not clients(replace(trace, lines=alike))
