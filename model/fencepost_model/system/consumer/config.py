"""A configuration of the closed consumer group: the constants of the contract, part two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED

from ..config import profile_of
from ..environment import budgets_of, check_environment

ENVIRONMENT: Final = (
    "ClientStarts",
    "ClientCrashes",
    "ClientLeaves",
    "ClientLeavesPermanently",
    "ClientGivesUp",
    "ClientCommits",
    "ClientChangesInstance",
    "RequestLost",
    "RequestDuplicated",
    "ReplyLost",
    "SessionTimerFiresEarly",
    "RebalanceTimerFiresEarly",
    "AppendFails",
    "LeaveAppendFails",
    "CoordinatorFailsOver",
    "TopicGrows",
)


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """Names as in the contract, in snake case; ``profile`` holds the switches."""

    clients: tuple[str, ...] = ("c1", "c2")
    member_ids: tuple[str, ...] = ("m1", "m2")
    partitions: tuple[str, ...] = ("p1", "p2")
    instance_of: tuple[str, ...] = ()  #: by client; if shorter than ``clients``, the rest is dynamic
    new_instance_of: tuple[str, ...] = ()
    assignor: Literal["range", "uniform"] = "range"
    first_parts: int = 2
    interval: bool = False
    reports_pending_partitions: bool = True
    faults: int = 0
    budgets: tuple[tuple[str, int], ...] = ()  #: by kind of fault, for kinds that do not share ``faults``
    reorder: bool = False
    slow_appends: bool = False
    allowed: frozenset[str] = frozenset({"ClientStarts"})
    profile: Profile = field(default=INTENDED)

    def __post_init__(self) -> None:
        check_environment(self, ENVIRONMENT)

    def instance(self, client: int) -> str:
        return self.instance_of[client] if client < len(self.instance_of) else ""

    def new_instance(self, client: int) -> str:
        return self.new_instance_of[client] if client < len(self.new_instance_of) else ""

    def with_profile(self, profile: Profile) -> ConsumerConfig:
        return replace(self, profile=profile)


def from_constants(constants: Mapping[str, Any]) -> ConsumerConfig:
    """Return the configuration that assigns these values to the specification's constants."""
    clients = tuple(sorted(constants["Clients"]))
    instances, new = dict(constants["InstanceOf"]), dict(constants["NewInstanceOf"])
    return ConsumerConfig(
        clients=clients,
        member_ids=tuple(constants["MemberIds"]),
        partitions=tuple(constants["Partitions"]),
        instance_of=tuple(instances[client] for client in clients),
        new_instance_of=tuple(new[client] for client in clients),
        assignor=constants["Assignor"],
        first_parts=int(constants["FirstParts"]),
        interval=bool(constants["Interval"]),
        reports_pending_partitions=bool(constants["ReportsPendingPartitions"]),
        faults=int(constants["Faults"]),
        budgets=budgets_of(constants),
        reorder=bool(constants["Reorder"]),
        slow_appends=bool(constants["SlowAppends"]),
        allowed=frozenset(constants["Allowed"]),
        profile=profile_of(constants),
    )
