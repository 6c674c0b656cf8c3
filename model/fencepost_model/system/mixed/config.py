"""A configuration of the closed mixed group: the constants of the contract, part three."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from fencepost.protocol.profile import Profile
from fencepost.protocol.profiles import INTENDED
from fencepost.protocol.settings import MigrationPolicy

from ..config import Config, profile_of
from ..consumer.config import ConsumerConfig
from ..environment import budgets_of, check_environment

ENVIRONMENT: Final = (
    "ClientStarts",
    "ClientCrashes",
    "ClientLeaves",
    "ClientGivesUp",
    "ClientCommits",
    "RequestLost",
    "RequestDuplicated",
    "ReplyLost",
    "JoinTimerFiresEarly",
    "SyncTimerFiresEarly",
    "SessionTimerFiresEarly",
    "RebalanceTimerFiresEarly",
    "MemberJoinTimerFiresEarly",
    "MemberSyncTimerFiresEarly",
    "CoordinatorFailsOver",
)

#: Faults that only a group of both protocols shows. Faults of one protocol alone are covered by its closed system.
SWITCHES: Final = (
    "fault_upgrade_without_protocol",
    "fault_upgrade_answers_before_checks",
    "fault_upgrade_without_bump",
    "fault_classic_members_starve",
    "fault_downgrade_owes",
    "fault_downgrade_loses_bump",
    "fault_downgrade_leaves_timers",
    "fault_join_generation_ignored",
    "fault_downgrade_assigns_target",
    "fault_upgrade_overlooks_owned",
    "fault_empty_group_counts_anew",
)


@dataclass(frozen=True, slots=True)
class MixedConfig:
    """Names as in the contract, in snake case; ``profile`` holds the switches."""

    clients: tuple[str, ...] = ("c1", "c2")
    member_ids: tuple[str, ...] = ("m1", "m2")
    partitions: tuple[str, ...] = ("p1", "p2")
    instance_of: tuple[str, ...] = ()  #: by client; if shorter than ``clients``, the rest is dynamic
    #: by client; if shorter than ``clients``, the rest speaks either protocol
    starts_as: tuple[frozenset[str], ...] = ()
    cooperative: bool = False
    metadata_has_generation: bool = False
    assignor: Literal["range", "uniform"] = "range"
    interval: bool = False
    policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    faults: int = 0
    budgets: tuple[tuple[str, int], ...] = ()  #: by kind of fault, for kinds that do not share ``faults``
    reorder: bool = False
    allowed: frozenset[str] = frozenset({"ClientStarts"})
    profile: Profile = field(default=INTENDED)

    def __post_init__(self) -> None:
        check_environment(self, ENVIRONMENT)

    def instance(self, client: int) -> str:
        return self.instance_of[client] if client < len(self.instance_of) else ""

    def speaks(self, client: int) -> frozenset[str]:
        return self.starts_as[client] if client < len(self.starts_as) else frozenset({"classic", "consumer"})

    def with_profile(self, profile: Profile) -> MixedConfig:
        """Set the profile's switches that are about groups of both protocols; the others stay as intended."""
        switches = {name: getattr(profile, name) for name in SWITCHES}
        return replace(self, profile=replace(INTENDED, name=profile.name, **switches))

    @property
    def classic(self) -> Config:
        """The configuration for a client of the classic protocol."""
        return Config(
            clients=self.clients,
            member_ids=self.member_ids,
            partitions=self.partitions,
            instance_of=self.instance_of,
            cooperative=self.cooperative,
            metadata_has_generation=self.metadata_has_generation,
            max_size=len(self.member_ids),
            reorder=self.reorder,
        )

    @property
    def consumer(self) -> ConsumerConfig:
        """The configuration for a client of the consumer protocol."""
        return ConsumerConfig(
            clients=self.clients,
            member_ids=self.member_ids,
            partitions=self.partitions,
            instance_of=self.instance_of,
            first_parts=len(self.partitions),
            reorder=self.reorder,
        )


def from_constants(constants: Mapping[str, Any]) -> MixedConfig:
    """Return the configuration that assigns these values to the specification's constants."""
    clients = tuple(sorted(constants["Clients"]))
    instances, speaks = dict(constants["InstanceOf"]), dict(constants["StartsAs"])
    return MixedConfig(
        clients=clients,
        member_ids=tuple(constants["MemberIds"]),
        partitions=tuple(constants["Partitions"]),
        instance_of=tuple(instances[client] for client in clients),
        starts_as=tuple(frozenset(speaks[client]) for client in clients),
        cooperative=bool(constants["Cooperative"]),
        metadata_has_generation=bool(constants["MetadataHasGeneration"]),
        assignor=constants["Assignor"],
        interval=bool(constants["Interval"]),
        policy=MigrationPolicy(constants["Policy"]),
        faults=int(constants["Faults"]),
        budgets=budgets_of(constants),
        reorder=bool(constants["Reorder"]),
        allowed=frozenset(constants["Allowed"]),
        profile=profile_of(constants),
    )
