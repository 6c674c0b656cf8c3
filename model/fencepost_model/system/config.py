"""A configuration of the closed system: the constants of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import Settings

from .environment import budgets_of, check_environment

#: D of the contract. R is D times (DelayWindows + 1), so that ``remaining / D`` counts windows (C-JOIN-43).
DELAY_MS: Final = 3_000
SESSION_MS: Final = 45_000

ENVIRONMENT: Final = (
    "ClientStarts",
    "ClientCrashes",
    "ClientLeaves",
    "ClientGivesUp",
    "ClientCommits",
    "ClientRequestsRejoin",
    "OperatorRemovesMember",
    "RequestLost",
    "RequestDuplicated",
    "ReplyLost",
    "JoinTimerFiresEarly",
    "SyncTimerFiresEarly",
    "SessionTimerFiresEarly",
    "AppendFails",
    "CoordinatorFailsOver",
)


@dataclass(frozen=True, slots=True)
class Config:
    """Names as in the contract, in snake case; ``profile`` holds the switches."""

    clients: tuple[str, ...] = ("c1", "c2")
    member_ids: tuple[str, ...] = ("m1", "m2", "m3")
    partitions: tuple[str, ...] = ("p1", "p2")
    instance_of: tuple[str, ...] = ()  #: by client; if shorter than ``clients``, the rest is dynamic
    cooperative: bool = False
    metadata_has_generation: bool = False
    assignor: Literal["range", "any"] = "range"
    max_size: int = 9
    delay_windows: int = 0
    faults: int = 0
    budgets: tuple[tuple[str, int], ...] = ()  #: by kind of fault, for kinds that do not share ``faults``
    reorder: bool = False
    slow_appends: bool = False
    allowed: frozenset[str] = frozenset({"ClientStarts"})
    profile: Profile = field(default=INTENDED)

    def __post_init__(self) -> None:
        check_environment(self, ENVIRONMENT)
        if len(self.instance_of) > len(self.clients):
            raise ValueError("more instance ids than clients")

    def instance(self, client: int) -> str:
        return self.instance_of[client] if client < len(self.instance_of) else ""

    @property
    def rebalance_timeout_ms(self) -> int:
        return DELAY_MS * (self.delay_windows + 1)

    @property
    def settings(self) -> Settings:
        return Settings(group_initial_rebalance_delay_ms=DELAY_MS, group_max_size=self.max_size)

    def with_profile(self, profile: Profile) -> Config:
        return replace(self, profile=profile)


def profile_of(constants: Mapping[str, Any]) -> Profile:
    """Return ``intended`` with the switches that the constants set. Raises ValueError for an unknown switch."""
    switches = {name: bool(value) for name, value in constants.items() if name.startswith(("fault_", "old_"))}
    if unknown := {*switches} - {*SWITCH_NAMES}:
        raise ValueError(f"not a switch of the profiles: {', '.join(sorted(unknown))}")
    return replace(INTENDED, name=INTENDED.name, **switches)


def from_constants(constants: Mapping[str, Any]) -> Config:
    """Return the configuration that assigns these values to the specification's constants."""
    clients = tuple(sorted(constants["Clients"]))
    instances = dict(constants["InstanceOf"])
    return Config(
        clients=clients,
        member_ids=tuple(constants["MemberIds"]),
        partitions=tuple(constants["Partitions"]),
        instance_of=tuple(instances[client] for client in clients),
        cooperative=bool(constants["Cooperative"]),
        metadata_has_generation=bool(constants["MetadataHasGeneration"]),
        assignor=constants["Assignor"],
        max_size=int(constants["MaxSize"]),
        delay_windows=int(constants["DelayWindows"]),
        faults=int(constants["Faults"]),
        budgets=budgets_of(constants),
        reorder=bool(constants["Reorder"]),
        slow_appends=bool(constants["SlowAppends"]),
        allowed=frozenset(constants["Allowed"]),
        profile=profile_of(constants),
    )
