"""The leader's assignment (contract, section 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

from .config import Config
from .values import Metadata, Partitions

Assignment = frozenset[tuple[str, Partitions]]


def assignments(config: Config, members: Iterable[tuple[str, Metadata]]) -> Iterator[Assignment]:
    """Yield every assignment that the leader may send for these members, with an entry for each of them."""
    metadata = dict(members)
    ids = [member for member in config.member_ids if member in metadata]
    for target in targets(config, ids):
        yield frozenset(
            (member, taken - _claimed_by_others(member, metadata) if config.cooperative else taken)
            for member, taken in target.items()
        )


def targets(config: Config, ids: list[str]) -> Iterator[dict[str, Partitions]]:
    """Yield each way to give every partition to one member; ``range`` deals them out in turn."""
    owners: Iterable[tuple[str, ...]]
    if config.assignor == "any":
        owners = product(ids, repeat=len(config.partitions))
    else:
        owners = [tuple(ids[place % len(ids)] for place in range(len(config.partitions)))]
    for each in owners:
        yield {
            member: frozenset(p for p, owner in zip(config.partitions, each, strict=True) if owner == member)
            for member in ids
        }


def _claimed_by_others(member: str, metadata: dict[str, Metadata]) -> Partitions:
    """Return the partitions that another member validly claims, so this member does not get them (A-COOP-01)."""
    return frozenset(p for other in metadata if other != member for p in valid_claims(other, metadata))


def valid_claims(member: str, metadata: dict[str, Metadata]) -> Partitions:
    """Return the valid claims of a member. A claim is void if another member claims the same with a generation as new
    or newer (A-COOP-05, A-STICKY-04)."""
    own = metadata[member]
    return frozenset(
        p
        for p in own.owned
        if not any(
            p in other.owned and other.generation >= own.generation
            for name, other in metadata.items()
            if name != member
        )
    )
