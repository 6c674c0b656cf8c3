"""The pinned table of findings by release, and the public tickets on each finding.

``fencepost findings --pin`` writes ``docs/findings/by-release.json``: release, finding, verdict.
``docs/findings/tickets.json`` is kept by hand: the public ticket of each finding, if one was found, and its content.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...common.errors import CannotRun
from .catalogue import Finding
from .judge import Judged, Verdict

#: by release, then by finding
Pinned: TypeAlias = dict[str, dict[str, Verdict]]

TABLE: Final = "by-release.json"
TICKETS: Final = "tickets.json"
MARKS: Final = {Verdict.PRESENT: "●", Verdict.GONE: "·", Verdict.DIFFERENT: "?"}


class Reference(BaseModel):
    """A pull request of ``apache/kafka``, and the ticket that it names, if any."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ticket: Annotated[str, Field(pattern=r"^KAFKA-\d+$")] | None
    pull: Annotated[int, Field(gt=0)]

    @property
    def words(self) -> str:
        return self.ticket or f"#{self.pull}"

    @property
    def link(self) -> str:
        return f"[{self.words}](https://github.com/apache/kafka/pull/{self.pull})"


class Ticket(BaseModel):
    """Public knowledge. ``known``: references about this very fault, None if none was found; ``near``: references about
    similar faults; ``says``: their content."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    known: Reference | None = None
    near: tuple[Reference, ...] = ()
    says: str = ""

    @property
    def words(self) -> str:
        return self.known.words if self.known else "none found"

    @property
    def links(self) -> str:
        near = f"near: {', '.join(each.link for each in self.near)}" if self.near else ""
        return "; ".join(filter(None, [self.known.link if self.known else "none found", near]))


class Tickets(BaseModel):
    """``looked_up``: the date when all of them were last looked up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    looked_up: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    findings: dict[str, Ticket]

    def of(self, name: str) -> Ticket:
        """Return the ticket of one finding."""
        return self.findings.get(name, Ticket())


_PINNED: Final = TypeAdapter(Pinned)


def read_pinned(folder: Path) -> Pinned:
    """Read the pinned verdicts; empty if there are none yet. Raises ``CannotRun`` if they cannot be read."""
    path = folder / TABLE
    try:
        return _PINNED.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError as wrong:
        raise CannotRun(f"{path}: {wrong.errors()[0]['msg']}; run fencepost findings --pin to write it again") from None


def write_pinned(folder: Path, pinned: Pinned) -> None:
    """Write one line a finding, so that diffs are readable."""
    text = json.dumps(pinned, indent=1, ensure_ascii=False)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")


def read_tickets(folder: Path) -> Tickets:
    """Read the tickets; raises ``CannotRun`` if they cannot be read."""
    path = folder / TICKETS
    try:
        return Tickets.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as wrong:
        raise CannotRun(f"{path} cannot be read: {str(wrong).splitlines()[0]}") from None


def changed(pinned: Mapping[str, Verdict], found: Mapping[str, Judged]) -> list[str]:
    """Return the findings whose verdict differs from the pinned one, or that were never pinned."""
    return [name for name, row in found.items() if pinned.get(name) is not row.verdict]


def as_markdown(findings: Sequence[Finding], pinned: Pinned, tickets: Tickets) -> str:
    """Return the table of ``docs/findings.md``, and the contents of the tickets."""
    releases = list(pinned)
    lines = [
        "| Finding | " + " | ".join(releases) + f" | Public ({tickets.looked_up}) |",
        "|---" * (len(releases) + 2) + "|",
    ]
    said: dict[str, list[str]] = {}
    for each in findings:
        marks = [MARKS[pinned[release][each.name]] for release in releases]
        cells = [f"[`{each.name}`](findings/{each.path}.jsonl)", *marks, tickets.of(each.name).links]
        lines.append("| " + " | ".join(cells) + " |")
        if tickets.of(each.name).says:
            said.setdefault(tickets.of(each.name).says, []).append(f"`{each.name}`")
    return "\n".join([*lines, "", *(f"- {', '.join(names)}: {says}" for says, names in said.items())])
