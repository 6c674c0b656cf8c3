"""A plan with text from all of Unicode where clients may choose it: protocols, types, hosts, reasons, racks."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Final

from .edge_moves import text_of_units
from .plan import ClientPlan, ConsumerPlan, Plan

_HOSTS: Final = ("/10.0.0.\u0661", "höst\U0001f980/10.0.0.2", "/0:0:0:0:0:0:0:1", "\0")
#: unchanged, since members of this type are consumers
_CONSUMER: Final = "consumer"


def worded(plan: Plan, dice: Random) -> Plan:
    """Return the plan with other words; words that members must agree on change alike for all of them."""
    protocols: dict[str, str] = {}
    types: dict[str, str] = {_CONSUMER: _CONSUMER}

    def fresh(known: dict[str, str], name: str) -> str:
        if name not in known:
            known[name] = text_of_units(dice, dice.choice((1, 2, 5, 40))) or name
        return known[name]

    def classic(client: ClientPlan) -> ClientPlan:
        changed = client.protocol_type != _CONSUMER
        return replace(
            client,
            client_host=dice.choice((client.client_host, *_HOSTS)),
            protocol_type=fresh(types, client.protocol_type),
            protocols=tuple(dict.fromkeys(fresh(protocols, name) for name in client.protocols))
            if changed
            else client.protocols,
            reason=dice.choice((None, "", text_of_units(dice, 9), text_of_units(dice, 255))),
        )

    def consumer(client: ConsumerPlan) -> ConsumerPlan:
        return replace(
            client,
            client_host=dice.choice((client.client_host, *_HOSTS)),
            rack_id=dice.choice((client.rack_id, text_of_units(dice, 3))),
            ids=tuple(dict.fromkeys(text_of_units(dice, length) for length in (1, 2, 36, 300))),
        )

    return replace(plan, clients=tuple(map(classic, plan.clients)), consumers=tuple(map(consumer, plan.consumers)))
