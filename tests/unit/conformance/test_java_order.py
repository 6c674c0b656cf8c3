"""The order of a Java hash map equals the order observed in Java."""

from __future__ import annotations

import pytest

from fencepost_conformance.targets.ids import MemberIds
from fencepost_conformance.targets.java_order import JavaOrder, WithoutHyphens, buckets_for, java_order


def test_the_order_of_the_standard_assignors() -> None:
    """C-JOIN-63."""
    names = ["range", "roundrobin", "cooperative-sticky", "sticky"]
    assert java_order(names) == ["sticky", "range", "roundrobin", "cooperative-sticky"]
    assert JavaOrder(MemberIds()).protocol("g", names) == "sticky"


def test_one_bucket_keeps_the_order_of_insertion() -> None:
    # "Aa" and "BB" have the same hash
    assert java_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert java_order(["BB", "Aa"]) == ["BB", "Aa"]


def test_a_table_doubles_when_three_quarters_full() -> None:
    assert [buckets_for(size) for size in (0, 12, 13, 24, 25)] == [16, 16, 32, 32, 64]


class _Hyphens(JavaOrder):
    def uuid(self) -> str:
        return "a-b"


def test_a_name_of_hyphens_only_is_rejected() -> None:
    """Drawing another id would never end (G-WIRE-28, V-126)."""
    with pytest.raises(ValueError, match=r"_Hyphens\.uuid: 1000 UUIDs in a row have a hyphen \(last: 'a-b'\)"):
        WithoutHyphens(_Hyphens(MemberIds())).uuid()
