"""Groups of differences as a table for the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group as Parts
from rich.markup import escape

from ...common.counting import counted
from ...judge.compare.key import kind_of_event
from ...judge.diff.groups import Group, Groups
from ...judge.diff.job import Side
from ...judge.diff.shortest import Shortest
from ...judge.known import Accepted, unmatched
from ...targets.registry import build_found
from ..listing import Listing

#: number of groups on the terminal, and of characters of a value there
_SHOWN = 40
_VALUE = 60
#: number of other differences of a group in JSON
_OTHERS = 6


def details(
    sides: tuple[Side, Side], found: Groups, small: Mapping[str, Shortest], accepted: Mapping[str, Accepted]
) -> dict[str, Any]:
    """Return the results as JSON data; ``small``: the shortest trace of each group, as far as there is one."""
    return {
        "a": _side(sides[0]),
        "b": _side(sides[1]),
        "groups": [as_json(group, small.get(group.key), accepted) for group in found.ordered()],
        "never_met": [entry.key for entry in _unmatched(found, accepted)],
    }


def _side(side: Side) -> dict[str, Any]:
    return {"target": side.name, "profile": side.profile, **build_found(side.target, side.profile)}


def as_json(group: Group, shown: Shortest | None, accepted: Mapping[str, Accepted]) -> dict[str, Any]:
    """One group."""
    entry = accepted.get(group.key)
    row: dict[str, Any] = {
        "key": group.key,
        "traces": group.traces,
        "times": group.times,
        "following": group.following,
        "protocols": sorted(group.protocols),
        "known": None if entry is None else entry.reason,
    }
    if group.first is not None:
        protocol, seed, found = group.first
        row |= {
            "first": {"protocol": protocol.value, "seed": seed, "step": found.event},
            "a": found.left,
            "b": found.right,
            "always": group.always is not None,
        }
    if shown is not None:
        row["shortest"] = {
            "protocol": shown.job.protocol.value,
            "seed": shown.seed,
            "events": [kind_of_event(event) for event, _ in shown.mine],
            "a": shown.left,
            "b": shown.right,
            "rules": list(shown.explanation.rules),
            "switches": dict(shown.explanation.switches),
            "free": list(shown.explanation.free),
            "not_in_profile": {
                name: followed.refused
                for name, followed in (("a", shown.explanation.one), ("b", shown.explanation.other))
                if followed.refused is not None
            },
        }
    return row | {"others": [name for name, _ in group.others.most_common(_OTHERS)]}


def tables(
    sides: tuple[Side, Side], found: Groups, small: Mapping[str, Shortest], accepted: Mapping[str, Accepted]
) -> Parts:
    """Return the groups, those in most traces first, and entries of the file that did not occur."""
    parts: list[Any] = []
    groups = found.ordered()
    if groups:
        parts.append(_listing(sides, found, groups, small, accepted))
    if len(groups) > _SHOWN:
        parts.append(f"and {len(groups) - _SHOWN} groups more (--json and -o have all)")
    return Parts(*parts, *(unmatched(entry) for entry in _unmatched(found, accepted)))


def _listing(
    sides: tuple[Side, Side],
    found: Groups,
    groups: list[Group],
    small: Mapping[str, Shortest],
    accepted: Mapping[str, Accepted],
) -> Listing:
    title = f"{sides[0].name} (A) and {sides[1].name} (B): differences in {counted(found.differing, 'traces')}"
    listing = Listing(
        ("what", "traces", "first", "A / B", "shown by", "why", "known"),
        title=escape(title),
        numbers=frozenset(("traces",)),
    )
    for group in groups[:_SHOWN]:
        shown = small.get(group.key)
        listing.add(
            escape(group.key),
            f"{group.traces:,}",
            "" if group.first is None else f"{group.first[0]} {group.first[1]}, step {group.first[2].event}",
            escape(values_of(group)),
            "" if shown is None else counted(len(shown.mine), "events"),
            "" if shown is None else escape(shown.explanation.why()),
            escape(accepted[group.key].reason) if group.key in accepted else "",
        )
    return listing


def values_of(group: Group) -> str:
    """Both values where the group was met first, and whether they are the same everywhere."""
    if group.first is None:
        return ""
    found = group.first[2]
    return f"{_short(found.left)} / {_short(found.right)}{', always' if group.always and group.times > 1 else ''}"


def _short(value: str) -> str:
    return value if len(value) <= _VALUE else f"{value[: _VALUE - 1]}…"


def _unmatched(found: Groups, accepted: Mapping[str, Accepted]) -> list[Accepted]:
    return [entry for key, entry in accepted.items() if key not in found.groups]
