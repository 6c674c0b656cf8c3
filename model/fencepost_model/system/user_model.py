"""Models that the user writes: a TLC configuration file of a family, or a Python file that changes one of ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from fencepost.protocol.profiles import PROFILES

from ..tlc.values import Function
from .cfg import Assignment, BadConfiguration, Cfg, UnknownName, read_cfg
from .constants import definitions_of, problem_of, read_definitions, replaces, values_of
from .families import FAMILIES, Family, family_named, family_of
from .manifest import Entry, read_manifest, read_problem
from .problem import Problem
from .user_properties import UserProperty, properties_in, run_file

_SPECIFICATIONS: Final = ("Spec", "FairSpec")
_PARTITIONS: Final = ("partitions", "parts")


@dataclass(frozen=True, slots=True)
class UserModel:
    """A model that the user wrote. ``own``: the properties that its file defines beside those of the family."""

    problem: Problem
    own: tuple[UserProperty, ...] = ()


def user_entry(path: Path, spec: Path) -> Entry:
    """Return the entry of a user's file, without an expected result. Raises BadConfiguration, OSError."""
    module = spec / f"{_family_of_file(path, spec).modules[-1]}.tla"
    return Entry(
        name=str(path),
        module=module,
        cfg=path,
        about="a configuration that the user wrote",
        expected="holds",
        breaks=None,
        distinct=None,
        trace=None,
        e1=False,
        size="small",
        deadlock=False,
    )


def is_of_user(entry: Entry) -> bool:
    """Return whether the entry is a user's file and not of the manifest."""
    return entry.name == str(entry.cfg)


def read_model(entry: Entry) -> UserModel:
    """Return the model of an entry, of the user or of the manifest. Raises BadConfiguration, BadManifest, OSError."""
    if not is_of_user(entry):
        return UserModel(read_problem(entry))
    spec = entry.module.parent
    return _changed(entry.cfg, spec) if entry.cfg.suffix == ".py" else UserModel(_configured(entry.cfg, spec))


def _family_of_file(path: Path, spec: Path) -> Family:
    if path.suffix == ".py":
        return family_of(_base(path, run_file(path), spec).config)
    return _family(read_cfg(path))


# ---- a TLC configuration ---------------------------------------------------------------------------------------------


def _family(cfg: Cfg) -> Family:
    names = tuple(family.name for family in FAMILIES)
    if cfg.subject is None:
        raise BadConfiguration(f"{cfg.path}:1: no family; begin with \\* Family: and one of {', '.join(names)}")
    try:
        return family_named(cfg.subject.text)
    except KeyError:
        raise UnknownName(cfg.at(cfg.subject.line), "family", cfg.subject.text, names) from None


def base_of(family: Family, spec: Path) -> tuple[Assignment, ...]:
    """Return what a configuration of the family assigns unless it says otherwise."""
    return read_cfg(spec / "cfg" / f"{family.base}.cfg").assignments


def missing(cfg: Cfg, spec: Path) -> list[str]:
    """Return the lines that a configuration leaves out and TLC needs."""
    assigned = {each.name for each in cfg.assignments}
    rest = [each for each in base_of(_family(cfg), spec) if each.name not in assigned]
    lines = [f"{each.name} {'<-' if each.by_name else '='} {each.value}" for each in rest]
    head = [] if cfg.specification else ["SPECIFICATION Spec"]
    return [*head, *(["CONSTANTS", *lines] if lines else [])]


def definitions_for(cfg: Cfg, family: Family, spec: Path) -> dict[str, str]:
    """Return what a configuration may assign by name: the family's definitions, and those of a module of the same name
    beside it."""
    module = cfg.path.with_suffix(".tla")
    return definitions_of(family, spec) | (read_definitions(module) if module.is_file() else {})


def _configured(path: Path, spec: Path) -> Problem:
    cfg = read_cfg(path)
    family = _family(cfg)
    base = base_of(family, spec)
    definitions = definitions_for(cfg, family, spec)
    known = {each.name: each for each in base}
    for each in cfg.assignments:
        if replaces(each):
            continue
        where = cfg.at(each.line)
        if each.name not in known:
            raise UnknownName(where, f"constant of the {family.name} family", each.name, tuple(known))
        if each.by_name and each.value not in definitions:
            raise UnknownName(where, "definition", each.value, tuple(definitions))
    if cfg.specification is not None and cfg.specification.text not in _SPECIFICATIONS:
        raise UnknownName(cfg.at(cfg.specification.line), "specification", cfg.specification.text, _SPECIFICATIONS)
    try:
        _check_kinds(cfg, family, definitions, base)
        found = problem_of(cfg, family, definitions, base)
        check_values(found.config)
    except WrongValue as wrong:
        places = {each.name.lower(): each for each in cfg.assignments}
        place = places.get(wrong.constant.replace("_", "").lower())
        where = f"{path}: {wrong.constant}" if place is None else f"{cfg.at(place.line)}: {place.name}"
        raise BadConfiguration(f"{where}: {wrong.why}") from None
    except KeyError as wrong:
        raise BadConfiguration(f"{path}: no value for {wrong.args[0]}") from None
    except ValueError as wrong:
        raise BadConfiguration(f"{path}: {wrong}") from None
    return found


