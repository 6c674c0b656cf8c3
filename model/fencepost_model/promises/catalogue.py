"""The promises by their ids (rule book, 12.2), and the properties of the closed systems that state them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from .views import GroupView


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise about every state of a group. ``how`` returns how a state breaks it, or an empty string.

    ``properties``: for each family of closed systems, the property of the specification that states it.
    """

    id: str
    words: str
    how: Callable[[GroupView], str]
    properties: Mapping[str, str] = field(default_factory=dict)

    def holds(self, group: GroupView) -> bool:
        """Return whether the state keeps the promise."""
        return not self.how(group)


def _one_holder(group: GroupView) -> str:
    holders: dict[Hashable, str] = {}
    for member in group.members:
        for rows in (member.assigned, member.revoking):
            for each in rows:
                other = holders.setdefault(each, member.member_id)
                if other != member.member_id:
                    return f"{other} and {member.member_id} both hold partition {each}"
    return ""


def _assigned_or_revoking(group: GroupView) -> str:
    for member in group.members:
        if both := member.assigned & member.revoking:
            return f"{member.member_id} is assigned and has to revoke {sorted(map(str, both))}"
    return ""


def _epochs_in_order(group: GroupView) -> str:
    if group.assignment_epoch > group.epoch:
        return f"assignment epoch {group.assignment_epoch} of group epoch {group.epoch}"
    for member in group.members:
        if member.epoch > group.assignment_epoch:
            return f"{member.member_id} is at {member.epoch}, the assignment at {group.assignment_epoch}"
    return ""


PROMISES: Final = {
    promise.id: promise
    for promise in (
        Promise(
            "INV-KIP-01",
            "A partition has at most one holder: it is assigned to one member, or that member still has to revoke it.",
            _one_holder,
            {"consumer": "NoPartitionHasTwoHolders", "mixed": "NoPartitionHasTwoHolders"},
        ),
        Promise(
            "INV-KIP-02",
            "A member is never assigned a partition that it still has to revoke.",
            _assigned_or_revoking,
            {"consumer": "NoPartitionIsBothAssignedAndRevoked"},
        ),
        Promise(
            "INV-KIP-03",
            "A member's epoch is at most the assignment epoch, and that is at most the group epoch.",
            _epochs_in_order,
            {"consumer": "EpochsAreOrdered", "mixed": "EpochsAreOrdered"},
        ),
    )
}


def broken_promises(group: GroupView) -> Iterator[tuple[str, str]]:
    """Yield the id of each promise that the state breaks, and how."""
    for promise in PROMISES.values():
        if how := promise.how(group):
            yield promise.id, how
