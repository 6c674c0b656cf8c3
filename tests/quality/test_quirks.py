"""The intended protocol asks no profile; the differences of Kafka's releases are in packages named ``quirks``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial
from inspect import Parameter, getdoc, getsource, signature
from itertools import combinations
from pathlib import Path
from textwrap import dedent
from types import FunctionType, ModuleType

import pytest

import fencepost
import fencepost.coordinator
import fencepost.member
import fencepost_consumer.quirks  # noqa: F401  registers its quirks
from fencepost.coordinator.kernel.rules import Rules
from fencepost.member.rules import MemberRules
from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.quirk_order import COMMUTING, ORDER
from fencepost.quirks import (
    Next,
    Quirk,
    Value,
    name_of,
    quirk,
    quirks_of,
    register_values,
    registered,
    registered_values,
    varies,
)
from fencepost.rulebook.book import citations
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_consumer.rules import ReaderRules

PRODUCT = Path(fencepost.__file__).parents[1]
#: These modules define the switches, the profile that has each, and the order of those that change one function.
NAMES_THEM = {
    Path("fencepost", "protocol", "profile.py"),
    Path("fencepost", "protocol", "profiles.py"),
    Path("fencepost", "quirk_order.py"),
}
#: The host makes the random choices, so they are outside the core; the server is a host.
OF_HOSTS = {"draws_no_hyphens"}
HOST = "fencepost_server"

#: The classes of rules; no two have a field of the same name.
RULES = (Rules, MemberRules, ReaderRules)
QUIRKS = registered()
VALUES = registered_values()
each_quirk = pytest.mark.parametrize("each", QUIRKS, ids=lambda each: f"{each.switches[0]}-{each.function.__name__}")
each_value = pytest.mark.parametrize("each", VALUES, ids=lambda each: f"{each.switch}-{each.field}")


def asked(source: str) -> Iterator[str]:
    """Return the switches that a program names, as an attribute or in a string, each with its line."""
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
        if name in SWITCH_NAMES:
            yield f"{node.lineno}: {name}"


def files() -> list[Path]:
    inside = (path.relative_to(PRODUCT) for path in sorted(PRODUCT.rglob("*.py")))
    return [path for path in inside if "quirks" not in path.parts]


def test_nothing_but_quirks_asks_for_a_switch():
    assert len(files()) > 100
    found = {
        (str(path), row)
        for path in files()
        for row in asked((PRODUCT / path).read_text(encoding="utf-8"))
        if path not in NAMES_THEM and not (path.parts[0] == HOST and row.split()[-1] in OF_HOSTS)
    }
    assert found == set()


@pytest.mark.parametrize(
    "line", ["x = step.profile.fault_timer_keys_collide", 'getattr(profile, "fault_timer_keys_collide")']
)
def test_a_file_that_asks_is_found(line):
    assert list(asked(f"import this\n{line}\n")) == ["2: fault_timer_keys_collide"]


def test_each_switch_has_a_quirk_or_a_value():
    changing = {switch for each in QUIRKS for switch in each.switches} | {each.switch for each in VALUES}
    assert changing == set(SWITCH_NAMES) - OF_HOSTS


@each_value
def test_a_value_describes_kafkas_behaviour_and_names_the_rule(each: Value):
    assert list(citations(each.says, rule_book())), f"the value of {each.field} names no rule of the book"
    [intended] = [field.default for rules in RULES for field in fields(rules) if field.name == each.field]
    assert type(each.value) is type(intended)
    assert each.value != intended


@each_quirk
def test_a_quirk_describes_kafkas_behaviour_and_names_the_rule(each: Quirk):
    text = getdoc(each.function)
    assert text, f"{each.function} has no docstring"
    assert list(citations(text, rule_book())), f"{each.function} names no rule of the book"


@each_quirk
def test_a_quirk_is_in_a_package_of_quirks_and_gets_the_next_function_before_the_arguments(each: Quirk):
    assert "quirks" in each.function.__module__.split(".")[:-1]

    def shape(function):
        return [(parameter.kind, parameter.default) for parameter in signature(function).parameters.values()]

    first, *others = shape(each.function)
    assert next(iter(signature(each.function).parameters)) in ("call_next", "_")
    assert first[1] is Parameter.empty
    assert others == shape(each.intended)


@each_quirk
def test_a_quirk_is_taken_where_one_of_its_switches_alone_is_on(each: Quirk):
    for switch in each.switches:
        quirks = quirks_of(Profile(name="one", **{switch: True}))
        assert quirks is not None
        taken = quirks.instead[each.intended]
        assert isinstance(taken, partial)
        assert (taken.func, taken.args) == (each.function, (each.intended,))


def only_chooses(function: FunctionType) -> bool:
    """Whether the function does nothing but return a constant, or nothing at all."""
    [definition] = ast.parse(dedent(getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    match definition.body[bool(getdoc(function)) :]:
        case [] | [ast.Pass()] | [ast.Return(value=None | ast.Constant())]:
            return True
    return False


def test_a_constant_is_a_value_of_the_rules_and_no_quirk():
    """``register_values`` is for these. A quirk beside others of its function may be one, as it ends their order."""
    alone = [each for each in QUIRKS if name_of(each.intended) not in ORDER]
    assert [each.function.__qualname__ for each in alone if only_chooses(each.function)] == []


def named(function: FunctionType) -> Iterator[object]:
    """Return the objects that the body of a function names: of its module, or of a module that it imports."""
    [definition] = ast.parse(dedent(getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    for node in (node for statement in definition.body for node in ast.walk(statement)):
        if isinstance(node, ast.Name):
            yield function.__globals__.get(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = function.__globals__.get(node.value.id)
            yield getattr(module, node.attr, None) if isinstance(module, ModuleType) else None


@each_quirk
def test_a_quirk_names_neither_another_one_nor_the_function_that_it_changes(each: Quirk):
    """A quirk gets the next function; otherwise the effect of a switch depends on other switches."""
    found = list(named(each.function))
    assert not [known for known in found if getattr(known, "__wrapped__", known) is each.intended]
    assert not [known for known in found if any(known is other.function for other in QUIRKS)]


def test_no_class_of_quirks_is_one_of_the_core():
    """The core may be compiled, and interpreted code cannot subclass a compiled class."""
    modules = [module for name, module in sys.modules.items() if name.startswith("fencepost.") and "quirks" in name]
    own = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    made = [each for each in own if "quirks" in each.__module__.split(".")[:-1]]
    assert [each for each in made if any(base.__module__.startswith("fencepost.") for base in each.__mro__[1:])] == []


def test_no_function_has_two_quirks_of_one_switch():
    pairs = [(switch, each.intended) for each in QUIRKS for switch in each.switches]
    assert len(pairs) == len(set(pairs))


def test_the_order_is_of_functions_that_several_switches_change():
    changed: dict[str, list[str]] = {}
    for each in QUIRKS:
        changed.setdefault(name_of(each.intended), []).append(each.switches[0])
    assert {name: tuple(switches) for name, switches in changed.items() if len(switches) > 1} == ORDER
    assert {frozenset(pair) for order in ORDER.values() for pair in combinations(order, 2)} >= COMMUTING


@varies
def twice_changed(work: Work) -> int:
    return 1


def test_an_undeclared_overlap_is_refused_when_it_is_registered():
    @quirk("fault_timer_keys_collide", of=twice_changed)
    def one(call_next: Next[int], work: Work) -> int:
        return call_next(work) + 1

    with pytest.raises(ValueError, match=r"fault_timer_keys_collide and old_no_topic_ids change .*twice_changed; add"):

        @quirk("old_no_topic_ids", of=twice_changed)
        def other(_: Next[int], work: Work) -> int:
            return 0

    assert twice_changed(Work(Profile(name="kafka", fault_timer_keys_collide=True, old_no_topic_ids=True))) == 2


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ([Value("fault_unheard_of", "value", 2, "")], "no profile has a switch 'fault_unheard_of'"),
        ([Value("old_no_topic_ids", "valeu", 2, "")], "Numbers has no field 'valeu', which old_no_topic_ids sets"),
        (
            [Value("old_no_topic_ids", "value", 2, ""), Value("old_partitions_deleted", "value", 3, "")],
            r"old_no_topic_ids and old_partitions_deleted set Numbers.value to different values",
        ),
    ],
)
def test_a_value_without_a_field_or_a_switch_or_with_a_rival_is_refused(values, wrong):
    with pytest.raises(ValueError, match=wrong):
        register_values(Numbers, *values)


@dataclass(frozen=True)
class Numbers:
    value: int = 1


class Work:
    def __init__(self, profile: Profile) -> None:
        self.quirks = quirks_of(profile)


@pytest.mark.parametrize("more", range(6))
def test_a_function_that_varies_takes_any_number_of_arguments(more):
    names = [f"a{number}" for number in range(more)]
    space = {}
    exec(f"def meant(work, {', '.join(names)}):\n    return [{', '.join(names)}]", space)
    chosen = varies(space["meant"])
    given = list(range(more))
    assert chosen(Work(Profile(name="intended")), *given) == given
    assert chosen(Work(Profile(name="kafka", fault_timer_keys_collide=True)), *given) == given


def test_one_with_keywords_too():
    @varies
    def meant(work, one, *, two=2):
        return one, two

    assert meant(Work(Profile(name="intended")), 1, two=3) == (1, 3)
    assert meant(Work(Profile(name="kafka", fault_timer_keys_collide=True)), 1) == (1, 2)


@pytest.mark.parametrize(
    ("switch", "wrong"),
    [("fault_unheard_of", "no profile has a switch 'fault_unheard_of'"), (QUIRKS[0].switches[0], "is not marked")],
)
def test_a_quirk_of_nothing_is_refused(switch, wrong):
    with pytest.raises(ValueError, match=wrong):
        quirk(switch, of=files)(files)
