"""The closed systems, with what is needed to read their configurations, explore them and compare them (E1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from . import abstraction, closed, config, properties, steps, witnesses
from .consumer import abstraction as consumer_abstraction
from .consumer import closed as consumer_closed
from .consumer import config as consumer_config
from .consumer import properties as consumer_properties
from .consumer import steps as consumer_steps
from .consumer import witnesses as consumer_witnesses
from .fairness import of_system
from .gather import Part, gather
from .log import abstraction as log_abstraction
from .log import closed as log_closed
from .log import config as log_config
from .log import properties as log_properties
from .mixed import abstraction as mixed_abstraction
from .mixed import closed as mixed_closed
from .mixed import config as mixed_config
from .mixed import properties as mixed_properties
from .mixed import steps as mixed_steps
from .mixed import witnesses as mixed_witnesses
from .offsets import abstraction as offsets_abstraction
from .offsets import closed as offsets_closed
from .offsets import config as offsets_config
from .offsets import properties as offsets_properties
from .problem import Problem
from .variables import Makers


@dataclass(frozen=True, slots=True)
class Family:
    """A closed system. ``modules``: those of the specification. ``definitions``: those that define the ``operators``
    that configurations assign to constants by name. ``build`` and the other functions take the result of
    ``from_constants``. ``base``: the configuration whose constants a user's configuration has unless it assigns
    others. ``catalogue``: the properties by name, those that must hold and witnesses that must not. ``fair``: the
    protocol's own actions. ``makers``: how to read the specification's variables in a state."""

    name: str
    base: str
    modules: tuple[str, ...]
    definitions: tuple[str, ...]
    operators: tuple[str, ...]
    config: type[Any]
    from_constants: Callable[[Mapping[str, Any]], Any]
    build: Callable[[Any], Any]
    catalogue: Mapping[str, Callable[[Any], Iterable[Part]]]
    fair: frozenset[str]
    variables: tuple[str, ...]
    makers: Callable[[Any], Makers]


CLASSIC: Final = Family(
    name="classic",
    base="EagerQuiet",
    modules=("MCClassicGroup", "MCClassicKafka", "MCMutants"),
    definitions=("MCClassicGroup", "Environment"),
    operators=("Clients", "MemberIds", "Partitions", "InstanceOf", "Allowed", "Budgets"),
    config=config.Config,
    from_constants=config.from_constants,
    build=closed.ClosedSystem,
    catalogue={**properties.CATALOGUE, **steps.STEPS, **witnesses.WITNESSES},
    fair=properties.SYSTEM,
    variables=abstraction.VARIABLES,
    makers=abstraction.makers,
)

CONSUMER: Final = Family(
    name="consumer",
    base="ConsumerQuiet",
    modules=("MCConsumerGroup", "MCConsumerKafka", "MCConsumerMutants"),
    definitions=("MCConsumerGroup", "Environment"),
    operators=("Clients", "MemberIds", "Partitions", "InstanceOf", "NewInstanceOf", "Allowed", "Budgets"),
    config=consumer_config.ConsumerConfig,
    from_constants=consumer_config.from_constants,
    build=consumer_closed.ConsumerSystem,
    catalogue={**consumer_properties.CATALOGUE, **consumer_steps.STEPS, **consumer_witnesses.WITNESSES},
    fair=consumer_properties.SYSTEM,
    variables=consumer_abstraction.VARIABLES,
    makers=consumer_abstraction.makers,
)

MIXED: Final = Family(
    name="mixed",
    base="MixedQuiet",
    modules=("MCMixedGroup", "MCMixedKafka", "MCMixedMutants"),
    definitions=("MixedTypes", "MCMixedGroup", "Environment"),
    operators=("Clients", "MemberIds", "Partitions", "InstanceOf", "StartsAs", "Allowed", "Budgets"),
    config=mixed_config.MixedConfig,
    from_constants=mixed_config.from_constants,
    build=mixed_closed.MixedSystem,
    catalogue={**mixed_properties.CATALOGUE, **mixed_steps.STEPS, **mixed_witnesses.WITNESSES},
    fair=mixed_properties.SYSTEM,
    variables=mixed_abstraction.VARIABLES,
    makers=mixed_abstraction.makers,
)

LOG: Final = Family(
    name="log",
    base="LogQuiet",
    modules=("MCGroupLog", "MCGroupLogMutants"),
    definitions=("MCGroupLog",),
    operators=("Brokers", "Keys", "Values", "Allowed"),
    config=log_config.LogConfig,
    from_constants=log_config.from_constants,
    build=log_closed.LogSystem,
    catalogue=log_properties.CATALOGUE,
    fair=frozenset(),
    variables=log_abstraction.VARIABLES,
    makers=log_abstraction.makers,
)

OFFSETS: Final = Family(
    name="offsets",
    base="OffsetsQuiet",
    modules=("MCOffsets", "MCOffsetMutants"),
    definitions=("MCOffsets", "Environment"),
    operators=("Holders", "Parts", "PlainCommitters", "TransactionalCommitters", "Decisions", "Allowed", "Budgets"),
    config=offsets_config.OffsetsConfig,
    from_constants=offsets_config.from_constants,
    build=offsets_closed.OffsetsSystem,
    catalogue=offsets_properties.CATALOGUE,
    fair=offsets_properties.SYSTEM,
    variables=offsets_abstraction.VARIABLES,
    makers=offsets_abstraction.makers,
)

FAMILIES: Final = (CLASSIC, CONSUMER, MIXED, LOG, OFFSETS)


def family_of_module(module: str) -> Family:
    """Return the family of a module. Raises KeyError for a module without a closed system."""
    for family in FAMILIES:
        if module in family.modules:
            return family
    raise KeyError(module)


def family_of(configuration: object) -> Family:
    """Return the family of a configuration that its ``from_constants`` returned."""
    return next(family for family in FAMILIES if isinstance(configuration, family.config))


def system_of(problem: Problem) -> Any:
    """Return the system of a configuration, with its properties. Raises ValueError for an unknown property."""
    family = family_of(problem.config)
    system = family.build(problem.config)
    fairness = of_system(family.fair) if problem.fair and family.fair else ()
    system.properties = gather(system, problem.properties, family.catalogue, fairness)
    return system


def family_named(name: str) -> Family:
    """Return the family of that name, or of that module. Raises KeyError."""
    for family in FAMILIES:
        if name == family.name:
            return family
    return family_of_module(name)
