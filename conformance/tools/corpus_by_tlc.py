"""Check each recording of the corpus with TLC, and store the verdicts, which docs/trace-validation.md shows.

``python -m tools.corpus_by_tlc --seconds 60`` writes ``docs/trace-validation.json``. It skips recordings that have a
row there and have not changed, so an interrupted run continues; ``--again`` checks all.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer

from fencepost_conformance.common import repository
from fencepost_conformance.judge.tla.validate import Choices, check_by_tlc

#: the most time for one search of one recording
SECONDS: Final = 60.0
_JOIN_GROUP, _CONSUMER_GROUP_HEARTBEAT = 11, 68
FAMILIES: Final = ("classic groups", "consumer groups", "groups of both protocols")
#: how the reason of a search that was stopped begins
SLOW: Final = "TLC had no verdict"


@dataclass(frozen=True, slots=True)
class Row:
    """The verdict of TLC about a recording. ``family``: one of FAMILIES; ``digest``: of the file; ``reason``: why the
    recording is undecided or refused; ``events``: how many TLC explained."""

    file: str
    digest: str
    family: str
    verdict: str
    reason: str
    events: int


def digest_of(path: Path) -> str:
    """Return the first 16 digits of the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def family_of(path: Path) -> str:
    """Return the family of a recording, from the requests in it."""
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        apis = {json.loads(line).get("api_key") for line in stream}
    return FAMILIES[(_CONSUMER_GROUP_HEARTBEAT in apis) * (1 + (_JOIN_GROUP in apis))]


def read_rows(path: Path) -> list[Row]:
    """Return the stored rows; none if the file does not exist."""
    return [Row(**each) for each in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def check(path: Path, seconds: float) -> Row:
    """Check one recording, with at most this time for each search. Raises CannotRun if TLC is missing."""
    ((found,),) = check_by_tlc([path], Choices(seconds=seconds))
    reason = found.reason.partition(": ")[2] or found.reason or "; ".join(each.sentence for each in found.refusals)
    return Row(path.name, digest_of(path), family_of(path), str(found.verdict), reason, found.events)


def tables(rows: Sequence[Row]) -> str:
    """Return the tables of the page: the verdicts by family, and why recordings are undecided."""
    return "\n".join((*_by_family(rows), "", *_reasons(rows), ""))


def _by_family(rows: Sequence[Row]) -> Iterable[str]:
    yield "| Recordings of | All | Passed | Failed | Stopped at the bound | Outside the specification |"
    yield "|---|---|---|---|---|---|"
    for name in (*FAMILIES, "all"):
        mine = [row for row in rows if name in (row.family, "all")]
        verdicts = Counter(row.verdict for row in mine)
        slow = sum(row.reason.startswith(SLOW) for row in mine)
        outside = verdicts["undecided"] - slow
        yield f"| {name} | {len(mine)} | {verdicts['passed']} | {verdicts['failed']} | {slow} | {outside} |"


def _reasons(rows: Sequence[Row]) -> Iterable[str]:
    yield "| Recordings | Reason for no verdict |"
    yield "|---|---|"
    reasons = Counter(row.reason for row in rows if row.verdict == "undecided")
    for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
        yield f"| {count} | {reason} |"


def main(
    seconds: Annotated[float, typer.Option(help="the most time for one search")] = SECONDS,
    again: Annotated[bool, typer.Option(help="check recordings that have a row too")] = False,
) -> None:
    """Check the corpus, and store the verdicts."""
    stored = repository.root() / "docs/trace-validation.json"
    known = {} if again else {(row.file, row.digest): row for row in read_rows(stored)}
    rows: list[Row] = []
    paths = sorted((repository.root() / "tests/corpus").glob("*.jsonl.gz"))
    for path in paths:
        rows.append(known.get((path.name, digest_of(path))) or check(path, seconds))
        print(rows[-1].file, rows[-1].verdict, rows[-1].reason, flush=True)
        done = {row.file for row in rows}
        kept = [row for row in known.values() if row.file not in done and row.file in {each.name for each in paths}]
        lines = ",\n".join(json.dumps(asdict(row)) for row in sorted([*rows, *kept], key=lambda row: row.file))
        stored.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(tables(rows))


if __name__ == "__main__":
    typer.run(main)
