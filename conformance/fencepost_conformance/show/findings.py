"""The result of replaying findings on targets, compared with the pinned table: as JSON, and on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from rich.console import Group
from rich.markup import escape
from rich.text import Text

from ..judge.findings.catalogue import Finding
from ..judge.findings.judge import Judged, Verdict
from ..judge.findings.table import MARKS, Pinned, Tickets, changed
from ..judge.verdict import Tally, Unsettled
from ..judge.verdict import Verdict as Passes
from .console import Result
from .listing import Listing

_STYLES: Final = {Verdict.PRESENT: "red", Verdict.GONE: "green", Verdict.DIFFERENT: "yellow"}
#: width of a column's heading; of a longer name the end is shown
_HEADING: Final = 16


@dataclass(frozen=True, slots=True)
class Outcome:
    """``found``: the verdicts by target and finding. ``broken``: why a target could not run. ``explained``: print what
    each judge saw."""

    chosen: Sequence[Finding]
    found: Mapping[str, Mapping[str, Judged]]
    pinned: Pinned
    tickets: Tickets
    broken: Mapping[str, str] = field(default_factory=dict)
    explained: bool = False

    def changed(self, target: str) -> list[str]:
        """Return the findings whose verdict differs from the pinned one; none for an unpinned target."""
        pinned = self.pinned.get(release_of(target))
        return [] if pinned is None else changed(pinned, self.found[target])

    def unlike(self, target: str) -> tuple[str, list[str]] | None:
        """For a build of Kafka without pinned verdicts: the newest pinned release, and the findings whose verdict
        differs from it."""
        newest = next(reversed(self.pinned), None)
        if newest is None or release_of(target) in self.pinned or not target.startswith("kafka:"):
            return None
        return newest, changed(self.pinned[newest], self.found[target])

    def result(self) -> Result:
        """For ``console.finish``."""
        verdicts = [row.verdict for rows in self.found.values() for row in rows.values()]
        differing = [(target, name) for target in self.found for name in self.changed(target)]
        counts: dict[str, int | float] = {"findings": len(self.chosen), "targets": len(self.found)}
        counts |= {each.value: verdicts.count(each) for each in Verdict}
        counts["changed"] = len(differing)
        details = {
            "findings": [self._row(each) for each in self.chosen],
            "looked_up": self.tickets.looked_up,
            "changed": [
                {
                    "target": target,
                    "finding": name,
                    "pinned": self.pinned[release_of(target)].get(name),
                    "verdict": self.found[target][name].verdict,
                }
                for target, name in differing
            ],
            "not_pinned": {
                target: self._unpinned(target) for target in self.found if release_of(target) not in self.pinned
            },
        }
        return Result("findings", self._tally(), counts, details, things="findings", unsettled=self._unsettled())

    def _tally(self) -> Tally:
        judged = Tally.of(self._verdict(target, name) for target, rows in self.found.items() for name in rows)
        return judged + Tally(broken=len(self.broken) * len(self.chosen))

    def _verdict(self, target: str, name: str) -> Passes:
        """Passed if the verdict is the pinned one; for an unpinned target, if the finding could be judged."""
        found, pinned = self.found[target][name].verdict, self.pinned.get(release_of(target))
        if pinned is not None and pinned.get(name) == found:
            return Passes.PASSED
        if found is Verdict.DIFFERENT:
            return Passes.UNDECIDED
        return Passes.PASSED if pinned is None else Passes.FAILED

    def _unsettled(self) -> list[Unsettled]:
        undecided = [
            Unsettled(Passes.UNDECIDED, f"{target} {name}", row.why, {"target": target, "finding": name})
            for target, rows in self.found.items()
            for name, row in rows.items()
            if self._verdict(target, name) is Passes.UNDECIDED
        ]
        return undecided + [
            Unsettled(Passes.BROKEN, f"{target} {each.name}", why, {"target": target, "finding": each.name})
            for target, why in self.broken.items()
            for each in self.chosen
        ]

    def _unpinned(self, target: str) -> dict[str, Any]:
        unlike = self.unlike(target)
        return {} if unlike is None else {"compared_with": unlike[0], "differing": unlike[1]}

    def _row(self, finding: Finding) -> dict[str, Any]:
        verdicts = {
            target: {"verdict": rows[finding.name].verdict, "why": rows[finding.name].why}
            for target, rows in self.found.items()
        }
        public = self.tickets.of(finding.name).model_dump()
        trace = f"docs/findings/{finding.path}.jsonl"
        return {"name": finding.name, "trace": trace, **public, "verdicts": verdicts}

    def shown(self) -> Group:
        """Return the table, its legend, and notes on the targets."""
        marks = ", ".join(f"{mark} {verdict}" for verdict, mark in MARKS.items())
        return Group(self._table(), Text(f"\n{marks}", style="dim"), *self._notes())

    def _table(self) -> Listing:
        table = Listing(("finding", *(_heading(target) for target in self.found), "public"))
        differing = {target: self.changed(target) for target in self.found}
        for each in self.chosen:
            cells = []
            for target, rows in self.found.items():
                verdict = rows[each.name].verdict
                mark = MARKS[verdict] + ("!" if each.name in differing[target] else "")
                cells.append(f"[{_STYLES[verdict]}]{mark}[/]")
            table.add(each.name, *cells, escape(self.tickets.of(each.name).words))
        return table

    def _notes(self) -> list[Text]:
        notes = []
        for target, rows in self.found.items():
            pinned = self.pinned.get(release_of(target))
            for name in self.changed(target):
                was = pinned.get(name) if pinned else None
                line = f"{target} {name}: {rows[name].verdict}, pinned {was or 'nothing'}. {rows[name].why}"
                notes.append(Text(line, style="red"))
            for name, row in rows.items():
                if row.why and (self.explained or (pinned is None and row.verdict is Verdict.DIFFERENT)):
                    notes.append(Text(f"{target} {name}: {row.why}"))
            if pinned is None:
                notes.append(Text(f"{target}: no verdicts are pinned for it{self._beside(target)}"))
        return notes

    def _beside(self, target: str) -> str:
        unlike = self.unlike(target)
        if unlike is None:
            return ""
        rows = self.found[target]
        others = ", ".join(f"{name} is {rows[name].verdict}" for name in unlike[1])
        return f"; its verdicts equal those of {unlike[0]}" + (f", but {others}" if others else "")


def release_of(target: str) -> str:
    """Return the release that a target's name means, as it is pinned; for other targets the name."""
    return target.removeprefix("kafka:")


def _heading(target: str) -> str:
    name = release_of(target)
    return name if len(name) <= _HEADING else f"…{name[1 - _HEADING :]}"