class WrongValue(ValueError):
    """A constant has a value that it cannot have."""

    def __init__(self, constant: str, why: str) -> None:
        super().__init__(f"{constant}: {why}")
        self.constant, self.why = constant, why


def _check_kinds(cfg: Cfg, family: Family, definitions: Mapping[str, str], base: tuple[Assignment, ...]) -> None:
    """Check that each constant has a value of the same kind as in the base. Raises WrongValue."""
    usual, _ = values_of(base, family, definitions)
    clients = [each for each in cfg.assignments if each.name in ("Clients", "Holders")]  # others are functions of them
    for each in cfg.assignments:
        if replaces(each):
            continue
        try:
            found, _ = values_of((*base, *clients, each), family, definitions)
            if _kind(found[each.name]) == _kind(usual[each.name]):
                family.from_constants(found)
                continue
        except KeyError as wrong:
            raise WrongValue(each.name, f"no value for {wrong.args[0]}") from None
        except ValueError as wrong:
            raise WrongValue(each.name, str(wrong)) from None
        raise WrongValue(each.name, f"{each.value} is not {_kind(usual[each.name])}")


def _kind(value: Any) -> str:
    if isinstance(value, Function | dict):
        return "a function"
    names = {bool: "TRUE or FALSE", int: "a number", str: "a string", frozenset: "a set", tuple: "a sequence"}
    return next(name for kind, name in names.items() if isinstance(value, kind))


# ---- a Python file ---------------------------------------------------------------------------------------------------

_BASE: Final = "based_on"


def _base(path: Path, names: Mapping[str, Any], spec: Path) -> Problem:
    known = {entry.name: entry for entry in read_manifest(spec) if entry.has_model}
    base = names.get(_BASE)
    if base is None:
        raise BadConfiguration(f'{path}: no base; begin with {_BASE} = "EagerQuiet", or another configuration')
    if base not in known:
        raise UnknownName(str(path), "configuration", str(base), tuple(known))
    return read_problem(known[base])


def _changed(path: Path, spec: Path) -> UserModel:
    names = run_file(path)
    base = _base(path, names, spec)
    own = tuple(properties_in(path, names))
    config, properties, fair = base.config, base.properties, base.fair
    constants = {each.name: getattr(config, each.name) for each in fields(config)}
    for name, value in names.items():
        if name.startswith("_") or name == _BASE or isinstance(value, FunctionType | ModuleType | type):
            continue
        if name == "properties":
            properties = tuple(value)
        elif name == "fair":
            fair = bool(value)
        elif name == "profile":
            if value not in PROFILES:
                raise UnknownName(str(path), "profile", str(value), tuple(PROFILES))
            config = config.with_profile(PROFILES[value])
        elif name in constants:
            config = _with(path, config, name, value)
        else:
            known = (_BASE, "properties", "fair", *constants)
            raise UnknownName(str(path), f"constant of the {family_of(config).name} family", name, known)
    return UserModel(Problem(config, properties, fair, base.mutants), own)


def _with(path: Path, config: Any, name: str, value: Any) -> Any:
    """Return the configuration with one constant changed. Lists, sets and functions of the clients are taken too."""
    old = getattr(config, name)
    if isinstance(old, frozenset) and isinstance(value, set | list | tuple):
        value = frozenset(value)
    elif name == "budgets" and isinstance(value, dict):
        value = tuple(sorted(value.items()))
    elif isinstance(old, tuple) and isinstance(value, dict):
        if unknown := [each for each in value if each not in config.clients]:
            raise UnknownName(f"{path}: {name}", "client", str(unknown[0]), config.clients)
        value = tuple(value.get(client, "") for client in config.clients)
    elif isinstance(old, tuple) and isinstance(value, list):
        value = tuple(value)
    try:
        changed = replace(config, **{name: value})
        check_values(changed)
    except (TypeError, ValueError) as wrong:
        raise BadConfiguration(f"{path}: {wrong}") from None
    return changed


def check_values(config: Any) -> None:
    """Check that each constant has a value of its kind. Raises WrongValue."""
    hints = get_type_hints(type(config))
    for each in fields(config):
        value, hint = getattr(config, each.name), hints[each.name]
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise WrongValue(each.name, f"{value!r} is none of {', '.join(get_args(hint))}")
        elif type(value) is not (get_origin(hint) or hint):
            raise WrongValue(each.name, f"{value!r} is not of the type {(get_origin(hint) or hint).__name__}")
        if isinstance(value, int) and value < 0:
            raise WrongValue(each.name, f"{value} is less than 0")
        if each.name in _PARTITIONS and value != tuple(f"p{number}" for number in range(1, len(value) + 1)):
            raise WrongValue(each.name, f"{', '.join(value)}: partitions are p1, p2, … in this order")
