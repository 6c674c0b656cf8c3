"""Known divergences: differences that switches of the profile explain.

Each known bug of Kafka is a switch of ``Profile`` (``docs/divergences.md``). Under a ``kafka-*`` profile the switches
are on, and nothing is left to explain. Under ``intended`` the core does not have Kafka's bugs, so the two differ
wherever one shows. Then the core runs the same events with switches turned on. If with one of them (or else with as few
as possible) the core does what Kafka did at every step so far, that bug was met, and the trace ends there under its
name. A difference that no switches explain is a failure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.protocol.profiles import INTENDED, PROFILES

#: whether the core under this profile agrees up to and including the step in question
Agrees = Callable[[Profile], bool]


def explanation(profile: Profile, agrees: Agrees) -> str | None:
    """Return the names of the switches that explain a difference, joined by ``+``. None if none do, or if the profile
    is that of a release, which must do what the release does."""
    if profile is not INTENDED and PROFILES.get(profile.name) == profile:
        return None
    off = [name for name in SWITCH_NAMES if not getattr(profile, name)]
    for name in off:
        if agrees(_with(profile, [name])):
            return name
    for needed in _together(off):
        if len(needed) > 1 and agrees(_with(profile, needed)):
            return "+".join(_fewest(profile, needed, agrees))
    return None


def _together(off: Sequence[str]) -> Iterator[list[str]]:
    """Yield sets of switches that belong together: those of each release, the newest first, and then all of them."""
    for release in sorted((name for name in PROFILES if name != INTENDED.name), reverse=True):
        yield [name for name in off if getattr(PROFILES[release], name)]
    yield list(off)


def _fewest(profile: Profile, needed: list[str], agrees: Agrees) -> list[str]:
    for name in tuple(needed):
        fewer = [other for other in needed if other != name]
        if agrees(_with(profile, fewer)):
            needed = fewer
    return needed


def _with(profile: Profile, names: Iterable[str]) -> Profile:
    on: dict[str, Any] = dict.fromkeys(names, True)
    return replace(profile, **on)
