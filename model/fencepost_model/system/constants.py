"""The values that a TLC configuration assigns to the constants of a closed system.

A configuration assigns constants by name to operators of the module (``Clients <- TwoClients``), or directly
(``Faults = 1``). Those operators are plain values, unions of them, or a function of the clients; this module
understands no other TLA+. An assignment that replaces an operator of the protocol itself is a mutant, or a fault of
Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ..tlc.values import parse
from .cfg import Assignment, Cfg
from .families import Family
from .kafka_faults import FAULTS
from .mutants import MUTANTS
from .problem import Problem


class _Named(str):
    """The name of a definition, as opposed to a string."""

    __slots__ = ()


def replaces(assignment: Assignment) -> bool:
    """Return whether the assignment replaces an operator of the protocol: a mutant, or a fault of Kafka."""
    replaced = f"{assignment.name} <- {assignment.value}"
    return assignment.by_name and (replaced in MUTANTS or replaced in FAULTS)


def values_of(
    assignments: Sequence[Assignment], family: Family, definitions: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the constants, and the mutants. Raises KeyError for a missing constant or definition,
    ParseError."""
    constants: dict[str, Any] = {}
    mutants: list[str] = []
    for each in assignments:
        replaced = f"{each.name} <- {each.value}"
        if each.by_name and replaced in MUTANTS:
            mutants.append(replaced)
        elif each.by_name and replaced in FAULTS:
            constants[FAULTS[replaced]] = True
        else:
            constants[each.name] = _Named(each.value) if each.by_name else parse(each.value)
    clients = _value(constants["Clients"], definitions) if "Clients" in constants else ()
    for name in family.operators:
        constants[name] = _value(constants[name], definitions, clients)
    return constants, mutants


def problem_of(cfg: Cfg, family: Family, definitions: Mapping[str, str], base: Sequence[Assignment] = ()) -> Problem:
    """Return the closed system of a configuration. ``base``: what it assigns unless it says otherwise. Raises KeyError
    for a missing constant or definition, ParseError, ValueError."""
    constants, mutants = values_of((*base, *cfg.assignments), family, definitions)
    specification = None if cfg.specification is None else cfg.specification.text
    names = tuple(each.text for each in cfg.properties)
    return Problem(family.from_constants(constants), names, specification == "FairSpec", tuple(mutants))


def _value(value: Any, definitions: Mapping[str, str], clients: Iterable[str] = ()) -> Any:
    return evaluate(definitions[value], definitions, clients) if isinstance(value, _Named) else value


def definitions_of(family: Family, spec: Path) -> dict[str, str]:
    """Return the definitions that configurations of the family can name."""
    found: dict[str, str] = {}
    for module in family.definitions:
        found |= read_definitions(spec / f"{module}.tla")
    return found


def read_definitions(module: Path) -> dict[str, str]:
    """Return the definitions of a module, name to text without comments."""
    text = re.sub(r"\\\*[^\n]*|\(\*.*?\*\)", "", module.read_text(encoding="utf-8"), flags=re.DOTALL)
    parts = re.split(r"^(\w+)\s*==", text, flags=re.MULTILINE)
    return {name: " ".join(body.split()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


_FUNCTION: Final = re.compile(r'\[c \\in Clients \|-> (?:IF c = ("\w*") THEN (.+) ELSE )?(.+)\]')

_NOTHING: Final = re.compile(r"\[\w+ \\in \{\} \|-> .+\]")  #: a function of nothing


def evaluate(text: str, definitions: Mapping[str, str], clients: Iterable[str] = ()) -> Any:
    """Evaluate a value, a name, a union of those, or a function of the clients. Raises ParseError for anything else."""
    text = re.split(r"\s-{4,}|\s={4,}", text)[0].strip()
    if "\\cup" in text:
        return frozenset[Any]().union(*(evaluate(part.strip(), definitions) for part in text.split("\\cup")))
    if text in definitions:
        return evaluate(definitions[text], definitions, clients)
    if _NOTHING.fullmatch(text):
        return {}
    match = _FUNCTION.fullmatch(text)
    if match is None:
        return parse(text)
    chosen, then, otherwise = match.groups()
    return {client: evaluate(then if f'"{client}"' == chosen else otherwise, definitions) for client in clients}
