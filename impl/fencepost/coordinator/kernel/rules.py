"""Small choices of the protocol, as values that the coordinator reads.

The default of a field is the intended rule. ``coordinator.quirks.values`` has the values of Kafka's releases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fencepost.protocol.profile import Profile
from fencepost.quirks import Quirks, quirks_of, values_of


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a profile; get them with ``rules_of``. Each profile has one such object."""

    profile: Profile
    quirks: Quirks | None

    # Classic groups
    bad_lengths_are_thrown: bool = False  #: impossible lengths in a subscription are an internal error (G-DATA-10)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Profile]]:
        return rules_of, (self.profile,)


@lru_cache(maxsize=256)
def rules_of(profile: Profile) -> Rules:
    """Return the rules of this profile."""
    values: dict[str, Any] = values_of(Rules, profile)
    return Rules(profile, quirks_of(profile), **values)
