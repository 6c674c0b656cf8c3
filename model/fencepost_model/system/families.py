"""The closed systems, with what is needed to read their configurations, explore them and compare them (E1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..explore.graph import Graph
from ..explore.interface import Properties
from ..tlc.dump import LabelledGraph, ValueNumbers
from . import abstraction, catalogue, closed, config
from .consumer import abstraction as consumer_abstraction
from .consumer import catalogue as consumer_catalogue
from .consumer import closed as consumer_closed
from .consumer import config as consumer_config
from .log import abstraction as log_abstraction
from .log import closed as log_closed
from .log import config as log_config
from .log import properties as log_properties
from .mixed import abstraction as mixed_abstraction
from .mixed import catalogue as mixed_catalogue
from .mixed import closed as mixed_closed
from .mixed import config as mixed_config
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
    others. ``makers``: how to read the specification's variables in a state."""

    name: str
    base: str
    modules: tuple[str, ...]
    definitions: tuple[str, ...]
    operators: tuple[str, ...]
    config: type[Any]
    from_constants: Callable[[Mapping[str, Any]], Any]
    build: Callable[[Any], Any]
    properties_of: Callable[..., Properties]
    variables: tuple[str, ...]
    abstract_graph: Callable[[Any, Graph, ValueNumbers], LabelledGraph]
    makers: Callable[[Any], Makers]


CLASSIC: Final = Family(
    name="classic",
    base="EagerQuiet",
    modules=("MCClassicGroup", "MCMutants"),
    definitions=("MCClassicGroup",),
    operators=("Clients", "MemberIds", "Partitions", "InstanceOf", "Allowed"),
    config=config.Config,
    from_constants=config.from_constants,
    build=closed.ClosedSystem,
    properties_of=catalogue.properties_of,
    variables=abstraction.VARIABLES,
    abstract_graph=abstraction.abstract_graph,
    makers=abstraction.makers,
)

CONSUMER: Final = Family(
    name="consumer",
    base="ConsumerQuiet",
    modules=("MCConsumerGroup", "MCConsumerMutants"),
    definitions=("MCConsumerGroup",),
    operators=("Clients", "MemberIds", "Partitions", "InstanceOf", "NewInstanceOf", "Allowed"),
    config=consumer_config.ConsumerConfig,
    from_constants=consumer_config.from_constants,
    build=consumer_closed.ConsumerSystem,
    properties_of=consumer_catalogue.properties_of,
    variables=consumer_abstraction.VARIABLES,
    abstract_graph=consumer_abstraction.abstract_graph,
    makers=consumer_abstraction.makers,
)

MIXED: Final = Family(
    name="mixed",
    base="MixedQuiet",
    modules=("MCMixedGroup", "MCMixedMutants"),
    definitions=("MixedTypes", "MCMixedGroup"),
    operators=("Clients", "MemberIds", "Partitions", "InstanceOf", "StartsAs", "Allowed"),
    config=mixed_config.MixedConfig,
    from_constants=mixed_config.from_constants,
    build=mixed_closed.MixedSystem,
    properties_of=mixed_catalogue.properties_of,
    variables=mixed_abstraction.VARIABLES,
    abstract_graph=mixed_abstraction.abstract_graph,
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
    properties_of=log_properties.properties_of,
    variables=log_abstraction.VARIABLES,
    abstract_graph=log_abstraction.abstract_graph,
    makers=log_abstraction.makers,
)

OFFSETS: Final = Family(
    name="offsets",
    base="OffsetsQuiet",
    modules=("MCOffsets", "MCOffsetMutants"),
    definitions=("MCOffsets",),
    operators=("Holders", "Parts", "PlainCommitters", "TransactionalCommitters", "Decisions", "Allowed"),
    config=offsets_config.OffsetsConfig,
    from_constants=offsets_config.from_constants,
    build=offsets_closed.OffsetsSystem,
    properties_of=offsets_properties.properties_of,
    variables=offsets_abstraction.VARIABLES,
    abstract_graph=offsets_abstraction.abstract_graph,
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
    """Return the system of a configuration, with its properties."""
    family = family_of(problem.config)
    system = family.build(problem.config)
    system.properties = family.properties_of(system, problem.properties, fair=problem.fair)
    return system


def family_named(name: str) -> Family:
    """Return the family of that name, or of that module. Raises KeyError."""
    for family in FAMILIES:
        if name == family.name:
            return family
    return family_of_module(name)
