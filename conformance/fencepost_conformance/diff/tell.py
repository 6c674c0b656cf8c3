"""Groups of differences as a table of a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group as Parts
from rich.markup import escape

from ..counting import counted
from ..listing import Listing
from ..targets.registry import build_found
from .groups import Group, Groups
from .job import Side
from .known import Known

#: groups in the terminal's table, and characters of a value there
_SHOWN = 40
_VALUE = 24
#: what else differed, of a group, in JSON
_BESIDE = 6


def details(sides: tuple[Side, Side], found: Groups, accepted: Mapping[str, Known]) -> dict[str, Any]:
    """What was found, as JSON data."""
    return {
        "a": _side(sides[0]),
        "b": _side(sides[1]),
        "groups": [as_json(group, accepted) for group in found.ordered()],
        "never_met": [entry.key for entry in _never_met(found, accepted)],
    }


def _side(side: Side) -> dict[str, Any]:
    return {"target": side.name, "profile": side.profile, **build_found(side.target, side.profile)}


def as_json(group: Group, accepted: Mapping[str, Known]) -> dict[str, Any]:
    """One group."""
    entry = accepted.get(group.key)
    told: dict[str, Any] = {
        "key": group.key,
        "traces": group.traces,
        "times": group.times,
        "following": group.following,
        "protocols": sorted(group.protocols),
        "known": None if entry is None else entry.reason,
    }
    if group.first is not None:
        protocol, seed, found = group.first
        told |= {
            "first": {"protocol": protocol.value, "seed": seed, "step": found.event},
            "a": found.left,
            "b": found.right,
            "always": group.always is not None,
        }
    return told | {"beside": [name for name, _ in group.beside.most_common(_BESIDE)]}


def tables(sides: tuple[Side, Side], found: Groups, accepted: Mapping[str, Known]) -> Parts:
    """The groups, those in most traces first, and entries of the file that were not met."""
    parts: list[Any] = []
    groups = found.ordered()
    if groups:
        parts.append(_table(sides, found, groups, accepted))
    if len(groups) > _SHOWN:
        parts.append(f"and {len(groups) - _SHOWN} groups more (--json and -o have all)")
    parts += [f"[yellow]never met[/] line {entry.line}: {escape(entry.key)}" for entry in _never_met(found, accepted)]
    return Parts(*parts)


def _table(sides: tuple[Side, Side], found: Groups, groups: list[Group], accepted: Mapping[str, Known]) -> Listing:
    title = f"{sides[0].name} and {sides[1].name}: what differs, in {counted(found.differing, 'traces')}"
    listing = Listing(("traces", "what, where, how"), title=title, numbers=frozenset(("traces",)))
    for group in groups[:_SHOWN]:
        listing.add(f"{group.traces:,}", _words(group, accepted))
    return listing


def _words(group: Group, accepted: Mapping[str, Known]) -> str:
    told = escape(group.key)
    if group.first is not None:
        protocol, seed, found = group.first
        values = " / ".join(escape(_short(value)) for value in (found.left, found.right))
        told += f"\n[dim]{protocol} {seed}, step {found.event}: {values}{', always' if group.always else ''}[/]"
    if group.key in accepted:
        told += f"\n[green]known:[/] {escape(accepted[group.key].reason)}"
    return told


def _short(value: str) -> str:
    return value if len(value) <= _VALUE else f"{value[: _VALUE - 1]}…"


def _never_met(found: Groups, accepted: Mapping[str, Known]) -> list[Known]:
    return [entry for key, entry in accepted.items() if key not in found.groups]
