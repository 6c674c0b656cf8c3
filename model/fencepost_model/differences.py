"""How a profile changes the rules of the model.

The functions of the model are the intended rules. What a Kafka release does differently stands apart, in three modules
for each family (classic groups, consumer groups, mixed groups, offsets, members):

- ``variant`` has the type of a frozen object with each value or function that a profile can change. The rules import
  it, so it imports none of them.
- ``switches`` has that object as intended, and one table: the changes that each switch of a profile makes to it.
- ``releases`` has the functions of Kafka releases that the table puts in the place of intended ones. The first argument
  of each, ``otherwise``, is the function whose place it takes.

A rule reads only the variant, never the profile. ``varied`` applies the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from fencepost.protocol.profile import SWITCH_NAMES, Profile

V = TypeVar("V")

#: The switch of ``classic.scala``, which ``Profile`` does not have.
SCALA: Final = "scala"
#: For each switch the fields of the variant that it changes, with the value or function of that release.
Differences: TypeAlias = Mapping[str, Mapping[str, Any]]


def rule(intended: Any, *rules: str, says: str) -> Any:
    """Return a field of a variant. ``rules``: the rules that it decides. ``says``: what holds as intended."""
    return field(default=intended, metadata={"rules": rules, "says": says})


def function(*rules: str, says: str) -> Any:
    """Return a field of a variant for a function of the rules, which ``switches`` gives; else like ``rule``."""
    return field(metadata={"rules": rules, "says": says})


def checked(variant: type[Any], differences: Differences) -> Differences:
    """Return the table. Raises ValueError if it names a switch or a field that does not exist, or if a field of the
    variant is never changed."""
    names = {each.name for each in fields(variant)}
    changed = {name for changes in differences.values() for name in changes}
    for switch in differences:
        if switch not in SWITCH_NAMES and switch != SCALA:
            raise ValueError(f"{variant.__name__}: no switch of a profile is called {switch!r}")
    if changed - names:
        raise ValueError(f"{variant.__name__} has no field {', '.join(sorted(changed - names))}")
    if names - changed:
        raise ValueError(f"{variant.__name__}: no switch changes {', '.join(sorted(names - changed))}")
    return differences


def varied(intended: V, differences: Differences, profile: Profile) -> V:
    """Return the rules under a profile. A changed value replaces the intended one. A function gets the one that it
    replaces as its first argument; of two switches for one field, the later in the table is the outer function."""
    changed: dict[str, Any] = {}
    for switch, changes in differences.items():
        if getattr(profile, switch, False):
            for name, new in changes.items():
                otherwise = changed.get(name, getattr(intended, name))
                changed[name] = partial(new, otherwise) if callable(otherwise) else new
    return replace(intended, **changed)  # type: ignore[type-var]  # a frozen dataclass
