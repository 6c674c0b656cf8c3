"""The class of a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fencepost.protocol.profile import Profile

Seen = TypeVar("Seen")


@dataclass(frozen=True, slots=True)
class Promise(Generic[Seen]):
    """A promise about whatever ``about`` views: a group, or a step of one.

    ``how`` returns how a view breaks it, or an empty string. ``faults``: the switches of the profile under which Kafka
    does not keep it; ``remains`` is what Kafka keeps then. ``properties``: for each family of closed systems, the
    properties of the specification that ask it. ``restated``: those that state it, or a part of it, in their own form.
    """

    id: str
    words: str
    about: type[Seen]
    how: Callable[[Seen], str]
    properties: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    restated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    remains: Callable[[Seen], str] | None = None

    @property
    def clause(self) -> str:
        """Its words as a clause."""
        return (self.words[0].lower() + self.words[1:]).removesuffix(".")

    def holds(self, seen: Seen, *, with_fault: bool = False) -> bool:
        """Return whether the view keeps the promise. ``with_fault``: only what remains of it with Kafka's fault."""
        how = self.remains if with_fault else self.how
        return how is None or not how(seen)

    def stated(self, family: str) -> tuple[str, ...]:
        """Return the properties of a family of closed systems that ask or state it."""
        return (*self.properties.get(family, ()), *self.restated.get(family, ()))

    def under(self, profile: Profile) -> Callable[[Seen], str] | None:
        """Return what a coordinator of the profile promises; None if that is nothing."""
        return self.remains if any(getattr(profile, fault) for fault in self.faults) else self.how
