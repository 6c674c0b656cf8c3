"""Interface of assignors, and what those of Kafka's client have in common (10.2, A-PLUG-01)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from fencepost.protocol.events import Topic
from fencepost.protocol.settings import BadSettings

from ..consumer_protocol import Assignment, Subscription
from ..partitions import java_sorted, static_first


class RebalanceProtocol(IntEnum):
    """How members give up partitions (G-VOC-15); the higher one is preferred (A-PROTO-02)."""

    EAGER = 0
    COOPERATIVE = 1


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member as the leader sees it. The instance id is from the JoinGroup response (A-EMB-08)."""

    subscription: Subscription
    group_instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class Assigned:
    """The result of an assignor, and the assignor to use next time, with what it remembers (A-STICKY-05)."""

    assignments: Mapping[str, Assignment]
    assignor: Assignor


class Assignor(Protocol):
    """Interface of a client's assignor plug-in (A-PLUG-01). It is a value: it returns a new one to remember data.

    Any total function of the input is legal (NOT-03). An exception from ``assign`` is thrown by the leader's poll
    (K-JOIN-20).
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    @property
    def protocols(self) -> frozenset[RebalanceProtocol]: ...

    def user_data(self, topics: frozenset[str]) -> bytes | None:
        """Return the user data for a member's subscription to ``topics``, for the leader's assignor."""

    def assign(self, topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> Assigned:
        """Share the partitions of ``topics`` (the cluster's metadata by name) among ``members`` (by member id)."""

    def on_assignment(self, assignment: Assignment, generation_id: int) -> Assignor:
        """Handle a received ``assignment``; return the assignor to use from now on."""


def subscribed(topics: Mapping[str, Topic], members: Mapping[str, GroupMember]) -> dict[str, Topic]:
    """Return the topics, by name, that a member subscribes to and that have a partition (A-COM-01)."""
    names = frozenset().union(*(member.subscription.topics for member in members.values()))
    return {name: topics[name] for name in java_sorted(names) if name in topics and topics[name].partitions}


def in_order(members: Mapping[str, GroupMember]) -> list[str]:
    """Return member ids: static members by instance id, then dynamic members by member id (A-COM-02)."""
    return static_first({member_id: member.group_instance_id for member_id, member in members.items()})


def racks_matter(racks: Iterable[str], partitions: Iterable[frozenset[str]]) -> bool:
    """Return whether a member's rack holds a replica, and some partition lacks a replica on a used rack (A-COM-04)."""
    rows = list(partitions)
    everywhere = frozenset().union(*rows)
    return not everywhere.isdisjoint(racks) and any(row != everywhere for row in rows)


def common_protocol(assignors: Iterable[Assignor]) -> RebalanceProtocol:
    """Return the highest protocol that all assignors support (A-PROTO-02). Raises ``BadSettings`` if there is none."""
    sets = [assignor.protocols for assignor in assignors]
    common = frozenset.intersection(*sets) if sets else frozenset()
    if not common:
        raise BadSettings("the assignors have no rebalance protocol in common; use only eager or only cooperative ones")
    return max(common)
