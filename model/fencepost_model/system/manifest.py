"""The configurations of ``spec/manifest.json``, read for the model: constants, properties, expected result.

A TLC configuration assigns constants by name to operators of the module (``Clients <- TwoClients``). Those operators
are plain values, unions of them, or a function of the clients; this module understands no other TLA+. An assignment
that replaces an operator of the protocol itself is a mutant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from ..tlc.values import ParseError, parse
from .families import FAMILIES, family_of_module
from .mutants import MUTANTS
from .problem import Problem


class BadManifest(ValueError):
    """The manifest or a configuration cannot be read; the message names the file and the place."""


#: TLC explores so many states in a few seconds.
_SECONDS: Final = 12_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One configuration. ``distinct`` and ``trace`` (states of the shortest counter-example) are None if not pinned."""

    name: str
    module: Path
    cfg: Path
    about: str
    expected: Literal["holds", "violates", "refinement", "temporal", "deadlock"]
    breaks: str | None  #: the property that must fail
    distinct: int | None
    trace: int | None
    e1: bool
    size: Literal["small", "medium", "large"]
    deadlock: bool

    @property
    def protocol(self) -> Literal["classic", "consumer", "mixed", "log", "offsets"]:
        """The subject of the configuration: the protocol of its groups, or their log, or their offsets."""
        if "Offset" in self.module.stem:
            return "offsets"
        if "Log" in self.module.stem or "Durable" in self.module.stem:
            return "log"
        if "Mixed" in self.module.stem:
            return "mixed"
        return "consumer" if "Consumer" in self.module.stem else "classic"

    @property
    def short(self) -> bool:
        """Whether TLC needs only seconds, in which a JVM's second compiler costs more than it saves."""
        return self.size == "small" or (self.distinct is not None and self.distinct < _SECONDS)

    @property
    def has_model(self) -> bool:
        """Whether the model has this closed system too; ``Ownership`` alone is not one."""
        return any(self.module.stem in family.modules for family in FAMILIES)


def read_manifest(spec: Path) -> list[Entry]:
    """Return the entries of ``spec/manifest.json``. Raises BadManifest."""
    path = spec / "manifest.json"
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["configurations"]
        return [
            Entry(
                name=row["name"],
                module=spec / f"{row['module']}.tla",
                cfg=spec / row["cfg"],
                about=row["about"],
                expected=row["expected"],
                breaks=row["property"],
                distinct=row["distinct"],
                trace=row["trace"],
                e1=row["e1"],
                size=row["size"],
                deadlock="-deadlock" not in row["flags"],
            )
            for row in rows
        ]
    except (OSError, json.JSONDecodeError, KeyError, TypeError) as reason:
        raise BadManifest(f"{path}: {type(reason).__name__}: {reason}") from reason


def read_problem(entry: Entry) -> Problem:
    """Return the closed system of a configuration. Raises BadManifest."""
    try:
        return _problem(entry)
    except (OSError, KeyError, ParseError) as reason:
        raise BadManifest(f"{entry.cfg}: {type(reason).__name__}: {reason}") from reason


_SECTIONS: Final = ("SPECIFICATION", "CONSTANTS", "CONSTANT", "INVARIANTS", "INVARIANT", "PROPERTIES", "PROPERTY")


def _problem(entry: Entry) -> Problem:
    section = ""
    found: dict[str, list[str]] = {name: [] for name in _SECTIONS}
    for line in entry.cfg.read_text(encoding="utf-8").splitlines():
        words = line.split("\\*")[0].strip()
        if not words:
            continue
        head, _, rest = words.partition(" ")
        if head in _SECTIONS:
            section, words = head, rest.strip()
        if words and not section:
            raise BadManifest(f"{entry.cfg}: {words!r} comes before any of {', '.join(_SECTIONS)}")
        if words:
            found[section].append(words)
    family = family_of_module(entry.module.stem)
    definitions: dict[str, str] = {}
    for module in family.definitions:
        definitions |= read_definitions(entry.module.with_name(f"{module}.tla"))
    constants: dict[str, Any] = {}
    mutants: list[str] = []
    for assignment in (*found["CONSTANTS"], *found["CONSTANT"]):
        name, arrow, value = re.sub(r"<- *\[\w+\]", "<-", assignment).split()  # of an instance of that module
        if (mutant := f"{name} {arrow} {value}") in MUTANTS:
            mutants.append(mutant)
        elif arrow == "<-":
            constants[name] = value
        else:
            constants[name] = parse(value)
    clients = evaluate(definitions[constants["Clients"]], definitions) if "Clients" in constants else ()
    for name in family.operators:
        constants[name] = evaluate(definitions[constants[name]], definitions, clients)
    names = (*found["INVARIANTS"], *found["INVARIANT"], *found["PROPERTIES"], *found["PROPERTY"])
    return Problem(family.from_constants(constants), names, found["SPECIFICATION"] == ["FairSpec"], tuple(mutants))


def read_definitions(module: Path) -> dict[str, str]:
    """Return the definitions of a module, name to text without comments."""
    text = re.sub(r"\\\*[^\n]*|\(\*.*?\*\)", "", module.read_text(encoding="utf-8"), flags=re.DOTALL)
    parts = re.split(r"^(\w+)\s*==", text, flags=re.MULTILINE)
    return {name: " ".join(body.split()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


_FUNCTION: Final = re.compile(r'\[c \\in Clients \|-> (?:IF c = ("\w*") THEN (.+) ELSE )?(.+)\]')


def evaluate(text: str, definitions: Mapping[str, str], clients: Iterable[str] = ()) -> Any:
    """Evaluate a value, a name, a union of those, or a function of the clients. Raises ParseError for anything else."""
    text = re.split(r"\s-{4,}|\s={4,}", text)[0].strip()
    if "\\cup" in text:
        return frozenset[Any]().union(*(evaluate(part.strip(), definitions) for part in text.split("\\cup")))
    if text in definitions:
        return evaluate(definitions[text], definitions, clients)
    match = _FUNCTION.fullmatch(text)
    if match is None:
        return parse(text)
    chosen, then, otherwise = match.groups()
    return {client: evaluate(then if f'"{client}"' == chosen else otherwise, definitions) for client in clients}
