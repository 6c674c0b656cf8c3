"""The intended protocol asks no profile; the differences of Kafka's releases are in packages named ``quirks``."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from inspect import getdoc, signature
from pathlib import Path

import pytest

import fencepost
import fencepost.coordinator
import fencepost.member
import fencepost_consumer.quirks  # noqa: F401  registers its quirks
from fencepost.protocol.profile import SWITCH_NAMES, Profile
from fencepost.quirks import Quirk, quirk, quirks_of, registered, varies
from fencepost.rulebook.book import citations
from fencepost_conformance.rulebook.texts import rule_book

PRODUCT = Path(fencepost.__file__).parents[1]
#: These modules define the switches, and the profile that has each.
NAMES_THEM = {Path("fencepost", "protocol", "profile.py"), Path("fencepost", "protocol", "profiles.py")}
#: The host makes the random choices, so they are outside the core; the server is a host.
OF_HOSTS = {"draws_no_hyphens"}
HOST = "fencepost_server"

QUIRKS = registered()
each_quirk = pytest.mark.parametrize("each", QUIRKS, ids=lambda each: f"{each.switch}-{each.function.__name__}")


def asked(source: str) -> Iterator[str]:
    """Return the switches that a program names, as an attribute or in a string, each with its line."""
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
        if name in SWITCH_NAMES:
            yield f"{node.lineno}: {name}"


def files() -> list[Path]:
    return [path.relative_to(PRODUCT) for path in sorted(PRODUCT.rglob("*.py")) if "quirks" not in path.parts]


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


def test_each_switch_has_a_quirk():
    assert {each.switch for each in QUIRKS} == set(SWITCH_NAMES) - OF_HOSTS


@each_quirk
def test_a_quirk_describes_kafkas_behaviour_and_names_the_rule(each: Quirk):
    text = getdoc(each.function)
    assert text, f"{each.function} has no docstring"
    assert list(citations(text, rule_book())), f"{each.function} names no rule of the book"


@each_quirk
def test_a_quirk_is_in_a_package_of_quirks_and_has_the_signature_of_its_function(each: Quirk):
    assert "quirks" in each.function.__module__.split(".")[:-1]

    def shape(function):
        return [(parameter.kind, parameter.default) for parameter in signature(function).parameters.values()]

    assert shape(each.function) == shape(each.intended)


@each_quirk
def test_a_quirk_is_taken_where_its_switch_alone_is_on(each: Quirk):
    quirks = quirks_of(Profile(name="one", **{each.switch: True}))
    assert quirks is not None
    assert quirks.instead[each.intended] is each.function


def test_no_class_of_quirks_is_one_of_the_core():
    """The core may be compiled, and interpreted code cannot subclass a compiled class."""
    modules = [module for name, module in sys.modules.items() if name.startswith("fencepost.") and "quirks" in name]
    own = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    made = [each for each in own if "quirks" in each.__module__.split(".")[:-1]]
    assert [each for each in made if any(base.__module__.startswith("fencepost.") for base in each.__mro__[1:])] == []


def test_no_function_has_two_quirks_of_one_switch():
    pairs = [(each.switch, each.intended) for each in QUIRKS]
    assert len(pairs) == len(set(pairs))


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
    [("fault_unheard_of", "no profile has a switch 'fault_unheard_of'"), (QUIRKS[0].switch, "is not marked")],
)
def test_a_quirk_of_nothing_is_refused(switch, wrong):
    with pytest.raises(ValueError, match=wrong):
        quirk(switch, of=files)(files)
