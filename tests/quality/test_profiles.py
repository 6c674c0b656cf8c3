"""Each switch of the profiles is documented: its part, its rules, and the behaviour of Kafka where it is on."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from fencepost.protocol.profile import SWITCH_NAMES, SWITCHES, Part, Profile, Switch
from fencepost.protocol.profiles import INTENDED, PROFILES
from fencepost.rulebook.book import read_book
from fencepost_conformance.common.repository import root


@pytest.mark.parametrize("switch", SWITCHES, ids=SWITCH_NAMES)
def test_a_switch_is_documented(switch: Switch) -> None:
    known = read_book(root() / "docs" / "rules")
    assert switch.rules
    assert [rule for rule in switch.rules if rule not in known] == []
    assert len(switch.says.split()) >= 5
    assert switch.name.startswith(("fault_", "old_")) or switch.part is Part.HOST


def test_every_field_is_a_switch_in_the_section_of_its_part() -> None:
    assert tuple(each.name for each in fields(Profile) if each.name != "name") == SWITCH_NAMES
    parts = [switch.part for switch in SWITCHES]
    assert parts == sorted(parts, key=[*Part].index)


def test_every_switch_is_off_in_intended_and_on_in_some_release() -> None:
    assert replace(INTENDED, name="") == Profile(name="")
    on = {name for profile in PROFILES.values() for name in SWITCH_NAMES if getattr(profile, name)}
    assert on == {*SWITCH_NAMES}
