"""A property is about the model only if its verdict comes from the model's own rules.

Two faults are excluded here. A sibling that must fail could change the property, or a helper that only properties call.
Then it fails, but the model was never asked. A property could also judge by a copy of a rule. Then the rule can change
and the property still holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

import pytest
from graphs import SPEC

from fencepost_model.consumer.state import ConsumerGroup
from fencepost_model.explore.interface import Properties
from fencepost_model.explore.search import Limits, explore
from fencepost_model.system import closed, commits, properties, steps
from fencepost_model.system.checking import check_python
from fencepost_model.system.closed import GROUP, ClosedSystem
from fencepost_model.system.config import ENVIRONMENT, Config
from fencepost_model.system.consumer import properties as consumer_properties
from fencepost_model.system.consumer import steps as consumer_steps
from fencepost_model.system.consumer.closed import COUNTERS, ConsumerSystem
from fencepost_model.system.consumer.config import ConsumerConfig
from fencepost_model.system.consumer.state import Heartbeat
from fencepost_model.system.families import FAMILIES, family_of
from fencepost_model.system.manifest import read_manifest, read_problem
from fencepost_model.system.mixed import closed as mixed_closed
from fencepost_model.system.mixed import properties as mixed_properties
from fencepost_model.system.mixed import steps as mixed_steps
from fencepost_model.system.mixed.closed import MixedSystem
from fencepost_model.system.mixed.config import MixedConfig
from fencepost_model.system.mutants import MUTANTS, Patches, mutated
from fencepost_model.system.values import SyncRequest

ENTRIES: Final = {entry.name: entry for entry in read_manifest(SPEC) if entry.has_model}
#: Modules that state properties; every other module under ``fencepost_model`` belongs to the model.
OF_PROPERTIES: Final = frozenset(
    {"properties", "steps", "witnesses", "gather", "fairness", "durable", "invariants", "promises"}
)
#: If no step asks for a guard within this many states, the guard counts as unused.
STATES: Final = 100_000


# ---- mutants change the model ----------------------------------------------------------------------------------------


class _AllCalled(Exception):
    """Raised when every function of the mutant has been called."""


def _home(owner: object) -> str:
    """Return the name of the module that defines this module or class."""
    return owner.__name__ if isinstance(owner, ModuleType) else str(getattr(owner, "__module__", ""))


def _is_of_the_model(owner: object) -> bool:
    first, *rest = _home(owner).split(".")
    return first == "fencepost_model" and not OF_PROPERTIES.intersection(rest)


def _not_called(patches: Patches, configurations: Sequence[Any]) -> set[str]:
    """Return the functions of the mutant that no step calls.

    The configurations are explored without any property. Every group includes the steps of commits here, though only
    some configurations have them.
    """
    missing = {name for _, name, _ in patches}

    def noting(name: str, replacement: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(replacement)
        def called(*args: Any, **options: Any) -> Any:
            missing.discard(name)
            if not missing:
                raise _AllCalled
            return replacement(*args, **options)

        return called

    for configuration in configurations:
        with ExitStack() as stack:
            for owner, name, replacement in patches:
                stack.enter_context(patch.object(owner, name, noting(name, replacement)))
            try:
                system = family_of(configuration).build(_committing(configuration))
                system.properties = Properties()
                explore(system, limits=Limits(states=STATES))
            except _AllCalled:
                return set()
    return missing


def _committing(configuration: Any) -> Any:
    if isinstance(configuration, Config | ConsumerConfig | MixedConfig):
        assert commits.COMMITS in ENVIRONMENT
        return replace(configuration, allowed=configuration.allowed | {commits.COMMITS})
    return configuration


def _of_mutant(name: str) -> list[Any]:
    """Return the configurations of the manifest with this mutant in place, shortest counter-example first."""
    using = [entry for entry in ENTRIES.values() if entry.module.stem.endswith("Mutants")]
    problems = [(entry.trace or 0, entry.name, read_problem(entry)) for entry in using]
    return [problem.config for _, _, problem in sorted(problems, key=lambda row: row[:2]) if name in problem.mutants]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_changes_a_rule_of_the_model(name: str) -> None:
    patches = MUTANTS[name]()
    assert [_home(owner) for owner, _, _ in patches if not _is_of_the_model(owner)] == []
    configurations = _of_mutant(name)
    assert configurations, "no configuration of the manifest uses it"
    assert _not_called(patches, configurations) == set()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (consumer_properties, "can_commit"),
        (consumer_steps, "is_stale"),
        (mixed_properties, "in_step"),
        (mixed_steps, "is_stale"),
        (properties, "existing"),
        (steps, "existing"),
    ],
)
def test_a_mutant_of_a_property_is_refused(owner: ModuleType, name: str) -> None:
    assert hasattr(owner, name)
    assert not _is_of_the_model(owner)


@pytest.mark.parametrize(
    ("owner", "name", "configuration"),
    [
        (MixedSystem, "may_join", "JoinRevokes"),
        (mixed_closed.Coordinator, "asks_to_rejoin", "KafkaLeavesJoinTimers"),
    ],
)
def test_a_mutant_of_a_function_that_only_properties_call_is_rejected(
    owner: type, name: str, configuration: str
) -> None:
    assert _is_of_the_model(owner)
    config = read_problem(ENTRIES[configuration]).config
    assert _not_called([(owner, name, getattr(owner, name))], [config]) == {name}
    called: list[str] = []
    right = getattr(owner, name)

    def counting(*args: Any) -> Any:
        called.append(name)
        return right(*args)

    with patch.object(owner, name, counting):
        check_python(ENTRIES[configuration])
    assert called


def test_no_property_looks_at_the_switches_of_a_profile() -> None:
    """A property that reads them would know which fault to excuse."""
    folder = Path(closed.__file__).parent
    stated = [path for path in folder.rglob("*.py") if path.stem in OF_PROPERTIES]
    assert len(stated) > len(FAMILIES)
    assert [str(path) for path in stated if ".profile" in path.read_text(encoding="utf-8")] == []


# ---- copies of rules agree with the model ----------------------------------------------------------------------------
#
# Some properties state again which requests the coordinator must refuse, so that they do not depend on its own check.
# Each of these statements is compared with the coordinator's answer in every situation that a configuration reaches.

FENCED: Final = frozenset(
    {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "UNRELEASED_INSTANCE_ID"}
)
Verdicts = Iterator[tuple[bool, bool]]  #: the verdict of the copy, and that of the model


def _states(name: str) -> tuple[Any, list[tuple[Any, ...]]]:
    """Return the system of a configuration with every guard of the context in place, and its states."""
    config = read_problem(ENTRIES[name]).config
    system = family_of(config).build(config)
    found = explore(system)
    assert found.complete
    return system, [found.graph.state(number) for number in range(found.states)]


def _classic_heartbeats(system: ClosedSystem, states: list[tuple[Any, ...]]) -> Verdicts:
    for number, endpoint in enumerate(system.endpoints):
        for group, client in {(state[GROUP], state[endpoint].client) for state in states}:
            if client.member_id and not group.undurable:
                error = system.coordinator.heartbeat(group, number, client).heartbeat
                instance = system.config.instance(number)
                yield steps.is_stale(group, client.member_id, instance, client.generation), error in FENCED


def _consumer_heartbeats(system: ConsumerSystem, states: list[tuple[Any, ...]]) -> Verdicts:
    def refused(group: Any, existing: int, heartbeat: Heartbeat) -> bool:
        return any(result.reply.error in FENCED for result in system.coordinator.get(group, heartbeat, existing))

    for endpoint in system.endpoints:
        for group, existing, client in {(s[GROUP], s[COUNTERS].existing, s[endpoint].client) for s in states}:
            if client.state == "member" and client.epoch > 0:
                heartbeat = Heartbeat(True, client.member_id, client.instance, client.epoch, client.owned, True)
                is_refused = refused(group, existing, heartbeat)
                yield not consumer_properties.in_step(group.hard, client), is_refused
                yield consumer_steps.is_stale(group.hard, heartbeat), is_refused


def _mixed_requests(system: MixedSystem, states: list[tuple[Any, ...]]) -> Verdicts:
    def refused(memory: Any, number: int, request: Any) -> bool:
        steps = system.coordinator.get(memory, number, request, "")
        return any(reply.error in FENCED for done in steps for to, reply in done.replies if to == number)

    for number, endpoint in enumerate(system.endpoints):
        for memory, process in {(state[GROUP], state[endpoint].process) for state in states}:
            in_step = mixed_properties.in_step(memory.group, process)
            if process.runs_classic and process.classic.owned:
                client = process.classic._replace(generation=process.classic.owned_generation)
                yield not in_step, system.coordinator.heartbeat(memory, number, client)[1] in FENCED
                if isinstance(memory.group, ConsumerGroup) and memory.group.members:
                    request = SyncRequest("SyncGroup", True, client.member_id, client.generation, frozenset())
                    yield mixed_steps.is_stale(memory.group, request), refused(memory, number, request)
            member = process.consumer
            if process.runs_consumer and member.state == "member" and isinstance(memory.group, ConsumerGroup):
                heartbeat = Heartbeat(True, member.member_id, member.instance, member.epoch, member.owned, True)
                yield not in_step, refused(memory, number, heartbeat)


#: Each of the first three is a configuration of a sibling, explored with its guard in place.
COPIES: Final[dict[str, Callable[..., Verdicts]]] = {
    "UnfencedHeartbeat": _classic_heartbeats,
    "AnyEpoch": _consumer_heartbeats,
    "AnyGeneration": _mixed_requests,
    "StaticCommits": _classic_heartbeats,
    "KafkaDowngradeOwes": _mixed_requests,
}
MORE: Final = ("StaticCommits", "KafkaDowngradeOwes")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.all] if name in MORE else []) for name in COPIES]
)
def test_a_rule_that_a_property_states_again_is_the_models(name: str) -> None:
    verdicts = set(COPIES[name](*_states(name)))
    assert verdicts == {(True, True), (False, False)}


@pytest.mark.parametrize("name", [name for name in COPIES if name not in MORE])
def test_a_rule_that_changes_in_the_model_alone_is_seen(name: str) -> None:
    (mutant,) = read_problem(ENTRIES[name]).mutants
    with mutated(mutant):
        verdicts = set(COPIES[name](*_states(name)))
    assert (True, False) in verdicts
