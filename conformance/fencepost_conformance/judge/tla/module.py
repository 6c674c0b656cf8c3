"""The generated module ``TraceData`` and the configuration that TLC checks a trace with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.protocol.profile import Profile
from fencepost_model.system.kafka_faults import CLASSIC_FAULTS, CONSUMER_FAULTS

from .text import Constants, Data, expression

#: the searches of a trace, from the quickest on: the next one is for traces that the one before does not explain
#: the prefix of the definitions of constants
_NAME: Final = "Trace"
SEARCHES: Final = ("quick", "full", "report")


@dataclass(frozen=True, slots=True)
class Family:
    """One of the modules that validate traces: its name, its constants apart from those of a trace, and Kafka's faults,
    each the replacement of an operator, with the switch of profiles."""

    module: str
    constants: tuple[str, ...]
    faults: tuple[tuple[str, str], ...]


#: constants about clients and faults, which traces have no use for
_COMMON: Final = (
    "Clients <- RequestNames",
    "Deliverable <- TraceDeliverable",
    "Faults = 0",
    "Budgets <- Shared",
    "Reorder = FALSE",
    "SlowAppends = TRUE",
    "Allowed = {}",
)
CLASSIC: Final = Family(
    "TraceClassic",
    (
        *_COMMON,
        "InstanceOf <- InstanceInRequest",
        "First <- TraceFirst",
        "Cooperative = FALSE",
        "MetadataHasGeneration = FALSE",
        'Assignor = "any"',
    ),
    tuple(CLASSIC_FAULTS.items()),
)
CONSUMER: Final = Family(
    "TraceConsumer",
    (
        *_COMMON,
        "InstanceOf <- NoInstances",
        "NewInstanceOf <- NoInstances",
        "InstanceOrder <- TraceInstanceOrder",
        "Targets <- TraceTargets",
        'Assignor = "uniform"',
        "ReportsPendingPartitions = FALSE",
    ),
    tuple(each for each in CONSUMER_FAULTS.items() if not each[0].startswith("Reverted ")),  # no append fails here
)


def data_module(traces: Sequence[Mapping[str, Data]], constants: Constants) -> str:
    """The text of module ``TraceData`` with these traces and constants."""
    return "\n".join(
        (
            "---------------------------- MODULE TraceData ----------------------------",
            "\\* Generated from recorded traces; the field line counts the lines after the header of a trace.",
            "EXTENDS Integers, Sequences, TLC",
            "",
            *(f"{_NAME}{name} == {expression(value)}" for name, value in constants),
            "",
            "Traces ==",
            "  <<" + ",\n\n    ".join(map(_fields, traces)) + ">>",
            "=" * 77,
            "",
        )
    )


def _fields(trace: Mapping[str, Data]) -> str:
    return "[" + ",\n     ".join(f"{name} |-> {_spread(value)}" for name, value in trace.items()) + "]"


def _spread(value: Data) -> str:
    """The expression, with one line for each row of a long one."""
    if isinstance(value, tuple) and len(value) > 1:
        return "<<" + ",\n       ".join(map(expression, value)) + ">>"
    if isinstance(value, Mapping) and len(value) > 1:
        return "[" + ",\n       ".join(f"{name} |-> {expression(each)}" for name, each in value.items()) + "]"
    return expression(value)


def cfg_text(family: Family, profile: Profile, constants: Constants, search: str, *, explain: bool = False) -> str:
    """The configuration of a family; the switches are those of the profile. ``explain``: stop at the first trace that
    is explained, with its explanation as the counter-example."""
    lines = [
        "SPECIFICATION TraceSpec",
        "CONSTANTS",
        f'  Search = "{search}"',
        *(f"  {each}" for each in family.constants),
        *(f"  {name} <- {_NAME}{name}" for name, _ in constants),
        *(f"  {replacement}" for replacement, switch in family.faults if getattr(profile, switch)),
        "CONSTRAINT Progress",
        *(["INVARIANT TheTraceIsNotExplained"] if explain else []),
    ]
    return "\n".join(lines) + "\n"
