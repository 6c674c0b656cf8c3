"""A configuration of the closed system of offsets: the constants of the contract, part five."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..environment import budgets_of, check_environment

ENVIRONMENT: Final = (
    "GroupDecides",
    "MemberGivesUp",
    "MemberRestarts",
    "TransactionTimesOut",
    "CoordinatorFailsOver",
    "OffsetIsDeleted",
    "OffsetExpires",
)

#: The partitions granted to each holder, in the order of the holders.
Grant = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class OffsetsConfig:
    """Names as in the contract, in snake case; ``profile`` is that of the model of offsets."""

    holders: tuple[str, ...] = ("h1", "h2")
    parts: tuple[str, ...] = ("p1",)
    max_offset: int = 1
    transactions: int = 1
    plain_committers: frozenset[str] = frozenset({"h1"})
    transactional_committers: frozenset[str] = frozenset({"h2"})
    decisions: tuple[Grant, ...] = ((frozenset({"p1"}), frozenset()), (frozenset(), frozenset({"p1"})))
    epochs: int = 2
    require_stable: bool = True
    faults: int = 0
    budgets: tuple[tuple[str, int], ...] = ()  #: by kind of fault, for kinds that do not share ``faults``
    reorder: bool = False
    allowed: frozenset[str] = frozenset({"GroupDecides"})
    profile: Profile = field(default=INTENDED)

    def __post_init__(self) -> None:
        check_environment(self, ENVIRONMENT)

    def with_profile(self, profile: Profile) -> OffsetsConfig:
        return replace(self, profile=profile)


def from_constants(constants: Mapping[str, Any]) -> OffsetsConfig:
    """Return the configuration that assigns these values to the specification's constants."""
    holders = tuple(sorted(constants["Holders"]))
    grants = (dict(each) for each in constants["Decisions"])
    decisions = {tuple(frozenset(grant[holder]) for holder in holders) for grant in grants}
    return OffsetsConfig(
        holders=holders,
        parts=tuple(sorted(constants["Parts"])),
        max_offset=int(constants["MaxOffset"]),
        transactions=int(constants["Transactions"]),
        plain_committers=frozenset(constants["PlainCommitters"]),
        transactional_committers=frozenset(constants["TransactionalCommitters"]),
        decisions=tuple(sorted(decisions, key=lambda grant: [sorted(each) for each in grant])),
        epochs=int(constants["Epochs"]),
        require_stable=bool(constants["RequireStable"]),
        faults=int(constants["Faults"]),
        budgets=budgets_of(constants),
        reorder=bool(constants["Reorder"]),
        allowed=frozenset(constants["Allowed"]),
    )
