"""Groups of whole consumers go on where they have committed: nothing is left out, nothing unread is committed."""

from __future__ import annotations

import pytest

from fencepost_conformance.mutants.catalogue import MUTANTS
from fencepost_conformance.mutants.mutant import planted
from fencepost_conformance.mutants.replacement import Replacement, in_place
from fencepost_conformance.simulate.broken import Broken
from fencepost_conformance.simulate.reading.group import Group, Tally

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
    """Amid crashes between processing and commit, so that some of it is read again (NOT-02)."""
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


def test_who_commits_what_is_only_fetched_is_found() -> None:
    with planted(MUTANTS["position-of-what-was-fetched"]):
        assert broken() in ("INV-CL-04", "K-POS-01", "K-FETCH-02")


def test_who_does_not_go_on_where_the_group_has_committed_is_found() -> None:
    """The committed offset is taken for one too high."""
    skips = Replacement("reader/committed.py", "take", "Position(found.offset,", "Position(found.offset + 1,")
    with in_place([skips]):
        assert broken() == "K-POS-01"


def test_who_stops_committing_is_found() -> None:
    never = Replacement("reader/commits.py", "_send", "offset.offset,", "0 * offset.offset,")
    with in_place([never]):
        assert broken() == "K-OFF-05"
