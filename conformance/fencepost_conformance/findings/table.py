"""The table of findings by release that the project holds itself to, and what is publicly known of each finding.

``docs/findings/by-release.json`` is written by ``fencepost findings --pin``: release, finding, verdict.
``docs/findings/tickets.json`` is kept by hand: of each finding the public ticket, if one was found, and what it says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..console import CannotRun
from .catalogue import Finding
from .judge import Judged, Verdict

#: by release, then by finding
Pinned: TypeAlias = dict[str, dict[str, Verdict]]

TABLE: Final = "by-release.json"
TICKETS: Final = "tickets.json"
MARKS: Final = {Verdict.PRESENT: "●", Verdict.GONE: "·", Verdict.DIFFERENT: "?"}


class Reference(BaseModel):
    """A pull request of ``apache/kafka``, and the ticket that it names; there are some without."""

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
    """What is publicly known. ``known``: what tells of this very fault, None if nothing was found; ``near``: what is
    about something near it; ``says``: what they say."""

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
    """``looked_up``: when all of them were looked up last, as a date."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    looked_up: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
    findings: dict[str, Ticket]

    def of(self, name: str) -> Ticket:
        """Of one finding."""
        return self.findings.get(name, Ticket())


_PINNED: Final = TypeAdapter(Pinned)


def read_pinned(folder: Path) -> Pinned:
    """Empty if nothing was pinned yet. Raises ``CannotRun`` if it cannot be read."""
    path = folder / TABLE
    try:
        return _PINNED.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError as wrong:
        raise CannotRun(f"{path}: {wrong.errors()[0]['msg']}; write it anew with fencepost findings --pin") from None


def write_pinned(folder: Path, pinned: Pinned) -> None:
    """One line a finding, so that a change shows as what it is."""
    text = json.dumps(pinned, indent=1, ensure_ascii=False)
    (folder / TABLE).write_text(text + "\n", encoding="utf-8")


def read_tickets(folder: Path) -> Tickets:
    """Raises ``CannotRun`` if they cannot be read."""
    path = folder / TICKETS
    try:
        return Tickets.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as wrong:
        raise CannotRun(f"{path} cannot be read: {str(wrong).splitlines()[0]}") from None


def changed(pinned: Mapping[str, Verdict], found: Mapping[str, Judged]) -> list[str]:
    """The findings that are not as pinned for the release. One that was never pinned is not as pinned."""
    return [name for name, row in found.items() if pinned.get(name) is not row.verdict]


def as_markdown(findings: Sequence[Finding], pinned: Pinned, tickets: Tickets) -> str:
    """The table of ``docs/findings.md``, and what the tickets say."""
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
