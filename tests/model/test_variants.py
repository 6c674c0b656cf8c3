"""The changes that a profile makes to the model: the rules read only the variant, and each switch is in a table."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, fields
from inspect import signature
from pathlib import Path
from subprocess import run
from types import ModuleType
from typing import Any

import pytest

import fencepost_model
from fencepost.protocol.profile import SWITCHES, Part
from fencepost.protocol.profiles import INTENDED, KAFKA_4_0
from fencepost.rulebook.book import citations
from fencepost_conformance.judge.rulebook.texts import rule_book
from fencepost_model.classic import switches as classic
from fencepost_model.consumer import switches as consumer
from fencepost_model.differences import SCALA, Differences, checked, rule, varied
from fencepost_model.member import variant as member
from fencepost_model.member.consumer import switches as client
from fencepost_model.mixed import switches as mixed
from fencepost_model.offsets import switches as offsets

MODEL = Path(fencepost_model.__file__).parent
FAMILIES: dict[type[Any], ModuleType] = {
    classic.ClassicVariant: classic,
    consumer.ConsumerVariant: consumer,
    mixed.MixedVariant: mixed,
    offsets.OffsetsVariant: offsets,
    member.MemberVariant: member,
    client.ClientVariant: client,
}
FIELDS = [(family, each) for family in FAMILIES for each in fields(family)]
each_field = pytest.mark.parametrize(
    ("family", "field"), FIELDS, ids=[f"{family.__name__}.{each.name}" for family, each in FIELDS]
)
CHANGES = [
    (family, switch, name, new)
    for family, module in FAMILIES.items()
    for switch, changes in module.DIFFERENCES.items()
    for name, new in changes.items()
]
#: Switches of what the model leaves out: a member's commits, positions and records, and the choices of a host.
NOT_MODELLED = {
    "fault_callbacks_overtake",
    "fault_close_keeps_callbacks",
    "fault_unknown_error_loses_records",
    "fault_gone_partition_voids_answer",
    "fault_old_look_up_serves",
    "fault_poll_skips_the_check",
    "fault_taken_partition_stays_queued",
    "fault_search_fails_twice",
    "old_backoff_jitter",
    "old_target_topics_not_watched",
    "old_dropped_topic_is_read",
    "old_revoked_is_initialised",
    "old_offsets_by_name",
    "old_unknown_topic_fails_lookup",
    "old_unknown_topic_id_is_final",
    "old_lag_waits_for_ever",
    "old_shared_look_up_is_lost",
    "old_close_waits_for_coordinator",
    "draws_no_hyphens",
}
#: They name switches: the tables, and the configurations of closed systems and promises that hold without a bug.
NAME_SWITCHES = {
    "classic/scala.py",
    "system/mixed/config.py",
    "consumer/invariants.py",
    # a promise names the switch of the fault of Kafka that breaks it
    "promises/classic_groups.py",
    "promises/consumer_groups.py",
    # a configuration of the specification names the switch of the fault that it plants
    "system/kafka_faults.py",
}


def undeclared(*tables: Differences) -> str:
    """Return a message about switches that no table has, or an empty string."""
    known = NOT_MODELLED.union(*tables)
    missing = [each.name for each in SWITCHES if each.name not in known]
    return f"no table of the model (switches.py) says what {', '.join(missing)} changes" if missing else ""


def switches_read(source: str) -> Iterator[str]:
    """Return each place in a program that names a switch or reads a profile's field."""
    names = {each.name for each in SWITCHES} | {SCALA}
    for node in ast.walk(ast.parse(source)):
        name = node.attr if isinstance(node, ast.Attribute) else node.value if isinstance(node, ast.Constant) else None
        if name in names:
            yield f"{node.lineno}: {name}"


