"""The differences of another release at a step: the switches of the profiles whose rules decide there."""

from __future__ import annotations

from collections.abc import Collection

from fencepost.protocol.profile import SWITCHES, Profile


def differences(rules: Collection[str], here: Profile, other: Profile) -> list[dict[str, str]]:
    """Return each difference with the release that shows it: ``release``, ``says``, ``switch``. A switch counts if it
    is on in exactly one of the profiles, and one of its rules is among ``rules``."""
    found = []
    for switch in SWITCHES:
        ours, theirs = getattr(here, switch.name), getattr(other, switch.name)
        if ours != theirs and not set(switch.rules).isdisjoint(rules):
            release = here.name if ours else other.name
            found.append({"release": release, "says": switch.says, "switch": switch.name})
    return found
