"""The comparison of views compares fields without building the views: each field must count."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from fencepost.protocol.messages import Protocol
from fencepost.protocol.view import GroupState, GroupView, MemberView
from fencepost_model.classic import Group, Member
from fencepost_model.classic.view import shows, view

OFFERS = (Protocol("range", b"topics"),)
GROUP = Group(
    "PreparingRebalance",
    "Stable",
    3,
    "consumer",
    "range",
    "m1",
    (
        Member("m1", None, "client", "/host", 3_000, 45_000, OFFERS, b"p1", join=1),
        Member("m2", "i2", "client", "/host", 4_000, 46_000, OFFERS, is_new=True, sync=2),
    ),
    pending_join=frozenset({"m3"}),
    pending_sync=frozenset({"m2"}),
    new_member_added=True,
    timestamp=7,
)
SEEN = GroupView(
    group_id="g",
    state=GroupState.PREPARING_REBALANCE,
    previous_state=GroupState.STABLE,
    generation_id=3,
    protocol_type="consumer",
    protocol_name="range",
    leader="m1",
    members=(
        MemberView(
            "m1",
            group_instance_id=None,
            client_id="client",
            client_host="/host",
            rebalance_timeout_ms=3_000,
            session_timeout_ms=45_000,
            protocols=OFFERS,
            assignment=b"p1",
            is_new=False,
            awaiting_join=True,
            awaiting_sync=False,
        ),
        MemberView(
            "m2",
            group_instance_id="i2",
            client_id="client",
            client_host="/host",
            rebalance_timeout_ms=4_000,
            session_timeout_ms=46_000,
            protocols=OFFERS,
            assignment=b"",
            is_new=True,
            awaiting_join=False,
            awaiting_sync=True,
        ),
    ),
    static_members=(("i2", "m2"),),
    pending_join=frozenset({"m3"}),
    pending_sync=frozenset({"m2"}),
    new_member_added=True,
)


def other(value: Any) -> Any:
    """Return another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case GroupState():
            return GroupState.EMPTY
        case frozenset():
            return value | {"m9"}
        case bytes():
            return value + b"x"
        case tuple():
            return value[:-1]
        case _:
            return f"{value}x"


def test_a_view_shows_its_group() -> None:
    assert view("g", GROUP) == SEEN
    assert shows(SEEN, "g", GROUP)


@pytest.mark.parametrize("name", [field.name for field in fields(GroupView)])
def test_every_field_of_a_group_counts(name: str) -> None:
    assert not shows(replace(SEEN, **{name: other(getattr(SEEN, name))}), "g", GROUP)


@pytest.mark.parametrize("name", [field.name for field in fields(MemberView)])
def test_every_field_of_a_member_counts(name: str) -> None:
    first, second = SEEN.members
    assert not shows(
        replace(SEEN, members=(first, replace(second, **{name: other(getattr(second, name))}))), "g", GROUP
    )


def test_invisible_fields_do_not_count() -> None:
    assert shows(SEEN, "g", GROUP._replace(timestamp=8))
