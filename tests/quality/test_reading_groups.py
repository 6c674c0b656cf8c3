"""Groups of whole consumers continue at their commits: no record is skipped, and no unread record is committed."""

from __future__ import annotations

import pytest

from fencepost_conformance.generate.simulate.broken import Broken
from fencepost_conformance.generate.simulate.reading.group import Group, Tally
from fencepost_conformance.run.mutants.catalogue import MUTANTS
from fencepost_conformance.run.mutants.mutant import planted
from fencepost_conformance.run.mutants.replacement import Replacement, in_place

SEEDS = range(8)
MORE = range(100, 900, 20)


def total(seeds: range) -> Tally:
    found = Tally()
    for seed in seeds:
        tally = Group(seed).run()
        for name in Tally.__dataclass_fields__:
            setattr(found, name, getattr(found, name) + getattr(tally, name))
    return found


def test_everything_is_read_and_committed() -> None:
    """With crashes between processing and commit, some records are read again (NOT-02)."""
    tally = total(SEEDS)
    assert tally.processed > 1_500
    assert tally.commits > 1_000
    assert tally.resumed > 30
    assert 0 < tally.again < tally.processed / 10
    assert tally.crashes > 10


@pytest.mark.all
@pytest.mark.parametrize("first", MORE)
def test_many_groups(first: int) -> None:
    total(range(first, first + 20))


def broken() -> str:
    for seed in SEEDS:
        try:
            Group(seed).run()
        except Broken as found:
            return found.rule
    return ""


def test_a_commit_of_records_that_are_only_fetched_is_found() -> None:
    with planted(MUTANTS["position-of-what-was-fetched"]):
        assert broken() in ("INV-CL-04", "K-POS-01", "K-FETCH-02")


def test_a_wrong_start_after_the_committed_offset_is_found() -> None:
    """The fault: the position is one above the committed offset."""
    skips = Replacement(
        "fencepost_consumer/committed.py", "take", "Position(found.offset,", "Position(found.offset + 1,"
    )
    with in_place([skips]):
        assert broken() == "K-POS-01"


def test_a_reader_that_stops_committing_is_found() -> None:
    never = Replacement("fencepost_consumer/commits.py", "_send", "offset.offset,", "0 * offset.offset,")
    with in_place([never]):
        assert broken() == "K-OFF-05"
