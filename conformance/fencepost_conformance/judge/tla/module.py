"""The generated module ``TraceData`` and the configuration that TLC checks a trace with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fencepost.protocol.profile import Profile

from .text import Data, expression

_SWITCHES: Final = (
    "fault_new_member_added_survives",
    "fault_refusal_leaves_join_phase",
    "fault_static_return_counts_as_new",
    "fault_replacement_keeps_pending_sync",
    "fault_leave_forgets_parked_sync",
    "fault_every_leader_sync_appends",
)

#: the searches of a trace, from the quickest on: the next one is for traces that the one before does not explain
SEARCHES: Final = ("quick", "full", "report")

_CLASSIC_CFG: Final = """\
SPECIFICATION TraceSpec
CONSTANTS
  Search = "{search}"
  Clients <- RequestNames
  MemberIds <- TraceIdOrder
  Partitions <- TracePartitions
  InstanceOf <- InstanceInRequest
  First <- TraceFirst
  Deliverable <- TraceDeliverable
  Cooperative = FALSE
  MetadataHasGeneration = FALSE
  Assignor = "any"
  MaxSize <- TraceMaxSize
  DelayWindows <- TraceDelayWindows
  Faults = 0
  Reorder = FALSE
  SlowAppends = TRUE
  Allowed = {{}}
{switches}
CONSTRAINT Progress
INVARIANT TheTraceIsNotExplained
"""


def data_module(data: Mapping[str, Data]) -> str:
    """The text of module ``TraceData`` with these definitions."""
    lines = [f"{name} ==\n  {_spread(value)}\n" for name, value in data.items()]
    return "\n".join(
        (
            "---------------------------- MODULE TraceData ----------------------------",
            "\\* Generated from a recorded trace; the field line counts the lines after its header.",
            "EXTENDS Integers, Sequences, TLC",
            "",
            *lines,
            "=" * 77,
            "",
        )
    )


def _spread(value: Data) -> str:
    """The expression, with one line for each row of a long one."""
    if isinstance(value, tuple) and len(value) > 1:
        return "<<" + ",\n    ".join(map(expression, value)) + ">>"
    if isinstance(value, Mapping) and len(value) > 1:
        return "[" + ",\n    ".join(f"{name} |-> {expression(each)}" for name, each in value.items()) + "]"
    return expression(value)


def classic_cfg(profile: Profile, search: str) -> str:
    """The configuration of ``TraceClassic``; the switches are those of the profile."""
    switches = "\n".join(f"  {name} = {str(getattr(profile, name)).upper()}" for name in _SWITCHES)
    return _CLASSIC_CFG.format(search=search, switches=switches)
