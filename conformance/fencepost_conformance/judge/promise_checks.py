"""Where each promise of the catalogue is checked, and what breaks it, read from the sources and the manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from fencepost_model.promises import (
    ClassicGroupStep,
    ClassicGroupView,
    GroupStep,
    GroupView,
    HeartbeatView,
    JoinAnswerView,
    Promise,
    SyncAnswerView,
)
from fencepost_model.system.manifest import Entry, read_problem

from .cases.catalogue import chosen
from .client_cases.catalogue import chosen as chosen_of_clients

_SUITE: Final = Path(__file__).parents[1]

_GROUPS: Final = (ClassicGroupView, ClassicGroupStep, GroupView, GroupStep)
_ANSWERS: Final = (JoinAnswerView, SyncAnswerView, HeartbeatView)
_MODEL: Final = "Hypothesis machines of the model (tests/model)"
#: The modules that ask all promises about such views, and what runs them.
ASKED: Final = (
    (
        "fencepost_model.classic.invariants",
        (ClassicGroupView, ClassicGroupStep, JoinAnswerView, SyncAnswerView),
        _MODEL,
    ),
    ("fencepost_model.consumer.invariants", (GroupView, GroupStep, HeartbeatView), _MODEL),
    ("fencepost_conformance.generate.simulate.broken", _GROUPS, "simulation and product exploration"),
    ("fencepost_conformance.generate.simulate.broken", _ANSWERS, "simulation"),
    (
        "fencepost_conformance.generate.simulate.broken",
        (*_GROUPS, *_ANSWERS),
        "Hypothesis machines of the core (tests/quality)",
    ),
)
#: The modules that ask a few promises about the part of a group that they see, and what runs them.
ASKED_ALONE: Final = (
    ("fencepost_conformance.judge.findings.judge", ("INV-MEM-07",), "findings"),
    (
        "fencepost_conformance.judge.checker.consumer.others",
        ("INV-KIP-01", "INV-KIP-03"),
        "descriptions of groups in recorded traces",
    ),
)
#: The packages and modules whose checks see only a part of the state; they keep their own form and cite the id.
PARTIAL: Final = {
    "generate/simulate": "simulated members and answers",
    "judge/checker": "recorded traces, over the wire",
    "judge/findings": "findings",
    "judge/history": "the log of a group",
    "judge/promises.py": "requests of a client",
    "run/falsify": "falsified traces",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """A promise and its checks.

    ``asked``: what asks the predicate. ``partial``: for each kind of check that cites the promise, its files.
    ``cases``: named cases over the wire, of brokers and of clients. ``holds`` and ``siblings``: the configurations that
    check its property, and those that must break it. ``mutants``: those that a check finds by this promise. ``meant``:
    those that are made to break it, whichever check finds them.
    """

    promise: Promise[Any]
    asked: tuple[str, ...]
    partial: Mapping[str, tuple[str, ...]]
    cases: tuple[str, ...]
    holds: tuple[str, ...]
    siblings: tuple[str, ...]
    mutants: tuple[str, ...]
    meant: tuple[str, ...]

    @property
    def is_broken(self) -> bool:
        """Whether a configuration or a mutant shows that the promise can be broken."""
        return bool(self.siblings or self.mutants or self.meant)


def standing_of(
    promise: Promise[Any],
    entries: Iterable[Entry],
    killers: Mapping[str, Iterable[str]],
    rules: Mapping[str, Iterable[str]],
) -> Standing:
    """Return where the promise stands. ``killers``: for each mutant, the checks that find it, with the rules that they
    name. ``rules``: for each mutant, the rules that it is made to break."""
    own = [entry for entry in entries if entry.has_model and promise.stated(entry.protocol)]
    siblings = tuple(entry.name for entry in own if entry.breaks in promise.stated(entry.protocol))
    holds = tuple(
        entry.name
        for entry in own
        if entry.expected == "holds" and not _checked(entry).isdisjoint(promise.stated(entry.protocol))
    )
    cited = re.compile(rf"\b{re.escape(promise.id)}\b")
    return Standing(
        promise,
        (
            *(runs for _, views, runs in ASKED if promise.about in views),
            *(runs for _, ids, runs in ASKED_ALONE if promise.id in ids),
        ),
        {what: files for what, files in _citing(promise.id).items() if files},
        tuple(sorted(case.name for case in (*chosen(()), *chosen_of_clients(())) if promise.id in case.rules)),
        holds,
        siblings,
        tuple(sorted(name for name, found in killers.items() if any(map(cited.search, found)))),
        tuple(sorted(name for name, broken in rules.items() if promise.id in broken)),
    )


@cache
def _checked(entry: Entry) -> frozenset[str]:
    """Return the properties that the configuration checks."""
    return frozenset(read_problem(entry).properties)


@cache
def _citing(promise_id: str) -> dict[str, tuple[str, ...]]:
    """Return the files of each partial kind of check that cite the promise."""
    cited = re.compile(rf"\b{re.escape(promise_id)}\b")
    return {
        what: tuple(
            str(path.relative_to(_SUITE))
            for path in sorted([_SUITE / place] if place.endswith(".py") else (_SUITE / place).rglob("*.py"))
            if cited.search(path.read_text(encoding="utf-8"))
        )
        for place, what in PARTIAL.items()
    }
