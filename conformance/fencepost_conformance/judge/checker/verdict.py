"""The verdict of the checker about a trace."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from .. import verdict as verdicts
from ..promises import Breach
from .difference import Difference
from .instead import Instead

#: the checker's word, as the field says it; ``Verdict.verdict`` is the same in the words of all commands
Outcome: TypeAlias = Literal["accepted", "refused", "broken", "undecided"]

_VERDICTS: Final[dict[Outcome, verdicts.Verdict]] = {
    "accepted": verdicts.Verdict.PASSED,
    "refused": verdicts.Verdict.FAILED,
    "undecided": verdicts.Verdict.UNDECIDED,
    "broken": verdicts.Verdict.BROKEN,
}


def failed_inside(error: Exception, who: str = "checker") -> str:
    """One line about an exception of this part of the suite: its type and words, and the place that raised it."""
    frame = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" at {Path(each.filename).name}:{each.lineno}" for each in frame)
    words = " ".join(str(error).split())
    return f"the {who} itself failed{place}: {type(error).__name__}{f': {words}' if words else ''}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The first event of a group that no run of the model explains; ``line`` is its line in the file.

    ``seen`` is that event, ``allowed`` what was possible instead, ``rules`` the ids of the rules. ``instead``: assumed
    settings, with other values that would explain the event or move the refusal to a later line. ``difference``: the
    field that differs, with both values; None if the event is not an answer.
    """

    group_id: str
    line: int
    at_ms: int
    seen: str
    allowed: tuple[str, ...]
    rules: tuple[str, ...]
    instead: Instead | None = None
    difference: Difference | None = None

    @property
    def sentence(self) -> str:
        """The fault, in one sentence with both values and the rules."""
        if self.difference is not None:
            return self.difference.sentence(self.rules)
        cited = f" ({', '.join(self.rules)})" if self.rules else ""
        return f"{self.seen}; expected {' or '.join(self.allowed) or 'nothing'}{cited}"

    @property
    def expected(self) -> str:
        """The value that the field should have, or the event that was expected."""
        return self.difference.expected if self.difference is not None else " or ".join(self.allowed)

    @property
    def kind(self) -> str:
        """The key of refusals with the same cause: the API, the field, and both values of errors."""
        return self.difference.kind if self.difference is not None else f"rules {', '.join(self.rules)}"

    @property
    def hint(self) -> str:
        """Another possible cause of the refusal than the broker; empty if none is known."""
        return "" if self.instead is None else str(self.instead)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict about one trace of a file.

    ``broken``: it cannot be read, or is of a kind that is not checked here. ``undecided``: the checker cannot decide,
    for example because the search took too many steps. For both, ``reason`` says why and ``line`` where. The checker
    looked at ``events`` in ``seconds``. ``breaches``: the requests of clients that break a promise
    (``judge.members``), with their lines in the file; ``members``: the number of members that were judged so.
    """

    path: str
    name: str
    outcome: Outcome
    line: int = 0
    reason: str = ""
    refusals: tuple[Refusal, ...] = ()
    groups: int = 0
    events: int = 0
    steps: int = 0
    seconds: float = 0.0
    breaches: tuple[Breach, ...] = ()
    members: int = 0

    @property
    def of_clients(self) -> verdicts.Verdict:
        """The verdict about what clients sent; undecided if the trace shows no member from its join on."""
        if self.breaches:
            return verdicts.Verdict.FAILED
        return verdicts.Verdict.PASSED if self.members else verdicts.Verdict.UNDECIDED

    def with_clients(self) -> Verdict:
        """Return the same verdict, failed also if a client broke a promise."""
        return replace(self, outcome="refused") if self.breaches and self.outcome != "broken" else self

    @property
    def verdict(self) -> verdicts.Verdict:
        return _VERDICTS[self.outcome]

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "name": self.name,
            "verdict": self.verdict,
            "line": self.line,
            "reason": self.reason,
            "groups": self.groups,
            "events": self.events,
            "steps": self.steps,
            "seconds": round(self.seconds, 4),
            "clients": {
                "verdict": self.of_clients,
                "members": self.members,
                "breaches": [{"line": each.number, **each.as_json()} for each in self.breaches],
            },
            "refusals": [
                {
                    "group": refusal.group_id,
                    "line": refusal.line,
                    "at_ms": refusal.at_ms,
                    "event": refusal.seen,
                    "sentence": refusal.sentence,
                    "kind": refusal.kind,
                    "api": refusal.difference.api if refusal.difference else "",
                    "field": refusal.difference.field if refusal.difference else "",
                    "seen": refusal.difference.seen if refusal.difference else refusal.seen,
                    "expected": refusal.expected,
                    "allowed": list(refusal.allowed),
                    "rules": list(refusal.rules),
                    "hint": refusal.hint,
                }
                for refusal in self.refusals
            ],
        }
