"""Where each rule stands: specified, modelled, implemented, tested in process, compared with Kafka, seen on the wire.

The first four are citations: a file of the spec, the model, the core or the tests names the rule's id. The last two are
*observed*: the lockstep run with Kafka's own coordinator and the check of the recorded traces each write down which
rules the model applied in steps that agreed, and the comparison with Kafka's serde by which rules records are read and
written alike; and which rules the code cites that ran where Kafka's own client, or coordinator, did the same
(``evidence/*.json``). A citation alone therefore never counts as compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fencepost.rulebook.book import Rule, cited_lines, read_book

from ..console import CannotRun
from .scope import out_of_scope

#: Evidence by citation: column, folder below the repository, file endings.
CITED = (
    ("specified", ("spec",), (".tla", ".cfg")),
    ("modelled", ("model",), (".py",)),
    ("implemented", ("impl",), (".py",)),
    ("tested", ("tests", "conformance/fencepost_conformance/simulate"), (".py",)),
)
#: these are the tools that speak of rules, and their tests: what they name they neither do nor test
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
#: Evidence by observation: column, file, and the module that writes it.
OBSERVED = (
    ("compared", "lockstep.json", "rulebook.evidence"),
    ("compared", RECORDS_EVIDENCE, "jvm.serde"),
    ("compared", MEMBER_EVIDENCE, "rulebook.member_evidence"),
    ("compared", CORE_EVIDENCE, "rulebook.core_evidence"),
    ("wire", "wire.json", "rulebook.evidence"),
)
COLUMNS = tuple(name for name, *_ in CITED) + tuple(dict.fromkeys(name for name, *_ in OBSERVED))


@dataclass(frozen=True, slots=True)
class Standing:
    """A rule and what realises it: column to places, as ``file:line`` (citations), or to the count of steps
    (observed)."""

    rule: Rule
    places: Mapping[str, tuple[str, ...]]
    observed: Mapping[str, int]
    excused: str | None  #: why the rule is out of scope, None if it is in

    def has(self, column: str) -> bool:
        return bool(self.places.get(column)) or self.observed.get(column, 0) > 0

    @property
    def missing(self) -> bool:
        """In scope, and neither implemented, modelled, specified nor tested anywhere."""
        return self.excused is None and not any(self.has(column) for column in COLUMNS)


def evidence_folder(root: Path) -> Path:
    return root / "conformance" / "evidence"


def read_standings(root: Path) -> list[Standing]:
    """Every rule of the book below ``root``, in the order of the book, with its evidence.

    Raises ``CannotRun`` if a file of evidence is not what ``rulebook.evidence`` and ``jvm.serde`` write.
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
    for column, file, module in OBSERVED:
        path = evidence_folder(root) / file
        if path.is_file():
            try:
                counted: dict[str, int] = dict(json.loads(path.read_text(encoding="utf-8"))["rules"])
            except (ValueError, KeyError, TypeError) as reason:
                again = f"make it again: python -m fencepost_conformance.{module}"
                raise CannotRun(f"{path} is no file of evidence ({type(reason).__name__}: {reason}); {again}") from None
            for rule_id, steps in counted.items():
                row = observed.setdefault(rule_id, {})
                row[column] = row.get(column, 0) + steps
    return [
        Standing(
            rule,
            {column: tuple(files) for column, files in cited.get(rule_id, {}).items()},
            observed.get(rule_id, {}),
            out_of_scope(rule),
        )
        for rule_id, rule in book.items()
    ]
