"""The table of ``docs/sweep.md``: the versions of each API that have passed on each broker."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from .brokers import ALL
from .run import Outcome
from .scenes import APIS

FILE: Final = "docs/sweep.md"
_BEGIN: Final = "| API |"

#: Versions of one broker, by Kafka's names of the APIs.
Column = Mapping[str, str]


def kafka_name(api: str) -> str:
    """``JoinGroup`` for kio's ``join_group``."""
    return "".join(word.capitalize() for word in api.split("_"))


def column(outcome: Outcome) -> dict[str, str]:
    """The versions that a sweep has reached, such as ``2–10``; as a list if some are missing."""
    cells = {}
    for api, (low, high) in outcome.announced.items():
        reached = [version for version in range(low, high + 1) if outcome.books.counts.get((api, version))]
        whole = len(reached) == high - low + 1
        cells[kafka_name(api)] = (
            (str(low) if low == high else f"{low}–{high}") if whole else ", ".join(map(str, reached))
        )
    return cells


def read(root: Path) -> dict[str, Column]:
    """The columns in the file, by broker."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in _table((root / FILE).read_text(encoding="utf-8"))
    ]
    brokers = rows[0][1:]
    return {broker: {row[0]: row[at] for row in rows[2:] if row[at] != "–"} for at, broker in enumerate(brokers, 1)}


def write(root: Path, columns: Mapping[str, Column]) -> None:
    """Write the table with these columns into the file."""
    path = root / FILE
    text = path.read_text(encoding="utf-8")
    old = "\n".join(_table(text))
    brokers = [broker for broker in ALL if broker in columns]
    rows = [
        _row("API", brokers),
        _row("---", ["---"] * len(brokers)),
        *(_row(api, [columns[broker].get(api, "–") for broker in brokers]) for api in map(kafka_name, APIS)),
    ]
    path.write_text(text.replace(old, "\n".join(rows)), encoding="utf-8")


def _table(text: str) -> list[str]:
    lines = text.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(_BEGIN))
    end = next((at for at, line in enumerate(lines) if at > begin and not line.startswith("|")), len(lines))
    return lines[begin:end]


def _row(name: str, cells: Collection[str]) -> str:
    return f"| {' | '.join([name, *cells])} |"
