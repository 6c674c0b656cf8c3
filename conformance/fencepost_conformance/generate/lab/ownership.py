"""Ownership of partitions over time, as the programs see it: strips for a picture, and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Stretch:
    """A time during which a partition has the same owners. ``until_ms`` None: it lasts."""

    from_ms: int
    until_ms: int | None
    owners: tuple[str, ...]


@dataclass(slots=True)
class Ownership:
    """``strips``: stretches by partition. ``moved``: how often a partition went from one client to another;
    ``returned``: how often a client gave a partition up and then got it back."""

    strips: dict[int, list[Stretch]] = field(default_factory=dict)
    moved: int = 0
    returned: int = 0
    _last: dict[int, str] = field(default_factory=dict)

    def observe(self, now: int, owners: Mapping[int, tuple[str, ...]]) -> None:
        """Note the owners of each partition at this time."""
        for partition, here in owners.items():
            strip = self.strips.setdefault(partition, [Stretch(now, None, ())])
            if strip[-1].owners == here:
                continue
            last = strip.pop()
            if last.from_ms < now:
                strip.append(Stretch(last.from_ms, now, last.owners))
            strip.append(Stretch(now, None, here))
            self._count(partition, last.owners, here)

    def _count(self, partition: int, before: tuple[str, ...], here: tuple[str, ...]) -> None:
        newcomers = [name for name in here if name not in before]
        if not newcomers:
            return
        last = self._last.get(partition)
        self.moved += last is not None and last not in newcomers
        self.returned += last in newcomers
        self._last[partition] = newcomers[-1]

    def unowned_ms(self, now: int) -> int:
        """Return for how long partitions had no owner, summed, each from its first owner on."""
        total = 0
        for strip in self.strips.values():
            owned = False
            for each in strip:
                owned = owned or bool(each.owners)
                if owned and not each.owners:
                    total += (now if each.until_ms is None else each.until_ms) - each.from_ms
        return total

    def shared_ms(self, now: int) -> int:
        """Return for how long partitions had more than one owner, summed."""
        return sum(
            (now if each.until_ms is None else each.until_ms) - each.from_ms
            for strip in self.strips.values()
            for each in strip
            if len(each.owners) > 1
        )
