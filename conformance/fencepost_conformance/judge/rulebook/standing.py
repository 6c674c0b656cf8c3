"""The status of each rule: specified, modelled, implemented, tested in process, compared with Kafka, seen on the wire.

The first four are citations: a file of the spec, the model, the core or the tests names the rule's id. The others are
*observed*, and stored in ``evidence/*.json``. A rule is compared with Kafka at one of three levels (``Level``). A rule
that cannot occur (``coverage.catalogue.CANNOT_OCCUR``) counts at no level, whatever a file of evidence says.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fencepost.rulebook.book import Rule, cited_lines, read_book

from ...common.errors import CannotRun
from ..coverage.catalogue import CANNOT_OCCUR
from .scope import out_of_scope

#: Evidence by citation: column, folder below the repository, file endings.
CITED = (
    ("specified", ("spec",), (".tla", ".cfg")),
    ("modelled", ("model",), (".py",)),
    ("implemented", ("impl",), (".py",)),
    ("tested", ("tests", "conformance/fencepost_conformance/generate/simulate"), (".py",)),
)
#: tools that handle rules, and their tests: they neither implement nor test the rules that they name
NOT_OF_RULES = (
    "impl/fencepost/__init__.py",
    "impl/fencepost/rulebook/",
    "tests/unit/cli/",
    "tests/unit/report/",
    "tests/unit/rulebook/",
)
RECORDS_EVIDENCE = "records.json"
MEMBER_EVIDENCE = "member.json"
CORE_EVIDENCE = "core.json"
#: Evidence by observation: column, file, its section, and the module that writes it.
OBSERVED = (
    ("decided", "lockstep.json", "rules", "tools.evidence.traces"),
    ("decided", RECORDS_EVIDENCE, "rules", "tools.serde"),
    ("decided", MEMBER_EVIDENCE, "rules", "tools.evidence.member"),
    ("decided", CORE_EVIDENCE, "rules", "tools.evidence.core"),
    ("ran", MEMBER_EVIDENCE, "ran", "tools.evidence.member"),
    ("ran", CORE_EVIDENCE, "ran", "tools.evidence.core"),
    ("wire", "wire.json", "rules", "tools.evidence.traces"),
)
COLUMNS = tuple(name for name, *_ in CITED) + tuple(dict.fromkeys(name for name, *_ in OBSERVED))


class Level(StrEnum):
    """How far a rule is compared with Kafka."""

    DECIDED = "decided"
    RAN = "ran"
    NONE = "none"


#: The meaning of each level, for the table and for JSON.
MEANINGS = {
    Level.DECIDED: (
        "the rule determined the outcome of a step that agreed with Kafka: the model explains the step by it, the "
        "situation and outcome of the step are those of the rule, records are read and written by it as Kafka's serde "
        "does, or the step comes out differently when the statement that cites the rule is deleted or a mutant "
        "breaks the rule"
    ),
    Level.RAN: "only a function that cites the rule ran in a trace that agreed; the rule may have decided nothing",
    Level.NONE: "neither was seen",
}


@dataclass(frozen=True, slots=True)
class Standing:
    """A rule and its evidence: column to places, as ``file:line`` (citations), or to the number of steps (observed)."""

    rule: Rule
    places: Mapping[str, tuple[str, ...]]
    observed: Mapping[str, int]
    excused: str | None  #: why the rule is out of scope, None if it is in

    def has(self, column: str) -> bool:
        """Whether there is such evidence; of ``decided`` and ``ran`` only the higher one counts."""
        if column == Level.RAN:
            return self.level is Level.RAN
        return bool(self.places.get(column)) or self.observed.get(column, 0) > 0

    @property
    def level(self) -> Level:
        """How far the rule is compared with Kafka."""
        return next((level for level in (Level.DECIDED, Level.RAN) if self.observed.get(level, 0)), Level.NONE)

    @property
    def impossible(self) -> str | None:
        """Why the rule cannot occur in any trace, None if it can."""
        return CANNOT_OCCUR.get(self.rule.id)

    @property
    def missing(self) -> bool:
        """In scope, and neither implemented, modelled, specified nor tested anywhere."""
        return self.excused is None and not any(self.has(column) for column in COLUMNS)


def evidence_folder(root: Path) -> Path:
    return root / "conformance" / "evidence"


def read_standings(root: Path) -> list[Standing]:
    """Return every rule of the book below ``root``, in the order of the book, with its evidence.

    Raises ``CannotRun`` if a file of evidence does not have the form that the modules of ``OBSERVED`` write.
    """
    book = read_book(root / "docs" / "rules")
    cited: dict[str, dict[str, list[str]]] = {}
    for column, folders, endings in CITED:
        for folder in folders:
            for path in sorted((root / folder).rglob("*")):
                if path.suffix in endings and path.is_file():
                    name = path.relative_to(root).as_posix()
                    if name.startswith(NOT_OF_RULES):
                        continue
                    for rule_id, line in dict.fromkeys(cited_lines(path.read_text(encoding="utf-8"), book)):
                        cited.setdefault(rule_id, {}).setdefault(column, []).append(f"{name}:{line}")
    observed: dict[str, dict[str, int]] = {}
    for column, file, part, module in OBSERVED:
        path = evidence_folder(root) / file
        if path.is_file():
            try:
                counted: dict[str, int] = dict(json.loads(path.read_text(encoding="utf-8"))[part])
            except (ValueError, KeyError, TypeError) as reason:
                again = f"write it again with: python -m {module}"
                raise CannotRun(
                    f"{path} is not a file of evidence ({type(reason).__name__}: {reason}); {again}"
                ) from None
            for rule_id in counted.keys() - CANNOT_OCCUR.keys():
                row = observed.setdefault(rule_id, {})
                row[column] = row.get(column, 0) + counted[rule_id]
    return [
        Standing(
            rule,
            {column: tuple(files) for column, files in cited.get(rule_id, {}).items()},
            observed.get(rule_id, {}),
            out_of_scope(rule),
        )
        for rule_id, rule in book.items()
    ]
