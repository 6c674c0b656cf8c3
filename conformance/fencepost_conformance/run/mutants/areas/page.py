"""The page of the areas' faults: ``docs/planted-faults.md``."""

from __future__ import annotations

from .catalogue import FAULTS
from .fault import Area
from .kept import kept


def as_markdown() -> str:
    """A table of the counts, and one of the faults of each area, from the catalogue; runs nothing."""
    return "\n\n".join([_counts(), *(_area(area) for area in Area)])


def _counts() -> str:
    killers = kept()
    rows = ["| Area | Planted | Killed | Survived |", "|---|---|---|---|"]
    for area in Area:
        names = [name for name, fault in FAULTS.items() if fault.area is area]
        killed = sum(bool(killers[name]) for name in names)
        rows.append(f"| {area} | {len(names)} | {killed} | {len(names) - killed} |")
    killed = sum(map(bool, killers.values()))
    return "\n".join([*rows, f"| **all** | {len(FAULTS)} | {killed} | {len(FAULTS) - killed} |"])


def _area(area: Area) -> str:
    killers = kept()
    rows = [
        f"## Faults: {area}",
        "",
        "| Fault | What the program does | How a user sees it | Killed by |",
        "|---|---|---|---|",
    ]
    for name, fault in FAULTS.items():
        if fault.area is area:
            words = f"{fault.words} ({fault.source})" if fault.source else fault.words
            cells = (f"`{name}`", words, fault.shown, ", ".join(f"`{each}`" for each in killers[name]) or "no test")
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)