def test_no_rule_reads_a_switch() -> None:
    paths = [
        path for path in sorted(MODEL.rglob("*.py")) if path.name not in ("variant.py", "switches.py", "differences.py")
    ]
    assert len(paths) > 150
    found = [
        f"{name}:{row}"
        for path in paths
        if (name := str(path.relative_to(MODEL))) not in NAME_SWITCHES
        for row in switches_read(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize("line", ["if d.profile.fault_timer_keys_collide: pass", "getattr(profile, 'scala')"])
def test_a_rule_that_reads_one_is_found(line: str) -> None:
    assert [*switches_read(f"import this\n{line}\n")] in (["2: fault_timer_keys_collide"], ["2: scala"])


def test_every_switch_has_a_table() -> None:
    assert undeclared(*(module.DIFFERENCES for module in FAMILIES.values())) == ""
    assert not NOT_MODELLED.intersection(*(module.DIFFERENCES for module in FAMILIES.values()))
    assert {each.name for each in SWITCHES} >= NOT_MODELLED


def test_a_switch_without_a_table_is_named() -> None:
    rest = [module.DIFFERENCES for family, module in FAMILIES.items() if family is not member.MemberVariant]
    assert undeclared(*rest) == "no table of the model (switches.py) says what fault_sync_load_is_thrown changes"


@dataclass(frozen=True, slots=True)
class Small:
    """A variant with one rule."""

    first: int = rule(1, "V-30", says="the first epoch")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"old_epochs": {"first": 0}}, "Small: no switch of a profile is called 'old_epochs'"),
        ({"old_epochs_start_at_zero": {"last": 0}}, "Small has no field last"),
        ({}, "Small: no switch changes first"),
    ],
)
def test_a_wrong_table_is_refused(table: Differences, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked(Small, table)


def test_without_switches_the_rules_are_those_intended() -> None:
    for module in FAMILIES.values():
        assert varied(module.INTENDED, module.DIFFERENCES, INTENDED) == module.INTENDED


def test_two_functions_for_one_rule_are_nested() -> None:
    """The quirk of the later row is outside, and each gets the next one."""
    table: dict[str, dict[str, Callable[..., Any]]] = {
        "old_epochs_start_at_zero": {"first": lambda otherwise: ["inner", *otherwise()]},
        "old_no_topic_ids": {"first": lambda otherwise: ["outer", *otherwise()]},
    }

    @dataclass(frozen=True, slots=True)
    class Nested:
        first: Callable[[], list[str]] = rule(lambda: ["intended"], "V-30", says="the first epoch")

    assert varied(Nested(), checked(Nested, table), KAFKA_4_0).first() == ["outer", "inner", "intended"]


@each_field
def test_a_field_has_rules_of_the_book_and_one_sentence(family: type[Any], field: Field[Any]) -> None:
    rules, says = field.metadata["rules"], field.metadata["says"]
    assert rules
    assert [*citations(" ".join(rules), rule_book())] != []
    assert [each for each in rules if each not in rule_book()] == []
    assert says[-1] not in ".;:"
    assert ". " not in says


def test_a_field_cites_the_rules_of_its_switches() -> None:
    """The rules of a switch are among those of the fields that it changes."""
    for switch in SWITCHES:
        cited = {
            cited
            for family, changed, name, _ in CHANGES
            if changed == switch.name
            for cited in next(each for each in fields(family) if each.name == name).metadata["rules"]
        }
        if cited:
            assert set(switch.rules) <= cited, switch.name


@pytest.mark.parametrize(("family", "switch", "name", "new"), CHANGES, ids=[f"{row[1]}-{row[2]}" for row in CHANGES])
def test_a_function_of_a_release_gets_the_function_that_it_replaces(
    family: type[Any], switch: str, name: str, new: Any
) -> None:
    intended = getattr(FAMILIES[family].INTENDED, name)
    assert callable(intended) == callable(new)
    if callable(new):
        first, *rest = signature(new).parameters
        assert first == "otherwise"
        assert "releases" in new.__module__ or "scala" in new.__module__
        if intended is not list:
            assert len(rest) == len(signature(intended).parameters)
    else:
        assert type(intended) is type(new)
        assert intended != new


def test_the_parts_of_the_switches() -> None:
    """The member's switches are in the tables of members, all others in those of the coordinator."""
    of_members = {each.name for each in SWITCHES if each.part is Part.MEMBER} - NOT_MODELLED
    assert {*member.DIFFERENCES, *client.DIFFERENCES} == of_members


@pytest.mark.parametrize(
    "module", ["switches", "variant", "classic.switches", "consumer.variant", "member.consumer.switches"]
)
def test_each_table_can_be_imported_first(module: str) -> None:
    run([sys.executable, "-c", f"import fencepost_model.{module}"], check=True)
