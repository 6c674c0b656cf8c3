"""The machines compiled to a table: one dictionary look-up per transition.

A machine object for each state would cost the explorer a hundred times more. ``tests/model/test_machines.py`` fires
every trigger in every state of both, and checks that they agree.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from .machines import CLASSIC_GROUP, CLASSIC_MEMBER, CONSUMER_CLIENT, CONSUMER_MEMBER, OFFSET, MachineSpec

#: trigger -> source state -> destination
Table: TypeAlias = dict[str, dict[str, str]]


class IllegalTransition(Exception):
    """The machine has no such trigger in that state (C-ST-25). A live coordinator reports an internal error."""


def compiled(spec: MachineSpec) -> Table:
    """Return the table of a machine. Raises ValueError if one trigger leads from one state to two destinations."""
    table: Table = {transition.trigger: {} for transition in spec.transitions}
    for source, trigger, dest, _ in spec.expand():
        if table[trigger].setdefault(source, dest) != dest:
            raise ValueError(f"{spec.name}: {trigger} in {source} leads to two states")
    return table


GROUP_TABLE: Final = compiled(CLASSIC_GROUP)
MEMBER_TABLE: Final = compiled(CLASSIC_MEMBER)
CONSUMER_MEMBER_TABLE: Final = compiled(CONSUMER_MEMBER)
CONSUMER_CLIENT_TABLE: Final = compiled(CONSUMER_CLIENT)
OFFSET_TABLE: Final = compiled(OFFSET)


def step(table: Table, state: str, trigger: str) -> str:
    """Return the state after the trigger. Raises IllegalTransition."""
    dest = table[trigger].get(state)
    if dest is None:
        raise IllegalTransition(f"{trigger} in {state}")
    return dest
