"""A configuration of the closed log: the constants of the contract, part four."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..environment import check_allowed

ENVIRONMENT: Final = (
    "ClientWrites",
    "WriteTimesOut",
    "CleanerDropsRecord",
    "CleanerDropsTombstone",
    "FollowerFallsBehind",
    "LeaderIsElected",
)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Names as in the contract, in snake case. The log does not depend on a profile."""

    brokers: tuple[str, ...] = ("b1", "b2")  #: the first leads at the start
    keys: tuple[str, ...] = ("k1",)
    values: tuple[str, ...] = ("x",)
    ends: int = 2  #: records that any copy may ever get
    elections: int = 2  #: the first included
    allowed: frozenset[str] = frozenset(ENVIRONMENT)
    profile: Profile = field(default=INTENDED)

    def __post_init__(self) -> None:
        check_allowed(self.allowed, ENVIRONMENT)

    def with_profile(self, profile: Profile) -> LogConfig:
        """Return the same: no switch of a profile is about the log itself."""
        return self


def from_constants(constants: Mapping[str, Any]) -> LogConfig:
    """Return the configuration that assigns these values to the specification's constants."""
    return LogConfig(
        brokers=tuple(sorted(constants["Brokers"])),
        keys=tuple(sorted(constants["Keys"])),
        values=tuple(sorted(constants["Values"])),
        ends=int(constants["Ends"]),
        elections=int(constants["Elections"]),
        allowed=frozenset(constants["Allowed"]),
    )
